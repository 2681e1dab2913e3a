package main

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtpmpeg4audio"
	"github.com/pion/rtp"
)

// gotAU is a received access unit.
type gotAU struct {
	sha    string
	ts     uint32
	at     time.Time
	ntp    int64
	hasNTP bool
}

// assembler builds a track's access units from packets in order.
type assembler struct {
	res    *trackResult
	rate   int
	aus    []gotAU
	decode func(*rtp.Packet) ([]string, error)
	synced bool
	// RTCP arrives on a different goroutine than RTP.
	reports atomic.Int32
	// ntpOf converts a packet's timestamp with the latest sender report.
	ntpOf func(*rtp.Packet) (time.Time, bool)
}

func newAssembler(f format.Format, res *trackResult) (string, *assembler, error) {
	a := &assembler{res: res, rate: f.ClockRate()}
	switch f := f.(type) {
	case *format.H264:
		dec, err := f.CreateDecoder()
		a.decode = func(p *rtp.Packet) ([]string, error) {
			nalus, err := dec.Decode(p)
			if err != nil {
				return nil, err
			}
			return []string{hashVideo(nalus)}, nil
		}
		return "video", a, err
	case *format.MPEG4Audio:
		a.synced = true // packets hold complete units
		dec, err := f.CreateDecoder()
		a.decode = func(p *rtp.Packet) ([]string, error) {
			units, err := dec.Decode(p)
			var out []string
			for _, u := range units {
				out = append(out, hashAudio(u))
			}
			return out, err
		}
		return "audio", a, err
	}
	return "", nil, errors.New("unexpected format " + f.Codec())
}

func (a *assembler) packet(p *rtp.Packet) {
	if !a.synced {
		// The first access unit may be incomplete: begin after a marker.
		a.synced = p.Marker
		return
	}
	hashes, err := a.decode(p)
	if err != nil {
		if !errors.Is(err, rtph264.ErrMorePacketsNeeded) && !errors.Is(err, rtpmpeg4audio.ErrMorePacketsNeeded) {
			a.res.DecodeErrs++
		}
		return
	}
	at, has := a.ntpOf(p)
	now := time.Now()
	for i, sha := range hashes {
		// Only audio packets hold several units.
		ahead := int64(i) * samplesPerAU
		u := gotAU{sha: sha, ts: p.Timestamp + uint32(ahead), at: now, hasNTP: has}
		if has {
			u.ntp = at.Add(ticksToDuration(ahead, int64(a.rate))).UnixNano()
		}
		a.aus = append(a.aus, u)
		a.res.AUs++
	}
}
