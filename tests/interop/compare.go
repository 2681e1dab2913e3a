package main

import (
	"sort"
	"time"
)

const (
	lookAhead      = 32
	plausibleDelay = 2500 * time.Millisecond // less than half the test clip
)

// sample is the NTP error of one access unit.
type sample struct {
	at  int64 // arrival
	err int64 // received minus origin, ns
}

// comparer follows a track's access units through the origin's dump.
type comparer struct {
	lines []dumpLine
	bySHA map[string][]int
}

func newComparer(lines []dumpLine) *comparer {
	c := &comparer{lines: lines, bySHA: map[string][]int{}}
	for i, l := range lines {
		c.bySHA[l.SHA256] = append(c.bySHA[l.SHA256], i)
	}
	return c
}

// locate finds where aus begin in the dump after a position. The clip loops, so
// only lines sent shortly before the arrival are candidates. It prefers the
// longest run (some units are equal, such as silence), then the nearest in
// time.
func (c *comparer) locate(aus []gotAU, after int) int {
	best, bestRun := -1, 0
	var bestFar time.Duration
	for _, i := range c.bySHA[aus[0].sha] {
		if i <= after {
			continue
		}
		far := aus[0].at.Sub(time.Unix(0, c.lines[i].NTP)).Abs()
		if far > plausibleDelay {
			continue
		}
		run := c.run(aus, i)
		if run > bestRun || run == bestRun && far < bestFar {
			best, bestRun, bestFar = i, run, far
		}
	}
	return best
}

// run counts how many of aus equal the dump's lines from i on.
func (c *comparer) run(aus []gotAU, i int) int {
	n := 1
	for n < lookAhead && n < len(aus) && i+n < len(c.lines) && c.lines[i+n].SHA256 == aus[n].sha {
		n++
	}
	return n
}

func (c *comparer) compare(aus []gotAU, res *trackResult) []sample {
	var out []sample
	pos := -1
	for i, u := range aus {
		next := pos + 1
		if pos < 0 || next >= len(c.lines) || c.lines[next].SHA256 != u.sha {
			next = c.locate(aus[i:], pos)
			if next < 0 {
				res.Mismatched++
				continue
			}
			if pos >= 0 {
				res.Jumps++
				res.Skipped += next - pos - 1
			}
		}
		pos = next
		res.Matched++
		line := c.lines[pos]

		delta := int64(u.ts - line.TS)
		if res.TSDelta < 0 {
			res.TSDelta, res.TSConstant = delta, true
		} else if delta != res.TSDelta {
			res.TSConstant = false
		}
		if u.hasNTP {
			s := sample{at: u.at.UnixNano(), err: u.ntp - line.NTP}
			out = append(out, s)
			res.NTPCompared++
			res.NTPErrMaxUS = max(res.NTPErrMaxUS, micros(s.err))
		}
	}
	return out
}

func micros(ns int64) int64 {
	if ns < 0 {
		ns = -ns
	}
	return (ns + 500) / 1000
}

// avError returns the greatest difference between a video unit's error and the
// error of the last audio unit before it.
func avError(audio, video []sample) int64 {
	var worst int64
	for _, v := range video {
		i := sort.Search(len(audio), func(i int) bool { return audio[i].at > v.at })
		if i > 0 {
			worst = max(worst, micros(v.err-audio[i-1].err))
		}
	}
	return worst
}

// compareAll fills in the results that need the dump.
func compareAll(readers []*reader, dump map[string][]dumpLine) {
	comparers := map[string]*comparer{}
	for _, name := range []string{"audio", "video"} {
		comparers[name] = newComparer(dump[name])
	}
	for _, r := range readers {
		samples := map[string][]sample{}
		for name, a := range r.tracks {
			samples[name] = comparers[name].compare(a.aus, a.res)
		}
		r.res.AVErrMaxUS = avError(samples["audio"], samples["video"])
	}
}
