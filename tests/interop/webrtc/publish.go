package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// runPublish sends the H.264 of a file in a loop, in real time.
func runPublish(args []string) int {
	var o sessionOptions
	var rate, seconds float64
	fs := flag.NewFlagSet("publish", flag.ExitOnError)
	fs.Float64Var(&rate, "rate", 25, "pictures a second")
	fs.Float64Var(&seconds, "duration", 0, "seconds to send; 0: until SIGINT")
	fs.BoolVar(&o.tcp, "tcp", false, "connect over TCP")
	fs.StringVar(&o.token, "authorization", "", "header Authorization")
	fs.Parse(args) //nolint:errcheck // ExitOnError
	if fs.NArg() != 2 || rate <= 0 {
		fmt.Fprintln(os.Stderr, "publish: needs a file and a URL, and --rate > 0")
		return 64
	}
	o.codecs = []string{"h264"}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if seconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer cancel()
	}
	if err := publish(ctx, fs.Arg(0), fs.Arg(1), time.Duration(float64(time.Second)/rate), o); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		return 1
	}
	return 0
}

func publish(ctx context.Context, file, endpoint string, step time.Duration, o sessionOptions) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pictures := splitPictures(data)
	if len(pictures) == 0 {
		return errors.New(file + " has no picture")
	}
	peer, err := newPeer(o, &interceptor.Registry{})
	if err != nil {
		return err
	}
	track, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264}, "video", "publisher")
	if err != nil {
		return err
	}
	if _, err = peer.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
		return err
	}
	connected, ended := make(chan struct{}), make(chan struct{})
	var once, onceEnded sync.Once // a lost connection may come back
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			once.Do(func() { close(connected) })
		case webrtc.PeerConnectionStateFailed:
			onceEnded.Do(func() { close(ended) })
		}
	})
	session, err := join(ctx, endpoint, o, peer)
	if err != nil {
		return err
	}
	select {
	case <-connected:
	case <-ctx.Done():
	case <-time.After(patience):
		return errors.New("no connection within 15 s")
	}
	fmt.Println("CONNECTED")
	clock := time.NewTicker(step)
	defer clock.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return session.leave()
		case <-ended:
			return errors.New("the connection has ended")
		case <-clock.C:
			if err = track.WriteSample(media.Sample{Data: pictures[i%len(pictures)], Duration: step}); err != nil {
				return err
			}
		}
	}
}

// splitPictures returns the access units of a byte stream whose pictures begin with first_mb 0.
func splitPictures(data []byte) (pictures [][]byte) {
	var picture []byte
	begun := false // a slice is in it
	for _, unit := range splitAnnexB(data) {
		kind := unit[0] & 0x1f
		slice := kind == 1 || kind == 5
		if begun && (!slice && kind != 12 || slice && unit[1]&0x80 != 0) {
			pictures, picture, begun = append(pictures, picture), nil, false
		}
		begun = begun || slice
		picture = append(append(picture, 0, 0, 0, 1), bytes.TrimRight(unit, "\x00")...)
	}
	if begun {
		pictures = append(pictures, picture)
	}
	return pictures
}
