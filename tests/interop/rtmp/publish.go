package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	mp4 "github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/pmp4"
)

// sample is an access unit that is due at dts.
type sample struct {
	dts   time.Duration
	write func(writer *gortmplib.Writer) error
}

// load reads an MP4 with H.264 and AAC. It returns the tracks, and the samples by their time.
func load(path string) ([]*gortmplib.Track, []sample, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	var clip pmp4.Presentation
	if err = clip.Unmarshal(file); err != nil {
		return nil, nil, err
	}
	var tracks []*gortmplib.Track
	var samples []sample
	for _, from := range clip.Tracks {
		track := &gortmplib.Track{}
		switch codec := from.Codec.(type) {
		case *mp4.H264:
			track.Codec = &codecs.H264{SPS: codec.SPS, PPS: codec.PPS}
		case *mp4.MPEG4Audio:
			track.Codec = &codecs.MPEG4Audio{Config: &codec.Config}
		default:
			return nil, nil, fmt.Errorf("unexpected codec %T", from.Codec)
		}
		tracks = append(tracks, track)
		added, err := samplesOf(from, track)
		if err != nil {
			return nil, nil, err
		}
		samples = append(samples, added...)
	}
	slices.SortStableFunc(samples, func(a, b sample) int { return int(a.dts - b.dts) })
	return tracks, samples, nil
}

func samplesOf(from *pmp4.Track, track *gortmplib.Track) ([]sample, error) {
	var samples []sample
	seconds := func(ticks int64) time.Duration {
		return time.Duration(ticks) * time.Second / time.Duration(from.TimeScale)
	}
	ticks := int64(0)
	for _, each := range from.Samples {
		data, err := each.GetPayload()
		if err != nil {
			return nil, err
		}
		dts, pts := seconds(ticks), seconds(ticks+int64(each.PTSOffset))
		ticks += int64(each.Duration)
		if !track.Codec.IsVideo() {
			samples = append(samples, sample{dts, func(writer *gortmplib.Writer) error {
				printAudio(dts, data)
				return writer.WriteMPEG4Audio(track, dts, data)
			}})
			continue
		}
		var au h264.AVCC
		if err := au.Unmarshal(data); err != nil {
			return nil, err
		}
		samples = append(samples, sample{dts, func(writer *gortmplib.Writer) error {
			printVideo(pts, dts, au)
			return writer.WriteH264(track, pts, dts, au)
		}})
	}
	return samples, nil
}

// publish sends a clip in real time, to its end or until SIGTERM.
func publish(path, address string) error {
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	tracks, samples, err := load(path)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	client := &gortmplib.Client{URL: target, Publish: true}
	if err = client.Initialize(ctx); err != nil {
		return err
	}
	defer client.Close()
	writer := &gortmplib.Writer{Conn: client, Tracks: tracks}
	if err = writer.Initialize(); err != nil {
		return err
	}
	start := time.Now()
	for _, each := range samples {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(start.Add(each.dts))):
		}
		if err = each.write(writer); err != nil {
			return err
		}
	}
	return nil
}
