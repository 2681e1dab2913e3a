package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// udpPair returns the wanted RTP,RTCP ports, or a free even/odd pair.
func udpPair(host, want string) (string, string, error) {
	if want != "" {
		rtp, rtcp, ok := strings.Cut(want, ",")
		if !ok {
			return "", "", fmt.Errorf("--udp-ports %q is not RTP,RTCP", want)
		}
		return rtp, rtcp, nil
	}
	for range 200 {
		a, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		if err != nil {
			return "", "", err
		}
		port := a.LocalAddr().(*net.UDPAddr).Port
		if port%2 != 0 || port == 65534 {
			a.Close()
			continue
		}
		next := strconv.Itoa(port + 1)
		b, err := net.ListenPacket("udp", net.JoinHostPort(host, next))
		a.Close()
		if err == nil {
			b.Close()
			return strconv.Itoa(port), next, nil
		}
	}
	return "", "", errors.New("no free pair of UDP ports")
}
