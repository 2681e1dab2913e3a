#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the delay that a server adds, from its upstream's packet to the same packet at readers.

Reads the origin directly, and the server with several readers that join one after the other: a
server that goes through its readers in order serves some of them early and some late. Packets are
matched by payload alone, because a server may write its own RTP headers.
"""

import argparse
import json
import re
import selectors
import socket
import struct
import time

from proc import SIGN_OF_LIFE, Rtsp

SO_TIMESTAMPNS = 35
FIRST_PORT = 61000  # above the kernel's ephemeral ports
SMALLEST = 200  # bytes; shorter payloads can repeat


def payload_of(packet):
    start = 12 + 4 * (packet[0] & 15)
    if packet[0] & 16:
        start += 4 + 4 * struct.unpack_from('>H', packet, start + 2)[0]
    return packet[start:]


class Reader:
    """Plays one URL and records the first arrival of each payload."""

    def __init__(self, url, transport, port):
        host, _, rest = url.removeprefix('rtsp://').partition(':')
        self.url = url
        self.arrivals = {}
        self.media = []
        self._buffer = b''
        self._rtsp = Rtsp(int(rest.partition('/')[0]), host=host)
        body = self._ask('DESCRIBE', url, {'Accept': 'application/sdp'})[2].decode()
        control = [line[10:] for line in body.splitlines() if line.startswith('a=control:')][-1]
        if '://' not in control:
            control = f'{url}/{control}'
        if transport == 'udp':
            self.media = [self._bind(port), self._bind(port + 1)]
            how = f'RTP/AVP;unicast;client_port={port}-{port + 1}'
        else:
            how = 'RTP/AVP/TCP;unicast;interleaved=0-1'
        answer = self._ask('SETUP', control, {'Transport': how})
        if ports := re.search(r'server_port=\d+-(\d+)', answer[1].get('transport', '')):
            self.media[1].sendto(SIGN_OF_LIFE, (host, int(ports[1])))
        self._ask('PLAY', url, {})
        self.socket = self.media[0] if self.media else self._rtsp.socket
        self.socket.setblocking(False)
        self.read = self._read_udp if self.media else self._read_tcp

    def _ask(self, method, url, headers):
        answer = self._rtsp.request(method, url, headers)
        if answer[0] != 200:
            raise SystemExit(f'delay: {method} {url}: {answer[0]}')
        return answer

    @staticmethod
    def _bind(port):
        media = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        media.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        media.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        media.bind(('', port))
        return media

    def close(self):
        """Sends TEARDOWN without waiting for packets that are still on the way."""
        self._rtsp.socket.setblocking(True)
        self._rtsp.cseq += 1
        self._rtsp.send(f'TEARDOWN {self.url} RTSP/1.0\r\nCSeq: {self._rtsp.cseq}\r\n'
                        f'Session: {self._rtsp.session}\r\n\r\n'.encode())

    def _keep(self, packet, at):
        payload = payload_of(packet)
        if len(payload) >= SMALLEST:
            self.arrivals.setdefault(hash(payload), at)

    def _read_udp(self):
        try:
            while True:
                packet, control, _, _ = self.socket.recvmsg(2048, 64)
                seconds, nanoseconds = struct.unpack('qq', control[0][2])
                self._keep(packet, seconds + nanoseconds / 1e9)
        except BlockingIOError:
            pass

    def _read_tcp(self):
        data = self.socket.recv(1 << 20)
        at = time.time()
        data = self._buffer + data
        while len(data) >= 4:
            channel, size = data[1], struct.unpack_from('>H', data, 2)[0]
            if len(data) < 4 + size:
                break
            if channel == 0:
                self._keep(data[4:4 + size], at)
            data = data[4 + size:]
        self._buffer = data


def read_all(readers, until):
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--transport', default='udp', choices=('udp', 'tcp'))
    parser.add_argument('--readers', type=int, default=8, help='number of readers (default: 8)')
    parser.add_argument('--over', type=float, default=5, help='seconds over which the readers join')
    parser.add_argument('--duration', type=float, default=5, help='seconds measured after that')
    parser.add_argument('origin')
    parser.add_argument('server')
    options = parser.parse_args()

    start = time.monotonic()
    origin = Reader(options.origin, 'udp', FIRST_PORT)
    readers = []
    for n in range(options.readers):
        readers.append(Reader(options.server, options.transport, FIRST_PORT + 2 * (n + 1)))
        read_all([origin, *readers], start + (n + 1) * options.over / options.readers)
    for reader in (origin, *readers):
        reader.arrivals.clear()
    read_all([origin, *readers], time.monotonic() + options.duration)

    for reader in (origin, *readers):
        reader.close()
    delays = sorted(
        1e3 * (at - origin.arrivals[payload])
        for reader in readers for payload, at in reader.arrivals.items()
        if payload in origin.arrivals)
    result = {'matched': len(delays)}
    if delays:
        result.update(p50=delays[len(delays) // 2], p99=delays[len(delays) * 99 // 100],
                      max=delays[-1])
    print(json.dumps(result))


if __name__ == '__main__':
    main()
