package main

import (
	"fmt"
	"net"
)

// serveHang accepts connections, reads their data and never answers.
func serveHang(listen, path string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("READY rtsp://%s%s\n", ln.Addr(), path)
	go func() {
		for id := 1; ; id++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go drain(id, conn)
		}
	}()
	return nil
}

func drain(id int, conn net.Conn) {
	logEvent("connect", "conn=%d remote=%s", id, conn.RemoteAddr())
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			break
		}
	}
	conn.Close()
	logEvent("disconnect", "conn=%d", id)
}
