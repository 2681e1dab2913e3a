package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/oggreader"
)

type publishOptions struct {
	sessionOptions
	file, sound string
	step        time.Duration
	lose        int
	codec       string // that of the file
	pictures    [][]byte
	publishers  int
	layers      layers
	silent      silences
}

// runPublish sends the video of a file, and the Opus of another one, each in a loop, in real time.
func runPublish(args []string) int {
	var o publishOptions
	var rate, seconds float64
	fs := flag.NewFlagSet("publish", flag.ExitOnError)
	fs.Float64Var(&rate, "rate", 25, "pictures a second")
	fs.Float64Var(&seconds, "duration", 0, "seconds to send; 0: until SIGINT")
	fs.StringVar(&o.sound, "sound", "", "FILE.ogg with Opus, a packet of 20 ms in each page")
	fs.Var(&o.layers, "layer", "RID=FILE, a further layer (simulcast), the first one being h; may be repeated")
	fs.Var(&o.silent, "silent", "RID=FROM-TO, seconds in which a layer is not sent; may be repeated")
	fs.IntVar(&o.lose, "lose", 0, "lose one in N packets on purpose, but none in the first second")
	fs.IntVar(&o.publishers, "publishers", 1, "number of publishers, each to the URL with its number, from 0, in place of {n}")
	fs.BoolVar(&o.tcp, "tcp", false, "connect over TCP")
	fs.BoolVar(&o.cm, "cm", false, "take AES128_CM_HMAC_SHA1_80 only")
	fs.StringVar(&o.token, "authorization", "", "header Authorization")
	fs.Parse(args) //nolint:errcheck // ExitOnError
	if fs.NArg() != 2 || rate <= 0 || o.publishers < 1 {
		fmt.Fprintln(os.Stderr, "publish: needs a file and a URL, --rate > 0 and --publishers > 0")
		return 64
	}
	o.file, o.step = fs.Arg(0), time.Duration(float64(time.Second)/rate)
	var err error
	if o.codec, o.pictures, err = loadPictures(o.file); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		return 1
	}
	o.codecs = []string{o.codec, "opus"}
	o.labelled = len(o.layers) > 0
	o.numbered = []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if seconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer cancel()
	}
	results := make(chan error)
	for i := range o.publishers {
		go func() { results <- publish(ctx, strings.ReplaceAll(fs.Arg(1), "{n}", strconv.Itoa(i)), o) }()
	}
	status := 0
	for range o.publishers {
		if err := <-results; err != nil {
			fmt.Fprintln(os.Stderr, "publish:", err)
			status = 1
		}
	}
	return status
}

// A clip is what a track sends in a loop, a piece at each step.
type clip struct {
	track  *webrtc.TrackLocalStaticSample
	pieces [][]byte
	step   time.Duration
	sent   int
	silent []silence
}

func (c *clip) due() time.Duration { return time.Duration(c.sent) * c.step }

func (c *clip) send() error {
	piece := c.pieces[c.sent%len(c.pieces)]
	due := c.due()
	c.sent++
	for _, each := range c.silent {
		if due >= each.from && due < each.to {
			return nil
		}
	}
	return c.track.WriteSample(media.Sample{Data: piece, Duration: c.step})
}

func newClip(peer *webrtc.PeerConnection, mime string, pieces [][]byte, step time.Duration) (*clip, error) {
	track, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: mime},
		strings.ToLower(mime[:5]), "publisher")
	if err != nil {
		return nil, err
	}
	_, err = peer.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionSendonly})
	return &clip{track: track, pieces: pieces, step: step}, err
}

func loadClips(peer *webrtc.PeerConnection, o publishOptions) (clips []*clip, err error) {
	if len(o.layers) > 0 {
		clips, err = newLayers(peer, o)
	} else {
		video, problem := newClip(peer, offered[o.codec].params[0].MimeType, o.pictures, o.step)
		clips, err = []*clip{video}, problem
	}
	if err != nil || o.sound == "" {
		return clips, err
	}
	sounds, err := readOpus(o.sound)
	if err != nil {
		return nil, err
	}
	audio, err := newClip(peer, webrtc.MimeTypeOpus, sounds, 20*time.Millisecond)
	return append(clips, audio), err
}

// readOpus returns the packets of a file.
func readOpus(name string) (packets [][]byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	pages, _, err := oggreader.NewWith(file)
	if err != nil {
		return nil, err
	}
	for {
		page, header, err := pages.ParseNextPage()
		if errors.Is(err, io.EOF) && len(packets) > 0 {
			return packets, nil
		}
		if err != nil {
			return nil, err
		}
		if header.GranulePosition > 0 { // not the tags
			packets = append(packets, page)
		}
	}
}

// A schedule says how late, in ns, this program is at the moment: on a busy machine it sends pieces after they
// are due. Reports must not depend on that.
type schedule struct{ late atomic.Int64 }

func (s *schedule) now() time.Time { return time.Now().Add(-time.Duration(s.late.Load())) }

// publishers answers to NACKs and sends reports; what is lost on purpose is lost behind that.
func publishers(o publishOptions, dropped *atomic.Int64, rids *sync.Map, times *schedule) (*interceptor.Registry, error) {
	registry := &interceptor.Registry{}
	if o.lose > 0 {
		registry.Add(dropperFactory{&dropper{n: o.lose, dropped: dropped, until: time.Hour}})
	}
	responder, err := nack.NewResponderInterceptor()
	if err != nil {
		return nil, err
	}
	registry.Add(responder)
	reports, err := report.NewSenderInterceptor(report.SenderNow(times.now))
	if err != nil {
		return nil, err
	}
	registry.Add(reports)
	numbers, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		return nil, err
	}
	registry.Add(numbers)
	if len(o.layers) > 0 {
		registry.Add(labeller{rids}) // the last one is the first to see a packet
	}
	return registry, nil
}

func publish(ctx context.Context, endpoint string, o publishOptions) error {
	var dropped atomic.Int64
	var rids sync.Map
	var times schedule
	registry, err := publishers(o, &dropped, &rids, &times)
	if err != nil {
		return err
	}
	peer, err := newPeer(o.sessionOptions, registry)
	if err != nil {
		return err
	}
	clips, err := loadClips(peer, o)
	if err != nil {
		return err
	}
	var heard feedback
	for _, sender := range peer.GetSenders() {
		for _, encoding := range sender.GetParameters().Encodings {
			rids.Store(uint32(encoding.SSRC), encoding.RID)
			go heard.follow(sender, encoding.RID)
		}
	}
	connected, ended := make(chan struct{}), make(chan struct{})
	var once, onceEnded sync.Once // a lost connection may come back
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			once.Do(func() { close(connected) })
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			onceEnded.Do(func() { close(ended) })
		}
	})
	session, err := join(ctx, endpoint, o.sessionOptions, peer)
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
	err = sendAll(ctx, clips, ended, &times)
	fmt.Printf("dropped=%d nacked=%d keys=%d reports=%d transport=%d\n", dropped.Load(), heard.nacked.Load(),
		heard.keys.Load(), heard.reports.Load(), heard.transport.Load())
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // the last packets come before the DELETE
	return session.leave()
}

func sendAll(ctx context.Context, clips []*clip, ended chan struct{}, times *schedule) error {
	start := time.Now()
	for {
		next := clips[0]
		for _, each := range clips {
			if each.due() < next.due() {
				next = each
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return errors.New("the connection has ended")
		case <-time.After(time.Until(start.Add(next.due()))):
			times.late.Store(int64(time.Since(start.Add(next.due()))))
			if err := next.send(); err != nil {
				return err
			}
		}
	}
}

// What the server said of the packets.
type feedback struct {
	nacked, keys, reports, transport atomic.Int64
}

func (f *feedback) follow(sender *webrtc.RTPSender, rid string) {
	for {
		packets, _, err := readRTCP(sender, rid)
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet := packet.(type) {
			case *rtcp.TransportLayerNack:
				for _, pair := range packet.Nacks {
					f.nacked.Add(int64(len(pair.PacketList())))
				}
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				f.keys.Add(1)
				fmt.Println("KEY", rid)
			case *rtcp.ReceiverReport:
				f.reports.Add(int64(len(packet.Reports)))
			case *rtcp.TransportLayerCC:
				f.transport.Add(1)
			}
		}
	}
}
