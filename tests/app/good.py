# SPDX-License-Identifier: LGPL-2.1-or-later
"""A reader that plays while others misbehave, and notices a missing packet."""

import os
import re
import socket
import struct
import threading
import time

from proc import SIGN_OF_LIFE, Rtsp
from scripted import KEY_PICTURE, PICTURE, VIDEO, rtp

SANITIZED = bool(os.environ.get('WEIR_SANITIZER_RUNTIME'))
# Other processes on the machine slow it down, and the sanitizers the proxy.
PATIENCE = 40 if SANITIZED else 10


def play_on(session):
    """Plays 50 pictures a second for a scripted server, with a keyframe every half second."""
    start = time.monotonic()
    seq = 0
    try:
        while not session.left.is_set():
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE if seq % 25 == 0 else PICTURE))
            seq += 1
            time.sleep(max(0, start + seq * 0.02 - time.monotonic()))
    except OSError:
        pass


class Good(threading.Thread):
    """Plays /good. `.wrong` says what was missing. Ends when `proxy.over` is set."""

    def __init__(self, proxy, udp):
        super().__init__(daemon=True)
        self.proxy, self.packets, self.wrong = proxy, 0, None
        self.rtsp = Rtsp(proxy.port, timeout=PATIENCE + 2)
        url = proxy.url('/good')
        assert self.rtsp.request('DESCRIBE', url)[0] == 200
        transport, self.socket = 'RTP/AVP/TCP;unicast;interleaved=0-1', None
        if udp:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            self.socket.bind(('127.0.0.1', 0))
            self.socket.settimeout(PATIENCE + 2)
            port = self.socket.getsockname()[1]
            transport = f'RTP/AVP;unicast;client_port={port}-{port + 1}'
        status, headers, _ = self.rtsp.request('SETUP', f'{url}/stream=0', {'Transport': transport})
        assert status == 200, status
        if udp:
            port = int(re.search(r'server_port=(\d+)', headers['transport'])[1])
            self.socket.sendto(SIGN_OF_LIFE, ('127.0.0.1', port))
        assert self.rtsp.request('PLAY', url)[0] == 200

    def _packet(self):
        if self.socket:
            return self.socket.recv(65536)
        while True:
            channel, data = self.rtsp.frame()
            if channel == 0:
                return data

    def run(self):
        last, kept = None, time.monotonic()
        try:
            while not self.proxy.over.is_set():
                if time.monotonic() > kept + 20:
                    kept = time.monotonic()
                    assert self.rtsp.request('OPTIONS', self.proxy.url('/good'))[0] == 200
                seq = struct.unpack_from('>H', self._packet(), 2)[0]
                if last is not None and seq != (last + 1) & 0xffff:
                    self.wrong = f'{seq} came after {last}'
                    return
                last, self.packets = seq, self.packets + 1
            self.rtsp.request('TEARDOWN', self.proxy.url('/good'))
            self.rtsp.socket.close()
        except (OSError, AssertionError) as error:
            self.wrong = repr(error)
