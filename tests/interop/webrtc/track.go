package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

// A track as one reader saw it.
type trackResult struct {
	Kind       string `json:"kind"`
	Codec      string `json:"codec"`
	Packets    int    `json:"packets"`
	Bytes      int    `json:"bytes"`
	Lost       int    `json:"lost"` // and not recovered
	Duplicates int    `json:"duplicates"`
	Late       int    `json:"late"` // arrived after a packet with a later number
	MaxGapMS   int64  `json:"max_gap_ms"`
	Largest    int    `json:"largest"`     // payload, in bytes
	Backward   int    `json:"ts_backward"` // timestamps that go back, of packets in order
	Units      int    `json:"units"`       // access units whose packets all came
	Pictures   int    `json:"pictures"`    // that ended, whole or not
	Broken     int    `json:"broken"`      // of those: something is lost of them, or since the last keyframe
	Keyframes  int    `json:"keyframes"`
	FirstMS    int64  `json:"first_ms"`    // first packet, from the POST; -1: none
	KeyframeMS int64  `json:"keyframe_ms"` // first keyframe complete, from the POST; -1: none
	Reports    int    `json:"sender_reports"`
}

// The packets of a track, in the order of their numbers as far as they came within `depth` packets.
type track struct {
	result  trackResult
	started time.Time
	last    time.Time
	newest  int64 // unwrapped number
	first   int64
	seen    map[int64]*rtp.Packet // not yet passed on, or nil if it was
	next    int64                 // to be passed on
	lastTS  uint32
	unit    []byte // Annex B, of the access unit in hand
	broken  bool   // something is lost of it
	stale   bool   // or of a picture since the last keyframe
	key     bool   // a keyframe of VP8 is in hand
	print   bool
	save    io.Writer // of whole access units, or nil
	hole    time.Time // since when a packet is missing, for giveUp
	depack  codecs.H264Packet
}

const depth = 512 // packets that a lost one is waited for

func newTrack(kind, codec string, started time.Time, print bool) *track {
	return &track{result: trackResult{Kind: kind, Codec: codec, FirstMS: -1, KeyframeMS: -1},
		started: started, seen: map[int64]*rtp.Packet{}, print: print}
}

func (t *track) take(packet *rtp.Packet, now time.Time) {
	number := int64(packet.SequenceNumber)
	if t.result.Packets == 0 && t.result.Duplicates == 0 {
		t.first, t.newest, t.next = number, number-1, number
		t.result.FirstMS = now.Sub(t.started).Milliseconds()
	} else {
		t.result.MaxGapMS = max(t.result.MaxGapMS, now.Sub(t.last).Milliseconds())
		number = t.newest + int64(int16(packet.SequenceNumber-uint16(t.newest)))
	}
	t.last = now
	if _, known := t.seen[number]; known || number < t.next {
		t.result.Duplicates++
		return
	}
	if number < t.newest {
		t.result.Late++
	}
	t.newest = max(t.newest, number)
	t.result.Packets++
	t.result.Bytes += len(packet.Payload)
	t.result.Largest = max(t.result.Largest, len(packet.Payload))
	t.seen[number] = packet
	t.pass(now, t.newest-depth)
}

// pass passes on what is in order, and gives up what is older than `oldest`.
func (t *track) pass(now time.Time, oldest int64) {
	for t.next <= t.newest {
		packet := t.seen[t.next]
		if packet == nil {
			if t.next >= oldest {
				return
			}
			t.result.Lost++
			t.broken, t.stale, t.unit = true, true, nil
		} else {
			t.passOne(packet, now)
		}
		delete(t.seen, t.next)
		t.next++
	}
}

func (t *track) passOne(packet *rtp.Packet, now time.Time) {
	if t.next > t.first && int32(packet.Timestamp-t.lastTS) < 0 {
		t.result.Backward++
	}
	t.lastTS = packet.Timestamp
	if t.result.Kind == "audio" {
		t.result.Units++
		if t.print {
			fmt.Printf("audio %d %x\n", packet.Timestamp, sha256.Sum256(packet.Payload))
		}
		return
	}
	if t.result.Codec != "video/H264" {
		t.passOther(packet)
		return
	}
	data, err := t.depack.Unmarshal(packet.Payload)
	if err != nil {
		t.broken = true
	}
	t.unit = append(t.unit, data...)
	if packet.Marker {
		t.endPicture(!t.broken && t.endUnit(packet.Timestamp, now))
		t.unit, t.broken = nil, false
	}
}

// passOther takes a packet of a codec whose pictures are only counted. Keyframes are found in VP8.
func (t *track) passOther(packet *rtp.Packet) {
	if t.result.Codec == "video/VP8" {
		var vp8 codecs.VP8Packet
		payload, err := vp8.Unmarshal(packet.Payload)
		t.key = t.key || err == nil && vp8.S == 1 && vp8.PID == 0 && len(payload) > 0 && payload[0]&1 == 0
	}
	if packet.Marker {
		if !t.broken {
			t.result.Units++
		}
		if t.key && !t.broken {
			t.result.Keyframes++
		}
		t.endPicture(t.key && !t.broken)
		t.key, t.broken = false, false
	}
}

// endPicture counts a picture; `key` says that it is a whole keyframe.
func (t *track) endPicture(key bool) {
	t.stale = t.stale && !key
	t.result.Pictures++
	if t.stale {
		t.result.Broken++
	}
}

// giveUp gives up packets that have been missing for a second.
func (t *track) giveUp(now time.Time) {
	switch {
	case len(t.seen) == 0:
		t.hole = time.Time{}
	case t.hole.IsZero():
		t.hole = now
	case now.Sub(t.hole) > time.Second:
		t.pass(now, t.newest)
		t.hole = time.Time{}
	}
}

// endUnit takes an access unit: a picture is hashed without parameter sets and delimiters. It returns
// whether it is a keyframe.
func (t *track) endUnit(timestamp uint32, now time.Time) bool {
	var hashed []byte
	key := false

	if t.save != nil {
		t.save.Write(t.unit) //nolint:errcheck // the test finds the file short
	}

	for _, unit := range splitAnnexB(t.unit) {
		switch unit[0] & 0x1f {
		case 7, 8, 9:
			continue
		case 5:
			key = true
		}
		hashed = binary.BigEndian.AppendUint32(hashed, uint32(len(unit)))
		hashed = append(hashed, unit...)
	}
	t.result.Units++
	if key {
		t.result.Keyframes++
		if t.result.KeyframeMS < 0 {
			t.result.KeyframeMS = now.Sub(t.started).Milliseconds()
		}
	}
	if t.print {
		fmt.Printf("video %d %x\n", timestamp, sha256.Sum256(hashed))
	}
	return key
}

// splitAnnexB returns the NAL units of a byte stream.
func splitAnnexB(data []byte) (units [][]byte) {
	begin := -1
	for i := 0; i+3 <= len(data); i++ {
		if data[i] != 0 || data[i+1] != 0 || data[i+2] != 1 {
			continue
		}
		if begin >= 0 {
			end := i
			if end > begin && data[end-1] == 0 {
				end--
			}
			units = append(units, data[begin:end])
		}
		begin = i + 3
	}
	if begin >= 0 && begin < len(data) {
		units = append(units, data[begin:])
	}
	return units
}

// ---- loss on purpose ----

// A dropper loses one in `n` of the packets that arrive, before anything else sees them. It begins
// a second after the first packet, as a server sends again a part of what it has sent lately, and
// ends at `until`, so that what is lost last can come again.
type dropper struct {
	interceptor.NoOp
	n       int
	dropped *atomic.Int64
	until   time.Duration
	once    sync.Once
	began   time.Time
}

func (d *dropper) loses() bool {
	d.once.Do(func() { d.began = time.Now() })
	age := time.Since(d.began)
	return age > time.Second && age < d.until && rand.IntN(d.n) == 0
}

type dropperFactory struct{ *dropper }

func (f dropperFactory) NewInterceptor(string) (interceptor.Interceptor, error) {
	return f.dropper, nil
}

func (d *dropper) BindRemoteStream(_ *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	return interceptor.RTPReaderFunc(func(data []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		for {
			n, attributes, err := reader.Read(data, a)
			if err != nil || !d.loses() {
				return n, attributes, err
			}
			d.dropped.Add(1)
		}
	})
}

func (d *dropper) BindLocalStream(_ *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if d.loses() {
			d.dropped.Add(1)
			return len(payload), nil
		}
		return writer.Write(header, payload, a)
	})
}
