package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
)

const cmProfile = dtls.SRTP_AES128_CM_HMAC_SHA1_80

type readOptions struct {
	sessionOptions
	readers, stagger, lose int
	series                 int
	pli                    int // ms
	duration               time.Duration
	json, units, twcc      bool
	save                   string
}

// What one reader saw. Times are in ms from its POST; -1: never.
type readResult struct {
	Reader     int            `json:"reader"`
	Status     string         `json:"status"` // ok, status-NNN, failed
	Error      string         `json:"error,omitempty"`
	AnsweredMS int64          `json:"answered_ms"`
	ConnectMS  int64          `json:"connected_ms"` // DTLS done
	Disconnect int64          `json:"disconnected_ms"`
	Cipher     string         `json:"cipher"`
	Local      string         `json:"local"` // the chosen pair of candidates
	Remote     string         `json:"remote"`
	Dropped    int64          `json:"dropped"`  // on purpose
	Numbered   int            `json:"numbered"` // packets with a transport-wide number
	Unnumbered int            `json:"unnumbered"`
	Missing    int            `json:"missing"` // numbers that did not come
	Tracks     []*trackResult `json:"tracks"`
}

func runRead(args []string) int {
	var o readOptions
	var seconds float64
	var names string
	fs := flag.NewFlagSet("read", flag.ExitOnError)
	fs.IntVar(&o.readers, "readers", 1, "number of clients")
	fs.IntVar(&o.stagger, "stagger", 0, "milliseconds between the starts of clients")
	fs.Float64Var(&seconds, "duration", 5, "seconds to read, for each client from its connection; SIGINT ends it earlier")
	fs.StringVar(&names, "codecs", "h264,opus", "codecs to offer, of "+known())
	fs.IntVar(&o.lose, "lose", 0, "lose one in N packets on purpose, but none in the first second and the last half second")
	fs.IntVar(&o.pli, "pli", 0, "ask for a keyframe again and again, after so many milliseconds")
	fs.BoolVar(&o.tcp, "tcp", false, "connect over TCP")
	fs.BoolVar(&o.any, "any", false, "connect over UDP or TCP")
	fs.BoolVar(&o.cm, "cm", false, "take AES128_CM_HMAC_SHA1_80 only")
	fs.StringVar(&o.token, "authorization", "", "header Authorization")
	fs.BoolVar(&o.twcc, "twcc", false, "offer transport-wide feedback, and send it")
	fs.BoolVar(&o.units, "units", false, "print the time and the hash of each access unit of the first reader")
	fs.StringVar(&o.save, "save", "", "write the access units of the first reader's H.264 to this file")
	fs.IntVar(&o.series, "series", 0, "print what the readers' videos have had, after every so many milliseconds")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.Parse(args) //nolint:errcheck // ExitOnError
	o.duration = time.Duration(seconds * float64(time.Second))
	o.codecs = strings.Split(names, ",")
	o.loses = o.lose > 0
	if o.twcc {
		o.numbered = []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio}
	}
	if fs.NArg() != 1 || o.readers < 1 {
		fmt.Fprintln(os.Stderr, "read: needs one URL, and --readers >= 1")
		return 64
	}
	var saved io.Writer
	if o.save != "" {
		file, err := os.Create(o.save)
		if err != nil {
			fmt.Fprintln(os.Stderr, "read:", err)
			return 64
		}
		defer file.Close()
		saved = file
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	results := make([]*readResult, o.readers)
	readers := make([]*reader, o.readers)
	for i := range readers {
		readers[i] = newReader(i, o)
	}
	readers[0].saved = saved
	var wg sync.WaitGroup
	done := make(chan struct{})
	defer close(done)
	if o.series > 0 {
		go printSeries(readers, time.Duration(o.series)*time.Millisecond, done)
	}
	for i := range results {
		wg.Add(1)
		go func() {
			defer wg.Done()
			select {
			case <-time.After(time.Duration(i*o.stagger) * time.Millisecond):
			case <-ctx.Done():
			}
			results[i] = readOne(ctx, readers[i], fs.Arg(0))
		}()
	}
	wg.Wait()
	failed := 0
	for _, result := range results {
		if result.Status != "ok" {
			failed++
		}
		if !o.json {
			fmt.Printf("reader %d: %s %s answered=%dms connected=%dms %s %s\n", result.Reader, result.Status,
				result.Error, result.AnsweredMS, result.ConnectMS, result.Cipher, result.Remote)
			for _, track := range result.Tracks {
				fmt.Printf("  %+v\n", *track)
			}
		}
	}
	if o.json {
		json.NewEncoder(os.Stdout).Encode(results) //nolint:errcheck // standard output
	}
	if failed > 0 {
		return 1
	}
	return 0
}

func known() string {
	var names []string
	for name := range offered {
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func newReader(nth int, o readOptions) *reader {
	result := &readResult{Reader: nth, Status: "failed", AnsweredMS: -1, ConnectMS: -1, Disconnect: -1}
	return &reader{result: result, options: o, connected: make(chan struct{}), ended: make(chan struct{}),
		numbers: &numbers{seen: map[int64]bool{}}}
}

func readOne(ctx context.Context, r *reader, endpoint string) *readResult {
	result := r.result
	if err := r.run(ctx, endpoint); err != nil {
		result.Error = err.Error()
		var status *statusError
		if errors.As(err, &status) {
			result.Status = fmt.Sprintf("status-%d", status.status)
		}
	} else {
		result.Status = "ok"
	}
	result.Dropped = r.dropped.Load()
	result.Numbered, result.Unnumbered, result.Missing = len(r.numbers.seen), r.numbers.without, r.numbers.missing()
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, track := range r.tracks {
		track.pass(time.Now(), track.newest+1)
		result.Tracks = append(result.Tracks, &track.result)
	}
	return result
}

type reader struct {
	result           *readResult
	options          readOptions
	connected, ended chan struct{}
	once, onceEnded  sync.Once
	dropped          atomic.Int64
	numbers          *numbers
	saved            io.Writer  // of access units, or nil
	lock             sync.Mutex // for what follows
	started          time.Time
	tracks           []*track
}

func (r *reader) interceptors() (*interceptor.Registry, error) {
	registry := &interceptor.Registry{}
	if r.options.lose > 0 {
		registry.Add(dropperFactory{&dropper{n: r.options.lose, dropped: &r.dropped,
			until: r.options.duration - time.Second/2}})
	}
	if r.options.twcc {
		registry.Add(numbersFactory{r.numbers})
		feedback, err := twcc.NewSenderInterceptor()
		if err != nil {
			return nil, err
		}
		registry.Add(feedback)
	}
	generator, err := nack.NewGeneratorInterceptor(nack.GeneratorInterval(20 * time.Millisecond))
	if err != nil {
		return nil, err
	}
	registry.Add(generator)
	reports, err := report.NewReceiverInterceptor()
	if err != nil {
		return nil, err
	}
	registry.Add(reports)
	return registry, nil
}

func (r *reader) run(ctx context.Context, endpoint string) error {
	registry, err := r.interceptors()
	if err != nil {
		return err
	}
	peer, err := newPeer(r.options.sessionOptions, registry)
	if err != nil {
		return err
	}
	defer peer.Close() //nolint:errcheck // it has ended either way
	kinds := map[webrtc.RTPCodecType]bool{}
	for _, name := range r.options.codecs {
		if kind := offered[name].kind; !kinds[kind] {
			kinds[kind] = true
			if _, err = peer.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{
				Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
				return err
			}
		}
	}
	peer.OnConnectionStateChange(r.stateChanged)
	peer.OnTrack(func(remote *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
		if o := r.options; o.pli > 0 && remote.Kind() == webrtc.RTPCodecTypeVideo {
			go askForKeyframes(peer, uint32(remote.SSRC()), time.Duration(o.pli)*time.Millisecond)
		}
		r.follow(remote, receiver)
	})
	r.lock.Lock()
	r.started = time.Now()
	session, err := join(ctx, endpoint, r.options.sessionOptions, peer)
	if err == nil {
		r.started = session.started
		r.result.AnsweredMS = session.answered.Milliseconds()
	}
	r.lock.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-r.connected:
	case <-r.ended:
	case <-ctx.Done():
	case <-time.After(patience):
		return errors.New("no connection within 15 s")
	}
	r.describe(peer)
	select {
	case <-ctx.Done():
	case <-time.After(r.options.duration):
	case <-r.ended:
		return errors.New("the connection has ended")
	}
	return session.leave()
}

func (r *reader) stateChanged(state webrtc.PeerConnectionState) {
	now := time.Now()
	r.lock.Lock()
	defer r.lock.Unlock()
	switch state {
	case webrtc.PeerConnectionStateConnected:
		r.once.Do(func() {
			r.result.ConnectMS = now.Sub(r.started).Milliseconds()
			close(r.connected)
		})
	case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
		r.onceEnded.Do(func() {
			r.result.Disconnect = now.Sub(r.started).Milliseconds()
			close(r.ended)
		})
	}
}

// describe notes how the connection is made.
func (r *reader) describe(peer *webrtc.PeerConnection) {
	for _, transceiver := range peer.GetTransceivers() {
		dtlsTransport := transceiver.Receiver().Transport()
		if dtlsTransport == nil {
			continue
		}
		if pair, err := dtlsTransport.ICETransport().GetSelectedCandidatePair(); err == nil && pair != nil {
			r.result.Local, r.result.Remote = pair.Local.String(), pair.Remote.String()
		}
	}
	for _, stats := range peer.GetStats() {
		if transport, ok := stats.(webrtc.TransportStats); ok {
			r.result.Cipher = transport.SRTPCipher
		}
	}
}

func (r *reader) follow(remote *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
	r.lock.Lock()
	print := r.options.units && r.result.Reader == 0
	t := newTrack(remote.Kind().String(), remote.Codec().MimeType, r.started, print)
	if r.saved != nil && remote.Kind() == webrtc.RTPCodecTypeVideo {
		t.save = r.saved
	}
	r.tracks = append(r.tracks, t)
	r.lock.Unlock()
	go r.countReports(t, receiver)
	for {
		packet, _, err := remote.ReadRTP()
		if err != nil {
			return
		}
		r.lock.Lock()
		t.take(packet, time.Now())
		r.lock.Unlock()
	}
}

func askForKeyframes(peer *webrtc.PeerConnection, ssrc uint32, interval time.Duration) {
	for peer.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}}) == nil {
		time.Sleep(interval)
	}
}

func (r *reader) countReports(t *track, receiver *webrtc.RTPReceiver) {
	for {
		packets, _, err := receiver.ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			if _, is := packet.(*rtcp.SenderReport); is {
				r.lock.Lock()
				t.result.Reports++
				r.lock.Unlock()
			}
		}
	}
}
