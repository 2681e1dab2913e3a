package main

import (
	"net"
	"syscall"
)

const udpReadBuffer = 8 << 20

// listenPacket gives a UDP socket a large receive buffer: a test must not
// lose packets to its own reader. Root may pass the system's limit; others
// get as much as it allows. The library's own option fails where it is less.
func listenPacket(network, address string) (net.PacketConn, error) {
	pc, err := net.ListenPacket(network, address)
	if err != nil {
		return nil, err
	}
	conn := pc.(*net.UDPConn)
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, err
	}
	var forced error
	err = raw.Control(func(fd uintptr) {
		forced = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, udpReadBuffer)
	})
	if err == nil && forced != nil {
		err = conn.SetReadBuffer(udpReadBuffer)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
