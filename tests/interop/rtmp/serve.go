package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/codecs"
)

// serve takes one publisher at a port of its own, and prints what it sends until it leaves.
func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("READY rtmp://%s/live/stream\n", listener.Addr())
	socket, err := listener.Accept()
	if err != nil {
		return err
	}
	defer socket.Close()
	conn := &gortmplib.ServerConn{RW: socket}
	if err = conn.Initialize(); err != nil {
		return err
	}
	if err = conn.Accept(); err != nil {
		return err
	}
	if !conn.Publish {
		return errors.New("the client does not publish")
	}
	reader := &gortmplib.Reader{Conn: conn}
	if err = reader.Initialize(); err != nil {
		return err
	}
	for _, track := range reader.Tracks() {
		switch track.Codec.(type) {
		case *codecs.H264:
			reader.OnDataH264(track, printVideo)
		case *codecs.MPEG4Audio:
			reader.OnDataMPEG4Audio(track, func(pts time.Duration, au []byte) { printAudio(pts, au) })
		default:
			return fmt.Errorf("unexpected codec %T", track.Codec)
		}
	}
	for err == nil {
		err = reader.Read()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
