package main

import (
	"errors"
	"io"

	"github.com/abema/go-mp4"
)

// mp4Track holds a track's samples, with times in the track's own scale.
type mp4Track struct {
	scale, length int64
	samples       [][]byte
	pts           []int64
	avcc          *mp4.AVCDecoderConfiguration // H.264 only
	audioConf     []byte                       // AAC only
}

func readTracks(r io.ReadSeeker) ([]*mp4Track, error) {
	info, err := mp4.Probe(r)
	if err != nil {
		return nil, err
	}
	traks, err := mp4.ExtractBox(r, nil, mp4.BoxPath{mp4.BoxTypeMoov(), mp4.BoxTypeTrak()})
	if err != nil {
		return nil, err
	}
	if len(traks) != len(info.Tracks) {
		return nil, errors.New("malformed track list")
	}
	var out []*mp4Track
	for i, trak := range traks {
		t := &mp4Track{scale: int64(info.Tracks[i].Timescale)}
		if t.scale == 0 {
			return nil, errors.New("track without time scale")
		}
		if err := t.readConfig(r, trak); err != nil {
			return nil, err
		}
		if err := t.readSamples(r, info.Tracks[i]); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (t *mp4Track) readConfig(r io.ReadSeeker, trak *mp4.BoxInfo) error {
	stsd := mp4.BoxPath{mp4.BoxTypeMdia(), mp4.BoxTypeMinf(), mp4.BoxTypeStbl(), mp4.BoxTypeStsd()}
	under := func(p ...mp4.BoxType) mp4.BoxPath { return append(stsd[:len(stsd):len(stsd)], p...) }
	boxes, err := mp4.ExtractBoxesWithPayload(r, trak, []mp4.BoxPath{
		under(mp4.BoxTypeAvc1(), mp4.BoxTypeAvcC()),
		under(mp4.BoxTypeMp4a(), mp4.BoxTypeEsds()),
	})
	if err != nil {
		return err
	}
	for _, b := range boxes {
		switch p := b.Payload.(type) {
		case *mp4.AVCDecoderConfiguration:
			t.avcc = p
		case *mp4.Esds:
			for _, d := range p.Descriptors {
				if d.Tag == mp4.DecSpecificInfoTag {
					t.audioConf = d.Data
				}
			}
		}
	}
	return nil
}

func (t *mp4Track) readSamples(r io.ReadSeeker, info *mp4.Track) error {
	next := 0
	for _, chunk := range info.Chunks {
		if _, err := r.Seek(int64(chunk.DataOffset), io.SeekStart); err != nil {
			return err
		}
		for range chunk.SamplesPerChunk {
			if next >= len(info.Samples) {
				return errors.New("more samples in chunks than sizes")
			}
			s := info.Samples[next]
			buf := make([]byte, s.Size)
			if _, err := io.ReadFull(r, buf); err != nil {
				return err
			}
			t.samples = append(t.samples, buf)
			t.pts = append(t.pts, t.length+s.CompositionTimeOffset)
			t.length += int64(s.TimeDelta)
			next++
		}
	}
	return nil
}
