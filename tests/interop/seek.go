package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v5/pkg/headers"
	"github.com/pion/rtp"
)

const seekTimeout = 10 * time.Second

// seeker plays several positions of a stored stream in one session.
type seeker struct {
	client  *gortsplib.Client
	format  *format.H264
	packets chan *rtp.Packet // of the video track
}

func runSeek(args []string) int {
	fs := flag.NewFlagSet("seek", flag.ExitOnError)
	transport := fs.String("transport", "tcp", "udp or tcp")
	positions := fs.String("positions", "", "positions in seconds, separated by commas")
	aus := fs.Int("aus", 10, "access units to read at each position")
	out := fs.String("out", "", "folder for N.h264, the data read at position N")
	fs.Parse(args) //nolint:errcheck // ExitOnError

	if fs.NArg() != 1 || *positions == "" || *out == "" {
		fmt.Fprintln(os.Stderr, "seek: needs one URL, --positions and --out")
		return 64
	}
	if err := seekAll(fs.Arg(0), *transport, strings.Split(*positions, ","), *aus, *out); err != nil {
		fmt.Fprintln(os.Stderr, "seek:", err)
		return 1
	}
	return 0
}

func seekAll(address, transport string, positions []string, aus int, out string) error {
	s, err := newSeeker(address, transport)
	if err != nil {
		return err
	}
	defer s.client.Close()
	if _, err := s.client.Play(nil); err != nil {
		return err
	}
	for i, text := range positions {
		position, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		start, units, err := s.seek(position, aus)
		if err != nil {
			return fmt.Errorf("at %s: %w", text, err)
		}
		name := filepath.Join(out, fmt.Sprintf("%d.h264", i))
		if err := os.WriteFile(name, units, 0o600); err != nil {
			return err
		}
		json.NewEncoder(os.Stdout).Encode(map[string]float64{"position": position, "start": start}) //nolint:errcheck
	}
	return nil
}

func newSeeker(address, transport string) (*seeker, error) {
	u, err := base.ParseURL(address)
	if err != nil {
		return nil, err
	}
	protocol := gortsplib.ProtocolTCP
	if transport == "udp" {
		protocol = gortsplib.ProtocolUDP
	}
	s := &seeker{packets: make(chan *rtp.Packet, 1<<16)}
	s.client = &gortsplib.Client{
		Scheme:        u.Scheme,
		Host:          u.Host,
		Protocol:      &protocol,
		OnPacketsLost: func(uint64) {},
	}
	if err := s.client.Start(); err != nil {
		return nil, err
	}
	if err := s.setup(u); err != nil {
		s.client.Close()
		return nil, err
	}
	return s, nil
}

func (s *seeker) setup(u *base.URL) error {
	desc, _, err := s.client.Describe(u)
	if err != nil {
		return err
	}
	media := desc.FindFormat(&s.format)
	if media == nil {
		return errors.New("the stream has no H.264 track")
	}
	if _, err := s.client.Setup(desc.BaseURL, media, 0, 0); err != nil {
		return err
	}
	s.client.OnPacketRTP(media, s.format, func(p *rtp.Packet) { s.packets <- p.Clone() })
	return nil
}

// seek returns the start position in seconds, and Annex B data from there.
func (s *seeker) seek(position float64, aus int) (float64, []byte, error) {
	if _, err := s.client.Pause(); err != nil {
		return 0, nil, err
	}
	at := time.Duration(position * float64(time.Second))
	res, err := s.client.Play(&headers.Range{Value: &headers.RangeNPT{Start: at}})
	if err != nil {
		return 0, nil, err
	}
	start, first, err := readAnswer(res)
	if err != nil {
		return 0, nil, err
	}
	units, err := s.collect(first, aus)
	return start, units, err
}

// readAnswer returns the start position in seconds and the first sequence
// number of an answer.
func readAnswer(res *base.Response) (float64, uint16, error) {
	var where headers.Range
	if err := where.Unmarshal(res.Header["Range"]); err != nil {
		return 0, 0, err
	}
	npt, ok := where.Value.(*headers.RangeNPT)
	if !ok {
		return 0, 0, errors.New("the Range in the answer is not npt")
	}
	var info headers.RTPInfo
	if err := info.Unmarshal(res.Header["RTP-Info"]); err != nil {
		return 0, 0, err
	}
	if len(info) == 0 || info[0].SequenceNumber == nil {
		return 0, 0, errors.New("no sequence number in RTP-Info")
	}
	return npt.Start.Seconds(), *info[0].SequenceNumber, nil
}

func (s *seeker) collect(first uint16, aus int) ([]byte, error) {
	decoder, err := s.format.CreateDecoder()
	if err != nil {
		return nil, err
	}
	var out []byte
	deadline := time.After(seekTimeout)
	for next := first; aus > 0; {
		select {
		case p := <-s.packets:
			if int16(p.SequenceNumber-first) < 0 {
				continue // sent before the seek
			}
			if p.SequenceNumber != next {
				return nil, fmt.Errorf("got packet %d instead of %d", p.SequenceNumber, next)
			}
			next++
			unit, err := decoder.Decode(p)
			if errors.Is(err, rtph264.ErrMorePacketsNeeded) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, nalu := range unit {
				out = append(append(out, 0, 0, 0, 1), nalu...)
			}
			aus--
		case <-deadline:
			return nil, errors.New("no more packets arrive")
		}
	}
	return out, nil
}
