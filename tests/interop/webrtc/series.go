package main

import (
	"encoding/json"
	"os"
	"time"
)

// What the readers saw until a moment: one number a reader, of its video.
type sample struct {
	AtMS     int64 `json:"at_ms"` // since 1970
	Bytes    []int `json:"bytes"`
	Packets  []int `json:"packets"`
	Lost     []int `json:"lost"`
	Pictures []int `json:"pictures"`
	Broken   []int `json:"broken"`
}

// printSeries prints a sample, a line of JSON each, after every interval until `done`. A reader that
// has not begun has zeros.
func printSeries(readers []*reader, interval time.Duration, done <-chan struct{}) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			json.NewEncoder(os.Stdout).Encode(sampleOf(readers, now)) //nolint:errcheck // standard output
		case <-done:
			return
		}
	}
}

func sampleOf(readers []*reader, now time.Time) sample {
	s := sample{AtMS: now.UnixMilli()}
	for _, r := range readers {
		var seen trackResult
		r.lock.Lock()
		for _, t := range r.tracks {
			if t.result.Kind == "video" {
				t.giveUp(now)
				seen = t.result
			}
		}
		r.lock.Unlock()
		s.Bytes = append(s.Bytes, seen.Bytes)
		s.Packets = append(s.Packets, seen.Packets)
		s.Lost = append(s.Lost, seen.Lost)
		s.Pictures = append(s.Pictures, seen.Pictures)
		s.Broken = append(s.Broken, seen.Broken)
	}
	return s
}
