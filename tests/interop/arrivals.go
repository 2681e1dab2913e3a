package main

import (
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"
)

// arrivals counts a track's packets as they arrive from the network.
type arrivals struct {
	res     *trackResult
	any     bool
	ssrc    uint32
	highest uint16
	lastTS  uint32
	last    time.Time
	missing map[uint16]bool
	first   func() // called at the first packet
}

// tapFormat lets arrivals see packets before the library reorders UDP packets
// and drops duplicates: the library calls this method for each packet as it
// arrives.
type tapFormat struct {
	format.Format
	name string
	to   *arrivals
}

func (f *tapFormat) PTSEqualsDTS(p *rtp.Packet) bool {
	f.to.packet(p)
	return f.Format.PTSEqualsDTS(p)
}

func (a *arrivals) packet(p *rtp.Packet) {
	now := time.Now()
	a.res.Packets++
	if a.any {
		a.res.MaxGapMS = max(a.res.MaxGapMS, now.Sub(a.last).Milliseconds())
	} else {
		a.first()
	}
	a.last = now

	if a.any && p.SSRC != a.ssrc {
		a.res.SSRCChange++
		a.any = false // the source began a new sequence
	}
	if !a.any {
		a.any = true
		a.ssrc, a.highest, a.lastTS = p.SSRC, p.SequenceNumber, p.Timestamp
		a.missing = map[uint16]bool{}
		a.res.SSRC = int64(p.SSRC)
		return
	}

	diff := int16(p.SequenceNumber - a.highest)
	if diff <= 0 {
		if a.missing[p.SequenceNumber] {
			delete(a.missing, p.SequenceNumber)
			a.res.Reordered++
			a.res.Lost--
		} else {
			a.res.Duplicates++
		}
		return
	}
	for seq := a.highest + 1; seq != p.SequenceNumber; seq++ {
		a.missing[seq] = true
		a.res.Lost++
	}
	if int32(p.Timestamp-a.lastTS) < 0 {
		a.res.TSBackward++
	}
	a.highest, a.lastTS = p.SequenceNumber, p.Timestamp
}

// finish counts a silence that lasts until the end.
func (a *arrivals) finish(end time.Time) {
	if a.any {
		a.res.MaxGapMS = max(a.res.MaxGapMS, end.Sub(a.last).Milliseconds())
	}
}
