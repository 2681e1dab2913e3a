// Command interop is an RTSP origin and reader that shares no code with Weir.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: interop origin [flags]
       interop read [flags] rtsp://...
       interop seek [flags] rtsp://...
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
