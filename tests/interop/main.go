// Command interop is an RTSP origin and reader that shares no code with Weir.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: interop origin [flags]             serve a clip over RTSP
       interop read [flags] rtsp://...    read it with many clients and check it
       interop seek [flags] rtsp://...    read a stored stream at several positions

Example: interop read --readers 10 --duration 5 rtsp://127.0.0.1:8554/cam
interop COMMAND --help prints the flags; README.md explains them.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(64)
	}
	switch os.Args[1] {
	case "origin":
		os.Exit(runOrigin(os.Args[2:]))
	case "read":
		os.Exit(runRead(os.Args[2:]))
	case "seek":
		os.Exit(runSeek(os.Args[2:]))
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(64)
	}
}
