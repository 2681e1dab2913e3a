# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTSP client that records when data arrives, by the kernel's clock, over TCP and UDP. Tests use
it to compare arrival times."""

import re
import socket
import struct

from proc import SIGN_OF_LIFE, Rtsp, free_udp_pair

SO_TIMESTAMPNS = 35
ANCILLARY = socket.CMSG_SPACE(16)


def stamp(sock):
    """Makes the kernel record arrival times for this socket from now on."""
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def receive(sock):
    """Returns (data, arrival time in ns). The time is 0 until the kernel's time stamping has
    started."""
    data, ancillary, _, _ = sock.recvmsg(65536, ANCILLARY)
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, ns = struct.unpack('@qq', value)
            return data, seconds * 10**9 + ns
    return data, 0


class Player(Rtsp):
    """Sets up tracks over 'tcp' or 'udp'. play() reports what arrived before the answer."""

    def __init__(self, port, url, transport, tracks=(0,)):
        super().__init__(port)
        self.url = url
        self.came = 0
        self._udp = []
        stamp(self.socket)
        assert self.request('DESCRIBE', url)[0] == 200
        for n in tracks:
            answer = self.request('SETUP', f'{url}/stream={n}',
                                  {'Transport': self._transport(transport, n)})
            assert answer[0] == 200, answer
            if ports := re.search(r'server_port=\d+-(\d+)', answer[1]['transport']):
                self._udp[-1].sendto(SIGN_OF_LIFE, ('127.0.0.1', int(ports[1])))

    def __exit__(self, *_):
        self.socket.close()
        for sock in self._udp:
            sock.close()

    def _transport(self, transport, n):
        if transport == 'tcp':
            return f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
        pair = free_udp_pair()
        for sock in pair:
            sock.settimeout(10)
            stamp(sock)
        self._udp += pair
        port = pair[0].getsockname()[1]
        return f'RTP/AVP;unicast;client_port={port}-{port + 1}'

    def _more(self):
        data, self.came = receive(self.socket)
        if not data:
            raise ConnectionError('the server closed the connection')
        self._buffer += data

    def play(self, headers=None):
        """Sends PLAY. Returns the answer, and a list of the channels on which session data arrived
        before it; UDP sockets are numbered as if they were interleaved channels."""
        assert not self._buffer, self._buffer[:80]
        self.frames.clear()
        answer = self.request('PLAY', self.url, headers)
        early = [channel for channel, _ in self.frames]
        answered = self.came
        assert answered, 'the kernel gave no arrival time'
        for n, sock in enumerate(self._udp):
            # A waiting packet has its arrival time. RTCP may take long, so its sockets are only
            # polled.
            sock.settimeout(0.001 if n % 2 else 10)
            try:
                early += [n] * (receive(sock)[1] < answered)
            except TimeoutError:
                pass
        return answer, early

    def first(self, n):
        """Returns the next RTP packet of a track that was set up over TCP."""
        while True:
            channel, packet = self.frame()
            if channel == 2 * n:
                return packet

    def packets(self, number):
        """Waits for this number of RTP packets of the first track that come from now on."""
        if not self._udp:
            self.frames.clear()
            for _ in range(number):
                self.first(0)
            return
        sock = self._udp[0]
        sock.settimeout(0)
        try:
            while sock.recv(65536):
                pass
        except BlockingIOError:
            pass
        sock.settimeout(10)
        for _ in range(number):
            sock.recv(65536)
