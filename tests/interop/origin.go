package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/auth"
)

type originOptions struct {
	listen, clip, path, user, password string
	udpPorts, auth, misbehave, dump    string
	token, tls                         string
}

func runOrigin(args []string) int {
	var o originOptions
	fs := flag.NewFlagSet("origin", flag.ExitOnError)
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8554", "TCP address (port 0: any)")
	fs.StringVar(&o.clip, "clip", "tests/data/bigbuckbunny.mp4", "MP4 with H.264 and AAC")
	fs.StringVar(&o.path, "path", "/cam", "path served")
	fs.StringVar(&o.user, "user", "", "user required")
	fs.StringVar(&o.password, "password", "", "password required")
	fs.StringVar(&o.udpPorts, "udp-ports", "", "RTP,RTCP ports (default: free ones)")
	fs.StringVar(&o.auth, "auth", "digest", "basic, digest or digest-sha256")
	fs.StringVar(&o.token, "token", "", "token required in the query of a DESCRIBE")
	fs.StringVar(&o.tls, "tls", "", "PEM file of a certificate and its key: serve rtsps://")
	fs.StringVar(&o.misbehave, "misbehave", "", "fault to imitate, see README.md")
	fs.StringVar(&o.dump, "dump", "", "file that gets a JSON line per access unit")
	fs.Parse(args) //nolint:errcheck // ExitOnError
	if fs.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "origin: unexpected argument", fs.Arg(0))
		return 64
	}

	// Keep the handlers: a second signal must not change the exit code.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
	}()
	if err := serveOrigin(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "origin:", err)
		return 1
	}
	return 0
}

func serveOrigin(ctx context.Context, o originOptions) error {
	bad, err := parseMisbehave(o.misbehave)
	if err != nil {
		return err
	}
	o.path = "/" + strings.Trim(o.path, "/")
	if bad.mode == "hang" {
		if err := serveHang(o.listen, o.path); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	methods, err := authMethods(o.auth)
	if err != nil {
		return err
	}
	clip, err := loadClip(o.clip)
	if err != nil {
		return err
	}
	dump, err := newDumper(o.dump)
	if err != nil {
		return err
	}

	h := newHandler(o, bad)
	server, err := startServer(o, bad, methods, h)
	if err != nil {
		return err
	}
	defer server.Close()

	s, err := newSender(server, clip, bad, dump)
	if err != nil {
		return err
	}
	defer s.stream.Close()
	h.setSender(s)

	fmt.Printf("READY %s://%s%s\n", o.scheme(), server.NetListener().Addr(), o.path)
	return s.run(ctx)
}

func (o *originOptions) scheme() string {
	if o.tls != "" {
		return "rtsps"
	}
	return "rtsp"
}

// tlsConfig returns nil for a server without TLS.
func (o *originOptions) tlsConfig() (*tls.Config, error) {
	if o.tls == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.tls, o.tls)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, nil
}

func authMethods(name string) ([]auth.VerifyMethod, error) {
	switch name {
	case "basic":
		return []auth.VerifyMethod{auth.VerifyMethodBasic}, nil
	case "digest":
		return []auth.VerifyMethod{auth.VerifyMethodDigestMD5}, nil
	case "digest-sha256":
		return []auth.VerifyMethod{auth.VerifyMethodDigestSHA256}, nil
	}
	return nil, fmt.Errorf("unknown --auth %q", name)
}

func startServer(o originOptions, bad misbehaviour, methods []auth.VerifyMethod, h *handler) (*gortsplib.Server, error) {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, err
	}
	secure, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	// Another process can take a free pair before the server binds it: try again.
	for try := 0; ; try++ {
		server := &gortsplib.Server{
			RTSPAddress:              o.listen,
			Handler:                  h,
			AuthMethods:              methods,
			TLSConfig:                secure,
			WriteQueueSize:           4096,
			DisableRTCPSenderReports: true, // the library's first report comes only after 10 s
		}
		if bad.mode != "no-udp" {
			rtp, rtcp, err := udpPair(host, o.udpPorts)
			if err != nil {
				return nil, err
			}
			server.UDPRTPAddress = net.JoinHostPort(host, rtp)
			server.UDPRTCPAddress = net.JoinHostPort(host, rtcp)
		}
		err := server.Start()
		if err == nil {
			return server, nil
		}
		if o.udpPorts != "" || try == 9 {
			return nil, err
		}
	}
}
