package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

const patience = 15 * time.Second // with each step

// An answer with another status than 201.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: %s", e.status, e.text)
}

// A session at a WHEP or WHIP endpoint.
type session struct {
	peer     *webrtc.PeerConnection
	location string
	started  time.Time     // of the POST
	answered time.Duration // from then on
}

type sessionOptions struct {
	tcp, cm bool   // only TCP candidates; only AES128_CM_HMAC_SHA1_80
	any     bool   // UDP and TCP candidates
	loses   bool   // packets that were lost on purpose may come again
	token   string // of the header Authorization
	codecs  []string
	// Kinds of tracks whose packets have transport-wide numbers.
	numbered []webrtc.RTPCodecType
	labelled bool // the packets of video say which layer they are of
}

var offered = map[string]struct {
	kind   webrtc.RTPCodecType
	params []webrtc.RTPCodecParameters
}{
	"h264": {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeH264,
		"level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", 102)},
	"h264-high": {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeH264,
		"level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640032", 112)},
	"h265": {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeH265, "", 116)},
	"vp8":  {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeVP8, "", 96)},
	"vp9":  {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeVP9, "profile-id=0", 98)},
	"av1":  {webrtc.RTPCodecTypeVideo, video(webrtc.MimeTypeAV1, "", 45)},
	"opus": {webrtc.RTPCodecTypeAudio, audio(webrtc.MimeTypeOpus, 48000, 2, "minptime=10;useinbandfec=1", 111)},
	"pcmu": {webrtc.RTPCodecTypeAudio, audio(webrtc.MimeTypePCMU, 8000, 0, "", 0)},
	"pcma": {webrtc.RTPCodecTypeAudio, audio(webrtc.MimeTypePCMA, 8000, 0, "", 8)},
	"g722": {webrtc.RTPCodecTypeAudio, audio(webrtc.MimeTypeG722, 8000, 0, "", 9)},
}

// video returns a codec and its retransmissions.
func video(mime, fmtp string, pt webrtc.PayloadType) []webrtc.RTPCodecParameters {
	feedback := []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"},
		{Type: "ccm", Parameter: "fir"}, {Type: "goog-remb"}, {Type: "transport-cc"}}
	return []webrtc.RTPCodecParameters{
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 90000,
			SDPFmtpLine: fmtp, RTCPFeedback: feedback}, PayloadType: pt},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90000,
			SDPFmtpLine: fmt.Sprintf("apt=%d", pt)}, PayloadType: pt + 1},
	}
}

func audio(mime string, rate uint32, channels uint16, fmtp string, pt webrtc.PayloadType) []webrtc.RTPCodecParameters {
	return []webrtc.RTPCodecParameters{{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: mime,
		ClockRate: rate, Channels: channels, SDPFmtpLine: fmtp,
		RTCPFeedback: []webrtc.RTCPFeedback{{Type: "transport-cc"}}}, PayloadType: pt}}
}

// newPeer makes a connection that knows these codecs. `interceptors` work on its packets.
func newPeer(o sessionOptions, interceptors *interceptor.Registry) (*webrtc.PeerConnection, error) {
	media := &webrtc.MediaEngine{}
	for _, name := range o.codecs {
		codec, known := offered[name]
		if !known {
			return nil, fmt.Errorf("unknown codec %q", name)
		}
		for _, params := range codec.params {
			if err := media.RegisterCodec(params, codec.kind); err != nil {
				return nil, err
			}
		}
	}
	for _, kind := range o.numbered {
		if err := media.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: sdp.TransportCCURI}, kind); err != nil {
			return nil, err
		}
	}
	for _, uri := range []string{sdp.SDESMidURI, sdp.SDESRTPStreamIDURI, sdp.SDESRepairRTPStreamIDURI} {
		if !o.labelled {
			break
		}
		if err := media.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: uri}, webrtc.RTPCodecTypeVideo); err != nil {
			return nil, err
		}
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	if o.tcp {
		settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6})
	}
	if o.any {
		settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6,
			webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6})
	}
	settings.DisableSRTPReplayProtection(o.loses)
	if o.cm {
		settings.SetSRTPProtectionProfiles(cmProfile)
	}
	api := webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithSettingEngine(settings),
		webrtc.WithInterceptorRegistry(interceptors))
	return api.NewPeerConnection(webrtc.Configuration{})
}

// join offers and takes the answer of the endpoint.
func join(ctx context.Context, endpoint string, o sessionOptions, peer *webrtc.PeerConnection) (*session, error) {
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		return nil, err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err = peer.SetLocalDescription(offer); err != nil {
		return nil, err
	}
	<-gathered
	self := &session{peer: peer, started: time.Now()}
	answer, err := self.post(ctx, endpoint, o.token)
	self.answered = time.Since(self.started)
	if err != nil {
		return nil, err
	}
	return self, peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer})
}

func (s *session) post(ctx context.Context, endpoint, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sdp := s.peer.LocalDescription().SDP
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(sdp))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/sdp")
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", &statusError{response.StatusCode, strings.TrimSpace(string(body))}
	}
	location, err := response.Location()
	if err != nil {
		return "", err
	}
	if response.Header.Get("ETag") == "" {
		return "", errors.New("the answer has no ETag")
	}
	s.location = location.String()
	return string(body), nil
}

// leave ends the session at the server, and the connection.
func (s *session) leave() error {
	defer s.peer.Close() //nolint:errcheck // it has ended either way
	request, err := http.NewRequest(http.MethodDelete, s.location, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode/100 != 2 {
		return &statusError{status: response.StatusCode, text: "to DELETE"}
	}
	return nil
}
