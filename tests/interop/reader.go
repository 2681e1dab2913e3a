package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/liberrors"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const connectTimeout = 10 * time.Second

// reader is a single client.
type reader struct {
	o      readOptions
	res    *readerResult
	tracks map[string]*assembler
	taps   []*arrivals

	mu     sync.Mutex
	conn   net.Conn
	playAt time.Time
	first  time.Time
}

func newReader(n int, o readOptions) *reader {
	return &reader{
		o: o,
		res: &readerResult{
			Reader: n, Status: "ok", DisconnectedMS: -1, FirstPacketMS: -1,
			Tracks: map[string]*trackResult{},
		},
		tracks: map[string]*assembler{},
	}
}

func (r *reader) newClient(u *base.URL) *gortsplib.Client {
	protocol := gortsplib.ProtocolTCP
	if r.o.transport == "udp" {
		protocol = gortsplib.ProtocolUDP
	}
	// Silence is measured, not an error; run() limits the wait.
	patience := r.o.duration + time.Minute
	playing := false
	return &gortsplib.Client{
		Scheme:                u.Scheme,
		Host:                  u.Host,
		Protocol:              &protocol,
		ReadTimeout:           patience,
		InitialUDPReadTimeout: patience,
		UserAgent:             "interop",
		ListenPacket:          listenPacket,
		TLSConfig:             &tls.Config{InsecureSkipVerify: true}, // its certificate is made by the test
		OnPacketsLost:         func(uint64) {},
		OnDecodeError:         func(error) {},
		OnRequest:             func(q *base.Request) { playing = q.Method == base.Play },
		OnResponse: func(*base.Response) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if playing && r.playAt.IsZero() {
				r.playAt = time.Now()
			}
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			d := net.Dialer{Timeout: connectTimeout}
			conn, err := d.DialContext(ctx, network, address)
			if err == nil {
				r.mu.Lock()
				r.conn = conn
				r.mu.Unlock()
			}
			return conn, err
		},
	}
}

// hangUp closes the connection under the client, which then cannot send
// TEARDOWN.
func (r *reader) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		r.conn.Close()
	}
}

func (r *reader) run(u *base.URL) {
	c := r.newClient(u)
	if err := c.Start(); err != nil {
		r.fail(err)
		return
	}
	// A client that waits for an answer ignores Close, so end its connection.
	watchdog := time.AfterFunc(connectTimeout, r.hangUp)
	err := r.play(c, u)
	if !watchdog.Stop() && err != nil {
		err = errors.New("no answer in time")
	}
	if err != nil {
		r.hangUp()
		c.Close()
		r.fail(err)
		return
	}
	r.read(c)
}

func (r *reader) read(c *gortsplib.Client) {
	began := time.Now()
	gone := make(chan error, 1)
	go func() { gone <- c.Wait() }()
	ended := false
	select {
	case err := <-gone:
		ended = true
		r.res.Status, r.res.Error = "disconnected", fmt.Sprint(err)
		r.res.DisconnectedMS = time.Since(began).Milliseconds()
	case <-time.After(r.o.duration):
	case <-r.o.interrupted:
	}
	end := time.Now()
	if r.o.noTeardown {
		r.hangUp()
	}
	// TEARDOWN has a time limit too. Close waits for the callbacks to end, so
	// their results can be read afterwards.
	watchdog := time.AfterFunc(2*time.Second, r.hangUp)
	c.Close()
	watchdog.Stop()
	if !ended {
		<-gone
	}

	for _, t := range r.taps {
		t.finish(end)
	}
	for _, a := range r.tracks {
		a.res.Reports = int(a.reports.Load())
	}
	if !r.first.IsZero() {
		r.res.FirstPacketMS = max(0, r.first.Sub(r.playAt).Milliseconds())
	}
}

func (r *reader) play(c *gortsplib.Client, u *base.URL) error {
	desc, _, err := c.Describe(u)
	if err != nil {
		return err
	}
	if err := r.tap(desc); err != nil {
		return err
	}
	if err := c.SetupAll(desc.BaseURL, desc.Medias); err != nil {
		return err
	}
	for _, m := range desc.Medias {
		f := m.Formats[0].(*tapFormat)
		a := r.tracks[f.name]
		a.ntpOf = func(p *rtp.Packet) (time.Time, bool) { return c.PacketNTP(m, p) }
		c.OnPacketRTP(m, f, a.packet)
		c.OnPacketRTCP(m, func(p rtcp.Packet) {
			if _, ok := p.(*rtcp.SenderReport); ok {
				a.reports.Add(1)
			}
		})
	}
	_, err = c.Play(nil)
	return err
}

// tap replaces the library's formats with ours.
func (r *reader) tap(desc *description.Session) error {
	for _, m := range desc.Medias {
		if len(m.Formats) != 1 {
			return errors.New("a track has several formats")
		}
		res := &trackResult{SSRC: -1, TSDelta: -1}
		name, a, err := newAssembler(m.Formats[0], res)
		if err != nil {
			return err
		}
		if r.tracks[name] != nil {
			return errors.New("two tracks of " + name)
		}
		t := &arrivals{res: res, first: r.firstPacket}
		r.taps = append(r.taps, t)
		r.tracks[name], r.res.Tracks[name] = a, res
		m.Formats[0] = &tapFormat{Format: m.Formats[0], name: name, to: t}
	}
	return nil
}

func (r *reader) firstPacket() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first.IsZero() {
		r.first = time.Now()
	}
}

func (r *reader) fail(err error) {
	r.res.Status, r.res.Error = "connect-failed", err.Error()
	var bad liberrors.ErrClientBadStatusCode
	if errors.As(err, &bad) {
		r.res.Status = fmt.Sprintf("status-%d", bad.Code)
	}
}
