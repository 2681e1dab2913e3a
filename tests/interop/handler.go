package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/liberrors"
)

func logEvent(event, layout string, args ...any) {
	fmt.Fprintf(os.Stderr, "event="+event+" "+layout+"\n", args...)
}

// handler answers RTSP requests.
type handler struct {
	o   originOptions
	bad misbehaviour

	mu     sync.Mutex
	sender *sender
	ids    map[any]int // connections and sessions, for the log
	lastID int
}

func newHandler(o originOptions, bad misbehaviour) *handler {
	if bad.mode == "401" {
		// No client can know these credentials.
		o.user, o.password = "nobody", fmt.Sprint(time.Now().UnixNano())
	}
	return &handler{o: o, bad: bad, ids: map[any]int{}}
}

func (h *handler) setSender(s *sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sender = s
}

func (h *handler) id(of any) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids[of] == 0 {
		h.lastID++
		h.ids[of] = h.lastID
	}
	return h.ids[of]
}

func (h *handler) forget(of any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ids, of)
}

func (h *handler) OnConnOpen(c *gortsplib.ServerHandlerOnConnOpenCtx) {
	logEvent("connect", "conn=%d remote=%s", h.id(c.Conn), c.Conn.NetConn().RemoteAddr())
}

func (h *handler) OnConnClose(c *gortsplib.ServerHandlerOnConnCloseCtx) {
	logEvent("disconnect", "conn=%d reason=%q", h.id(c.Conn), c.Error)
	h.forget(c.Conn)
}

func (h *handler) OnSessionClose(c *gortsplib.ServerHandlerOnSessionCloseCtx) {
	logEvent("session-end", "session=%d reason=%q", h.id(c.Session), c.Error)
	h.forget(c.Session)
}

func (h *handler) OnRequest(c *gortsplib.ServerConn, req *base.Request) {
	// The library delays each SETUP from a GStreamer client by 1 s, for
	// publishers' sake; readers would only see a slow server.
	delete(req.Header, "User-Agent")
	if req.Method == base.Teardown {
		session := 0
		if s := c.Session(); s != nil {
			session = h.id(s)
		}
		logEvent("teardown", "conn=%d session=%d", h.id(c), session)
	}
}

// OnResponse logs the errors that the library answers itself.
func (h *handler) OnResponse(c *gortsplib.ServerConn, res *base.Response) {
	if res.StatusCode == base.StatusUnsupportedTransport {
		logEvent("setup", "conn=%d session=0 transport=none status=%d", h.id(c), res.StatusCode)
	}
}

// admit returns an error response, or nil and the stream.
func (h *handler) admit(c *gortsplib.ServerConn, req *base.Request, path string) (*base.Response, *gortsplib.ServerStream, error) {
	if h.o.user != "" && !c.VerifyCredentials(req, h.o.user, h.o.password) {
		return &base.Response{StatusCode: base.StatusUnauthorized}, nil, liberrors.ErrServerAuth{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bad.mode == "404" || h.sender == nil || "/"+strings.Trim(path, "/") != h.o.path {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	return nil, h.sender.stream, nil
}

func (h *handler) hasToken(query string) bool {
	values, err := url.ParseQuery(query)
	return h.o.token == "" || err == nil && values.Get("token") == h.o.token
}

func (h *handler) OnDescribe(c *gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	res, stream, err := h.admit(c.Conn, c.Request, c.Path)
	switch {
	case res != nil:
	case !h.hasToken(c.Query):
		res, stream = &base.Response{StatusCode: base.StatusUnauthorized}, nil
	case h.bad.mode == "redirect":
		res = &base.Response{
			StatusCode: base.StatusMovedPermanently,
			Header:     base.Header{"Location": base.HeaderValue{h.bad.url}},
		}
		stream = nil
	case h.bad.mode == "garbage-sdp":
		res = &base.Response{
			StatusCode: base.StatusOK,
			Body:       []byte("\x00\xff\xfenot an sdp\r\nm=\r\n=%%%\r\n\x01\x02"),
		}
		stream = nil
	default:
		res = &base.Response{StatusCode: base.StatusOK}
	}
	logEvent("describe", "conn=%d status=%d", h.id(c.Conn), res.StatusCode)
	return res, stream, err
}

func (h *handler) OnSetup(c *gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	res, stream, err := h.admit(c.Conn, c.Request, c.Path)
	if res == nil {
		res = &base.Response{StatusCode: base.StatusOK}
	}
	logEvent("setup", "conn=%d session=%d transport=%s status=%d", h.id(c.Conn), h.id(c.Session),
		strings.ToLower(c.Transport.Protocol.String()), res.StatusCode)
	return res, stream, err
}

func (h *handler) OnPlay(c *gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	transport := "none"
	if t := c.Session.Transport(); t != nil {
		transport = strings.ToLower(t.Protocol.String())
	}
	logEvent("play", "conn=%d session=%d transport=%s", h.id(c.Conn), h.id(c.Session), transport)
	h.mu.Lock()
	h.sender.lastPlay.Store(time.Now().UnixNano())
	h.mu.Unlock()
	if h.bad.mode == "close-after" {
		time.AfterFunc(h.bad.after, func() {
			c.Conn.Close()
			c.Session.Close()
		})
	}
	return &base.Response{StatusCode: base.StatusOK}, nil
}
