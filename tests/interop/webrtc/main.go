// Command webrtc reads a stream over WHEP, or publishes one over WHIP, with a library that shares no
// code with Weir.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: webrtc read [flags] http://HOST:PORT/PATH/whep
       webrtc publish [flags] FILE http://HOST:PORT/PATH/whip
webrtc COMMAND --help prints the flags; ../README.md explains them.`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	}
	switch os.Args[1] {
	case "read":
		os.Exit(runRead(os.Args[2:]))
	case "publish":
		os.Exit(runPublish(os.Args[2:]))
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	}
}
