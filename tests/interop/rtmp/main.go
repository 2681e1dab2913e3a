// Command rtmp publishes a clip over RTMP, or takes what is published over RTMP, with a library that
// shares no code with Weir. It prints the track, time, size and hash of each access unit, and END.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
)

const usage = `usage: rtmp publish FILE.mp4 rtmp://HOST:PORT/APP#STREAM
       rtmp serve`

// printUnit prints a line for an access unit.
func printUnit(track string, pts, dts time.Duration, hash [sha256.Size]byte, size int) {
	fmt.Printf("%s %d %d %d %x\n", track, pts.Milliseconds(), dts.Milliseconds(), size, hash)
}

// printVideo prints a picture without its parameter sets and delimiters, which RTMP carries elsewhere.
func printVideo(pts, dts time.Duration, au [][]byte) {
	var data []byte
	for _, unit := range au {
		switch h264.NALUType(unit[0] & 0x1f) {
		case h264.NALUTypeSPS, h264.NALUTypePPS, h264.NALUTypeAccessUnitDelimiter:
		default:
			data = binary.BigEndian.AppendUint32(data, uint32(len(unit)))
			data = append(data, unit...)
		}
	}
	if len(data) > 0 {
		printUnit("video", pts, dts, sha256.Sum256(data), len(data))
	}
}

func printAudio(pts time.Duration, au []byte) {
	printUnit("audio", pts, pts, sha256.Sum256(au), len(au))
}

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "publish":
		err = publish(args[1], args[2])
	case len(args) == 1 && args[0] == "serve":
		err = serve()
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rtmp:", err)
		os.Exit(1)
	}
	fmt.Println("END")
}
