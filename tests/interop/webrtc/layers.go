package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

const firstRID = "h"

// A layer beside the first one, and the file that it sends.
type layer struct{ rid, file string }

type layers []layer

func (l *layers) String() string { return fmt.Sprint(*l) }

func (l *layers) Set(text string) error {
	rid, file, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q is not RID=FILE", text)
	}
	*l = append(*l, layer{rid, file})
	return nil
}

// A time, from the begin of sending, in which a layer is not sent.
type silence struct{ from, to time.Duration }

type silences map[string][]silence

func (s *silences) String() string { return fmt.Sprint(*s) }

func (s *silences) Set(text string) error {
	rid, span, _ := strings.Cut(text, "=")
	first, second, found := strings.Cut(span, "-")
	if !found {
		return fmt.Errorf("%q is not RID=FROM-TO", text)
	}
	from, err := strconv.ParseFloat(first, 64)
	to := math.MaxInt32 * 1.0
	if err == nil && second != "" {
		to, err = strconv.ParseFloat(second, 64)
	}
	if *s == nil {
		*s = silences{}
	}
	(*s)[rid] = append((*s)[rid], silence{time.Duration(from * float64(time.Second)), time.Duration(to * float64(time.Second))})
	return err
}

// newLayers adds one line of video with several layers.
func newLayers(peer *webrtc.PeerConnection, o publishOptions) (clips []*clip, err error) {
	var sender *webrtc.RTPSender
	for _, each := range append(layers{{firstRID, ""}}, o.layers...) {
		codec, pictures := o.codec, o.pictures
		if each.file != "" {
			if codec, pictures, err = loadPictures(each.file); err != nil {
				return nil, err
			}
		}
		track, err := webrtc.NewTrackLocalStaticSample(
			webrtc.RTPCodecCapability{MimeType: offered[codec].params[0].MimeType}, "video", "publisher",
			webrtc.WithRTPStreamID(each.rid))
		if err != nil {
			return nil, err
		}
		if sender == nil {
			transceiver, err := peer.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
				Direction: webrtc.RTPTransceiverDirectionSendonly})
			if err != nil {
				return nil, err
			}
			sender = transceiver.Sender()
		} else if err = sender.AddEncoding(track); err != nil {
			return nil, err
		}
		clips = append(clips, &clip{track: track, pieces: pictures, step: o.step, silent: o.silent[each.rid]})
	}
	return clips, nil
}

// A labeller says in each packet of a layer which one that is (RFC 8852). Its map has the names by SSRC.
type labeller struct{ rids *sync.Map }

func (l labeller) NewInterceptor(string) (interceptor.Interceptor, error) {
	return &labels{rids: l.rids}, nil
}

type labels struct {
	interceptor.NoOp
	rids *sync.Map
}

func (l *labels) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	var id uint8
	for _, each := range info.RTPHeaderExtensions {
		if each.URI == sdp.SDESRTPStreamIDURI {
			id = uint8(each.ID)
		}
	}
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if rid, _ := l.rids.Load(header.SSRC); id != 0 && rid != nil && rid != "" {
			if err := header.SetExtension(id, []byte(rid.(string))); err != nil {
				return 0, err
			}
		}
		return writer.Write(header, payload, a)
	})
}

func readRTCP(sender *webrtc.RTPSender, rid string) ([]rtcp.Packet, interceptor.Attributes, error) {
	if rid == "" {
		return sender.ReadRTCP()
	}
	return sender.ReadSimulcastRTCP(rid)
}
