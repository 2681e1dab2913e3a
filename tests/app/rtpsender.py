# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sender of RTP and RTCP to a port of the proxy, for tests of rtp:// and sdp:// upstreams."""

import socket
import struct
import threading
from contextlib import contextmanager

from control import Watch
from scripted import KEY_PICTURE, SSRC, rtp, sender_report

STEP = 3600 # of the timestamps of two packets
PLI, FIR = 1, 4


def uri(port):
    return f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96'


def packet(number, ssrc=SSRC):
    """Returns a keyframe of one packet that names its number, whatever its sequence number
    becomes."""
    data = rtp(number, number * STEP, KEY_PICTURE + struct.pack('>I', number), ssrc=ssrc)
    return data[:1] + bytes([data[1] | 0x80]) + data[2:]


class Sender:
    """Two sockets, for RTP and RTCP, that send to a port and the next one. `.next` is the number of
    the next packet."""

    def __init__(self, port, address='127.0.0.1'):
        self.port, self.next = port, 0
        self.rtp, self.rtcp = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in (0, 1))
        for each in self.rtp, self.rtcp:
            each.bind((address, 0))
            each.settimeout(10)

    def send(self, *packets):
        for each in packets:
            self.rtp.sendto(each, ('127.0.0.1', self.port))

    @contextmanager
    def watched(self, proxy):
        """Yields a reader that plays; sends packets until then. The reader has got them all."""
        plays = threading.Event()

        def send():
            while not plays.is_set():
                self.send(packet(self.next))
                self.next += 1
                plays.wait(0.02)

        sending = threading.Thread(target=send)
        sending.start()
        try:
            proxy.wait_for_line(r' mount /cam up: ')
            reader = Watch(proxy)
        finally:
            plays.set()
            sending.join()
        with reader:
            self.send(packet(self.next))
            numbers(reader, self.next)
            self.next += 1
            yield reader

    def report(self, timestamp, port=None):
        self.rtcp.sendto(sender_report(1 << 32, timestamp), ('127.0.0.1', port or self.port + 1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rtp.close()
        self.rtcp.close()


def numbers(reader, last):
    """Returns the numbers of the packets that a reader gets, up to `last`."""
    got = []
    while last not in got:
        channel, data = reader.frame()
        if channel == 0:
            got += struct.unpack('>I', data[-4:])
    return got


def session(port, profile, *lines):
    return ('v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n'
            f'm=video {port} RTP/{profile} 96\r\na=rtpmap:96 H264/90000\r\n'
            + ''.join(f'a={line}\r\n' for line in lines))
