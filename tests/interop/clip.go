package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
)

const videoRate = 90000

// clip is a whole MP4 in memory, in RTP clock units.
type clip struct {
	sps, pps []byte
	video    [][][]byte // NAL units of each access unit
	videoPTS []int64
	videoLen int64

	audioConf mpeg4audio.AudioSpecificConfig
	audio     [][]byte
}

func loadClip(path string) (*clip, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	tracks, err := readTracks(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &clip{}
	for _, t := range tracks {
		switch {
		case t.avcc != nil:
			err = c.loadVideo(t)
		case t.audioConf != nil:
			c.audio = t.samples
			err = c.audioConf.Unmarshal(t.audioConf)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(c.video) == 0 || len(c.audio) == 0 {
		return nil, fmt.Errorf("%s: needs an H.264 and an AAC track", path)
	}
	return c, nil
}

func (c *clip) loadVideo(t *mp4Track) error {
	if len(t.avcc.SequenceParameterSets) == 0 || len(t.avcc.PictureParameterSets) == 0 {
		return errors.New("no SPS or PPS")
	}
	c.sps = t.avcc.SequenceParameterSets[0].NALUnit
	c.pps = t.avcc.PictureParameterSets[0].NALUnit
	for i, buf := range t.samples {
		var au h264.AVCC
		if err := au.Unmarshal(buf); err != nil {
			return err
		}
		pts := t.pts[i] * videoRate / t.scale
		if i > 0 && pts <= c.videoPTS[i-1] {
			return errors.New("B-frames are not supported")
		}
		c.video = append(c.video, withParams(au, c.sps, c.pps))
		c.videoPTS = append(c.videoPTS, pts)
	}
	c.videoLen = t.length * videoRate / t.scale
	return nil
}

// withParams puts SPS and PPS before an IDR that lacks them, so that a reader
// can start at any IDR without the SDP.
func withParams(au [][]byte, sps, pps []byte) [][]byte {
	idr, has := false, false
	for _, n := range au {
		switch h264.NALUType(n[0] & 0x1f) {
		case h264.NALUTypeIDR:
			idr = true
		case h264.NALUTypeSPS:
			has = true
		}
	}
	if !idr || has {
		return au
	}
	return append([][]byte{sps, pps}, au...)
}
