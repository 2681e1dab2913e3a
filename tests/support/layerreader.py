# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTSP reader of one video track that sends the receiver reports a test asks for."""

import contextlib
import re
import select
import socket
import struct
import threading
import time

from proc import SIGN_OF_LIFE, Rtsp
from svcfile import Assembler

RECEIVE_BUFFER = 1 << 22
SO_RCVBUFFORCE = 33


def udp_pair(address='127.0.0.1'):
    """Returns two sockets, on an even port and the next one."""
    while True:
        rtp, rtcp = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        rtp.bind((address, 0))
        port = rtp.getsockname()[1]
        with contextlib.suppress(OSError):
            if port % 2 == 0:
                rtcp.bind((address, port + 1))
                # Without the privilege for it, as much as the system lets anyone have.
                rtp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
                with contextlib.suppress(PermissionError):
                    rtp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
                return rtp, rtcp
        rtp.close()
        rtcp.close()


class LayerReader:
    """Plays in its own thread until it is closed. `.rate`, in bytes per second, limits how fast it
    reads over TCP; `.report()` sends a receiver report over UDP."""

    def __init__(self, port, url, tcp=False, host='127.0.0.1', receive_buffer=None, assembler=None):
        self.assembler = assembler or Assembler()
        self.bytes, self.packets, self.rate, self.first_seq, self.rtp_info = 0, 0, None, None, None
        self.error = None
        self._ends, self._tcp = threading.Event(), tcp
        self._ssrc, self._highest, self._lost = 0, None, 0
        self._sockets = ()
        self.rtsp = Rtsp(port, host)
        try:
            if receive_buffer:
                self.rtsp.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self._play(url)
        except BaseException:
            self._close()
            raise
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _play(self, url):
        status, headers, _ = self.rtsp.request('DESCRIBE', url)
        assert status == 200, status
        base = headers.get('content-base', url + '/')
        transport = 'RTP/AVP/TCP;unicast;interleaved=0-1'
        if not self._tcp:
            self._sockets = udp_pair(self.rtsp.socket.getsockname()[0])
            port = self._sockets[0].getsockname()[1]
            transport = f'RTP/AVP;unicast;client_port={port}-{port + 1}'
        status, headers, _ = self.rtsp.request('SETUP', base + 'stream=0', {'Transport': transport})
        assert status == 200, status
        if not self._tcp:
            there = int(re.search(r'server_port=\d+-(\d+)', headers['transport'])[1])
            self._there = (self.rtsp.socket.getpeername()[0], there)
            self._sockets[1].sendto(SIGN_OF_LIFE, self._there)
        status, headers, _ = self.rtsp.request('PLAY', url)
        assert status == 200, status
        self.rtp_info = headers.get('rtp-info')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._ends.set()
        self._thread.join()
        self._close()

    def _close(self):
        self.rtsp.socket.close()
        for each in self._sockets:
            each.close()

    def peer(self):
        """Returns the reader's address as the proxy writes it."""
        host, port = self.rtsp.socket.getsockname()
        return f'{host}:{port}'

    def _run(self):
        try:
            while not self._ends.is_set():
                packet = self._take_tcp() if self._tcp else self._take_udp()
                if packet:
                    self._got(packet)
        except OSError as error:
            if not self._ends.is_set():
                self.error = error

    def _take_tcp(self):
        if not self.rtsp.frames and not self.rtsp._buffer \
                and not select.select([self.rtsp.socket], [], [], 0.1)[0]:
            return None
        channel, packet = self.rtsp.frame()
        if self.rate:
            self._ends.wait(len(packet) / self.rate)
        return packet if channel == 0 else None

    def _take_udp(self):
        if not select.select([self._sockets[0]], [], [], 0.1)[0]:
            return None
        return self._sockets[0].recv(65536)

    def _got(self, packet):
        _, _, seq, _, self._ssrc = struct.unpack_from('>BBHII', packet)
        if self._highest is None:
            self.first_seq = self._highest = seq
        step = (seq - self._highest + 0x8000) % 0x10000 - 0x8000
        if step > 1:
            self._lost += step - 1
        self._highest = max(self._highest, self._highest + step)
        self.packets += 1
        self.bytes += len(packet)
        self.assembler.add(packet)

    def report(self, lost=None):
        """Sends a receiver report with the counted loss, or with `lost` packets if given."""
        if self._highest is None:
            return
        lost = self._lost if lost is None else lost
        self._sockets[1].sendto(
            struct.pack('>BBHIIIIIII', 0x81, 201, 7, 0x5ead0000 + self._sockets[0].getsockname()[1],
                        self._ssrc, lost & 0xffffff, self._highest, 0, 0, 0), self._there)

    def expected(self):
        return 0 if self._highest is None else self._highest - self.first_seq + 1

    def wait_for(self, n, timeout=30):
        """Waits for `n` more pictures."""
        pictures = self.assembler.pictures
        until = len(pictures) + n
        deadline = time.monotonic() + timeout
        while len(pictures) < until:
            assert not self.error and time.monotonic() < deadline, (self.error, len(pictures), until)
            time.sleep(0.02)
