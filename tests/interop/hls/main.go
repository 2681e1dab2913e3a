// Command hls reads a stream over HLS with a client that shares no code with Weir, and prints the
// track, time and hash of each access unit.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"sync"

	"github.com/bluenviron/gohlslib/v2"
	"github.com/bluenviron/gohlslib/v2/pkg/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
)

// reader counts the units of each track until all have enough.
type reader struct {
	units  int
	mutex  sync.Mutex
	counts map[string]int
	done   chan struct{}
}

func (r *reader) print(name string, track *gohlslib.Track, pts int64, hash []byte) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Printf("%s %.6f %x\n", name, float64(pts)/float64(track.ClockRate), hash)
	r.counts[name]++
	for _, n := range r.counts {
		if n < r.units {
			return
		}
	}
	select {
	case <-r.done:
	default:
		close(r.done)
	}
}

// hashSlices hashes the slices of a picture, each after its length in 4 bytes.
func hashSlices(au [][]byte) []byte {
	sum := sha256.New()
	for _, unit := range au {
		kind := h264.NALUType(unit[0] & 0x1f)
		if kind >= h264.NALUTypeNonIDR && kind <= h264.NALUTypeIDR {
			binary.Write(sum, binary.BigEndian, uint32(len(unit))) //nolint:errcheck // a hash takes all
			sum.Write(unit)
		}
	}
	return sum.Sum(nil)
}

func (r *reader) begin(client *gohlslib.Client, tracks []*gohlslib.Track) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, track := range tracks {
		switch track.Codec.(type) {
		case *codecs.H264:
			r.counts["video"] = 0
			client.OnDataH26x(track, func(pts, _ int64, au [][]byte) {
				r.print("video", track, pts, hashSlices(au))
			})
		case *codecs.MPEG4Audio:
			r.counts["audio"] = 0
			client.OnDataMPEG4Audio(track, func(pts int64, aus [][]byte) {
				for _, au := range aus { // one
					hash := sha256.Sum256(au)
					r.print("audio", track, pts, hash[:])
				}
			})
		default:
			return fmt.Errorf("unexpected codec %T", track.Codec)
		}
	}
	return nil
}

func main() {
	r := &reader{counts: map[string]int{}, done: make(chan struct{})}
	flag.IntVar(&r.units, "units", 100, "access units to read of each track")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: hls [--units N] http://...")
		os.Exit(64)
	}
	client := &gohlslib.Client{URI: flag.Arg(0)}
	client.OnTracks = func(tracks []*gohlslib.Track) error { return r.begin(client, tracks) }
	if err := client.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "hls:", err)
		os.Exit(1)
	}
	ended := make(chan error, 1)
	go func() { ended <- client.Wait2() }()
	select {
	case <-r.done:
		client.Close()
	case err := <-ended:
		fmt.Fprintln(os.Stderr, "hls:", err)
		os.Exit(1)
	}
}
