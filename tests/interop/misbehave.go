package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// misbehaviour is a parsed --misbehave option.
type misbehaviour struct {
	mode  string
	after time.Duration // silent-after, close-after
	url   string        // redirect
}

func parseMisbehave(s string) (misbehaviour, error) {
	mode, arg, hasArg := strings.Cut(s, "=")
	m := misbehaviour{mode: mode}
	switch mode {
	case "silent-after", "close-after":
		sec, err := strconv.ParseFloat(arg, 64)
		if err != nil || sec < 0 {
			return m, fmt.Errorf("--misbehave %s needs =SECONDS", mode)
		}
		m.after = time.Duration(sec * float64(time.Second))
	case "redirect":
		if arg == "" {
			return m, fmt.Errorf("--misbehave redirect needs =URL")
		}
		m.url = arg
	case "", "silent", "404", "401", "garbage-sdp", "hang", "no-udp",
		"audio-only", "other-tracks", "one-silent-track":
		if hasArg {
			return m, fmt.Errorf("--misbehave %s takes no value", mode)
		}
	default:
		return m, fmt.Errorf("unknown --misbehave %q", s)
	}
	return m, nil
}
