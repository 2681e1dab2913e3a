package main

import "time"

const samplesPerAU = 1024

// unit is an access unit at its time on the endless timeline.
type unit struct {
	n     int64
	ticks int64 // since the start, in the track's clock
	nalus [][]byte
}

// ticksToDuration avoids the overflow of ticks*1e9 in long runs.
func ticksToDuration(ticks, rate int64) time.Duration {
	return time.Duration(ticks/rate)*time.Second +
		time.Duration(ticks%rate)*time.Second/time.Duration(rate)
}

func (c *clip) videoUnit(n int64) unit {
	count := int64(len(c.video))
	i := n % count
	return unit{n: n, ticks: n/count*c.videoLen + c.videoPTS[i], nalus: c.video[i]}
}

// audioUnit keeps timestamps exactly 1024 apart. The content returns to the
// first access unit at the first slot of each video loop, so that sound and
// picture stay within one access unit of each other although the tracks differ
// in length.
func (c *clip) audioUnit(n int64) unit {
	rate := int64(c.audioConf.SampleRate)
	ticks := n * samplesPerAU
	loop := ticks * videoRate / (rate * c.videoLen)
	// The first slot at or after the loop's start, rounded up.
	per := int64(videoRate * samplesPerAU)
	first := (loop*c.videoLen*rate + per - 1) / per
	i := (n - first) % int64(len(c.audio))
	return unit{n: n, ticks: ticks, nalus: [][]byte{c.audio[i]}}
}
