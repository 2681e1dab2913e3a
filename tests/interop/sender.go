package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/ntp"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// outTrack is an outgoing track.
type outTrack struct {
	name    string
	media   *description.Media
	rate    int64
	base    uint32 // RTP timestamp of tick 0
	ssrc    uint32
	packets atomic.Uint32
	octets  atomic.Uint32
	unit    func(n int64) unit
	encode  func(nalus [][]byte) ([]*rtp.Packet, error)
	hash    func(nalus [][]byte) string
	next    unit
	silent  bool
}

// sender paces the clip to all readers without end.
type sender struct {
	stream *gortsplib.ServerStream
	tracks []*outTrack
	bad    misbehaviour
	dump   *dumper
	start  time.Time
	// Unix time in ns of the latest PLAY, for silent-after.
	lastPlay atomic.Int64
}

func newSender(server *gortsplib.Server, c *clip, bad misbehaviour, dump *dumper) (*sender, error) {
	s := &sender{bad: bad, dump: dump}
	desc := &description.Session{Title: "interop"}
	if bad.mode != "audio-only" {
		t, err := videoTrack(c)
		if err != nil {
			return nil, err
		}
		s.tracks = append(s.tracks, t)
	}
	if bad.mode != "other-tracks" {
		t, err := audioTrack(c)
		if err != nil {
			return nil, err
		}
		t.silent = bad.mode == "one-silent-track"
		s.tracks = append(s.tracks, t)
	}
	for _, t := range s.tracks {
		desc.Medias = append(desc.Medias, t.media)
	}
	s.stream = &gortsplib.ServerStream{Server: server, Desc: desc}
	if err := s.stream.Initialize(); err != nil {
		return nil, err
	}
	// The library chooses the SSRC; our own sender reports need it.
	stats := s.stream.Stats()
	for _, t := range s.tracks {
		t.base = rand.Uint32()
		t.ssrc = stats.Medias[t.media].Formats[t.media.Formats[0]].LocalSSRC
		t.next = t.unit(0)
	}
	return s, nil
}

func videoTrack(c *clip) (*outTrack, error) {
	f := &format.H264{PayloadTyp: 96, SPS: c.sps, PPS: c.pps, PacketizationMode: 1}
	enc, err := f.CreateEncoder()
	if err != nil {
		return nil, err
	}
	return &outTrack{
		name:   "video",
		media:  &description.Media{Type: description.MediaTypeVideo, Formats: []format.Format{f}},
		rate:   videoRate,
		unit:   c.videoUnit,
		encode: enc.Encode,
		hash:   hashVideo,
	}, nil
}

func audioTrack(c *clip) (*outTrack, error) {
	f := &format.MPEG4Audio{
		PayloadTyp: 97, Config: &c.audioConf,
		SizeLength: 13, IndexLength: 3, IndexDeltaLength: 3,
	}
	enc, err := f.CreateEncoder()
	if err != nil {
		return nil, err
	}
	return &outTrack{
		name:   "audio",
		media:  &description.Media{Type: description.MediaTypeAudio, Formats: []format.Format{f}},
		rate:   int64(c.audioConf.SampleRate),
		unit:   c.audioUnit,
		encode: enc.Encode,
		hash:   func(nalus [][]byte) string { return hashAudio(nalus[0]) },
	}, nil
}

func (s *sender) run(ctx context.Context) error {
	s.start = time.Now()
	nextReport := s.start
	for {
		t := s.earliest()
		due := s.start.Add(ticksToDuration(t.next.ticks, t.rate))
		if !sleepUntil(ctx, due) {
			return nil
		}
		if err := s.send(t); err != nil {
			return err
		}
		t.next = t.unit(t.next.n + 1)
		if !time.Now().Before(nextReport) {
			s.report()
			nextReport = nextReport.Add(time.Second)
		}
	}
}

func (s *sender) earliest() *outTrack {
	best := s.tracks[0]
	for _, t := range s.tracks[1:] {
		if ticksToDuration(t.next.ticks, t.rate) < ticksToDuration(best.next.ticks, best.rate) {
			best = t
		}
	}
	return best
}

// sleepUntil uses absolute deadlines, so delays never add up.
func sleepUntil(ctx context.Context, due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *sender) silent() bool {
	switch s.bad.mode {
	case "silent":
		return true
	case "silent-after":
		played := s.lastPlay.Load()
		return played != 0 && time.Since(time.Unix(0, played)) >= s.bad.after
	}
	return false
}

func (s *sender) send(t *outTrack) error {
	if t.silent || s.silent() {
		return nil
	}
	ts := t.base + uint32(t.next.ticks)
	at := s.start.Add(ticksToDuration(t.next.ticks, t.rate))
	// Written before the packets, so that a reader never has a unit that the dump
	// lacks.
	err := s.dump.write(dumpLine{
		Track: t.name, N: t.next.n, TS: ts, NTP: at.UnixNano(), SHA256: t.hash(t.next.nalus),
	})
	if err != nil {
		return err
	}
	pkts, err := t.encode(t.next.nalus)
	if err != nil {
		return err
	}
	for _, p := range pkts {
		p.Timestamp = ts
		t.packets.Add(1)
		t.octets.Add(uint32(len(p.Payload)))
		if err := s.stream.WritePacketRTPWithNTP(t.media, p, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) report() {
	if s.silent() {
		return
	}
	for _, t := range s.tracks {
		if t.silent || t.packets.Load() == 0 {
			continue
		}
		// Rounded to a whole tick, so that the mapping is exact.
		since := time.Since(s.start)
		ticks := int64(since/time.Second)*t.rate +
			int64(since%time.Second)*t.rate/int64(time.Second)
		at := s.start.Add(ticksToDuration(ticks, t.rate))
		s.stream.WritePacketRTCP(t.media, &rtcp.SenderReport{ //nolint:errcheck // a leaving reader's
			SSRC:        t.ssrc,
			NTPTime:     ntp.Encode(at),
			RTPTime:     t.base + uint32(ticks),
			PacketCount: t.packets.Load(),
			OctetCount:  t.octets.Load(),
		})
	}
}
