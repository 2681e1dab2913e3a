package main

import (
	"net"
	"syscall"
)

const udpReadBuffer = 8 << 20

// listenPacket gives a UDP socket a large receive buffer, so that a test's own
// reader loses no packets. Root may exceed the system's limit; other users get
// as much as it allows. The library's own option fails if the limit is lower.
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
