# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams and readers that fail in ways that a test chooses."""

import re
import socket
import struct
import threading
import time

from good import play_on
from proc import Rtsp
from scripted import AUDIO, VIDEO, Server, rtp

RESET = struct.pack('ii', 1, 0)  # SO_LINGER: close sends a RST


def close_hard(connection):
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Upstream(Server):
    """A camera over TCP with two tracks. `fault()` makes it fail in one way until `heal()`."""

    # Those that end its run. A run that only loses a track goes on.
    FAULTS = ('killed', 'closed', 'stopped', 'silent', 'unauthorized', 'redirects', 'garbage',
              'half description', 'other tracks', 'garbled media', 'no answer')

    def __init__(self):
        self.broken, self.sent = None, 0
        super().__init__(self._play, tracks=(VIDEO, AUDIO), mangle=self._mangle)

    def fault(self, kind):
        self.broken = kind
        if kind == 'other tracks':
            self.tracks = (VIDEO,) if len(self.tracks) == 2 else (VIDEO, AUDIO)
        if kind in ('stopped', 'silent', 'silent track'):
            return  # the run ends when its read time-out is over
        for session in self.sessions:
            if session.left.is_set():
                continue
            if kind == 'garbled media':
                self._garble(session)
            elif kind == 'killed':
                close_hard(session.connection)
            else:
                self._close(session)

    def heal(self):
        self.broken = None

    @staticmethod
    def _close(session):
        try:
            session.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @staticmethod
    def _garble(session):
        try:
            with session.lock:
                session.connection.sendall(b'\0\1\2 not RTSP\r\n\r\n' * 5000)  # less is skipped
        except OSError:
            pass

    def accept(self):
        while True:
            connection = super().accept()
            if self.broken != 'killed':
                return connection
            close_hard(connection)
            connection.close()

    def _mangle(self, method, answer):
        cseq = re.search(rb'CSeq: \d+\r\n', answer)[0]
        if self.broken in ('stopped', 'no answer', 'closed'):
            return b''
        if self.broken == 'garbage':
            return b'\xff\xfeRTSP/9 ' + answer[20:]
        if method != 'DESCRIBE':
            return answer
        if self.broken == 'unauthorized':
            return b'RTSP/1.0 401 Unauthorized\r\n' + cseq + b'\r\n'
        if self.broken == 'redirects':
            return b'RTSP/1.0 302 Found\r\n' + cseq + f'Location: {self.url}\r\n\r\n'.encode()
        if self.broken == 'half description':
            head, _, body = answer.partition(b'\r\n\r\n')
            half = body[:len(body) // 3]
            return re.sub(rb'Content-Length: \d+', b'Content-Length: %d' % len(half),
                          head) + b'\r\n\r\n' + half
        return answer

    def _play(self, session):
        start, seq = time.monotonic(), 0
        try:
            while not session.left.is_set():
                if self.broken not in ('stopped', 'silent'):
                    session.send(VIDEO, rtp(seq, seq * 1800, b'\x65\x88' + bytes(100)))
                    if self.broken != 'silent track' and len(self.tracks) == 2:
                        session.send(AUDIO, rtp(seq, seq * 960, bytes(60), track=AUDIO))
                seq += 1
                time.sleep(max(0, start + seq * 0.02 - time.monotonic()))
        except OSError:
            pass


class Follower(threading.Thread):
    """Plays a mount of one or two tracks whatever happens, and connects again when it is closed.
    Counts packets."""

    def __init__(self, proxy, path):
        super().__init__(daemon=True)
        self.proxy, self.path, self.packets, self.times = proxy, path, 0, 0
        self.over = threading.Event()
        self.start()

    def _play(self):
        with Rtsp(self.proxy.port, timeout=2) as rtsp:
            url = self.proxy.url(self.path)
            status, _, sdp = rtsp.request('DESCRIBE', url)
            if status != 200:
                time.sleep(0.1)
                return
            for track in range(sdp.decode().count('\nm=')):
                rtsp.request('SETUP', f'{url}/stream={track}', {
                    'Transport': f'RTP/AVP/TCP;unicast;interleaved={2 * track}-{2 * track + 1}'})
            if rtsp.request('PLAY', url)[0] != 200:
                return
            self.times += 1
            while not self.over.is_set():
                try:
                    rtsp.frame()
                    self.packets += 1
                except TimeoutError:
                    rtsp.request('OPTIONS', url)

    def run(self):
        while not self.over.is_set():
            try:
                self._play()
            except (OSError, AssertionError, ValueError, IndexError):
                time.sleep(0.05)


class Source(Server):
    """The camera of the mount that must lose nothing."""

    def __init__(self):
        super().__init__(play_on)


# ---- readers ----


def play(proxy, address, path, transport):
    """Returns a playing reader that connects from this address."""
    rtsp = Rtsp.__new__(Rtsp)
    rtsp.socket = socket.create_connection(('127.0.0.1', proxy.port), 5, (address, 0))
    rtsp.cseq, rtsp.session, rtsp.frames, rtsp._buffer = 0, None, [], b''
    url = proxy.url(path)
    for method, to, headers in (('DESCRIBE', url, {}),
                                ('SETUP', f'{url}/stream=0', {'Transport': transport}),
                                ('PLAY', url, {})):
        status = rtsp.request(method, to, headers)[0]
        if status != 200:
            rtsp.socket.close()
            raise ConnectionError(f'{method}: {status}')
    return rtsp


class Faults:
    """The faults of readers, each a method. `stay` keeps the readers that stopped."""

    TCP = 'RTP/AVP/TCP;unicast;interleaved=0-1'

    def __init__(self, proxy, address, chance):
        self.proxy, self.address, self.chance, self.stay = proxy, address, chance, []

    def _play(self, transport=TCP):
        return play(self.proxy, self.address, '/good', transport)

    def killed(self):
        self._play().socket.close()

    def reset(self):
        rtsp = self._play()
        close_hard(rtsp.socket)
        rtsp.socket.close()

    def half_closed(self):
        rtsp = self._play()
        rtsp.socket.shutdown(socket.SHUT_WR)
        self.stay.append(rtsp)

    def stopped(self):
        self.stay.append(self._play())

    def one_port_again(self):
        """Two readers after each other have the same ports."""
        port = self.chance.randrange(20000, 30000) & ~1
        for _ in range(2):
            self._play(f'RTP/AVP;unicast;client_port={port}-{port + 1}').socket.close()

    def torn_down(self):
        rtsp = self._play()
        rtsp.request('TEARDOWN', self.proxy.url('/good'))
        rtsp.socket.close()

    def within_a_request(self):
        rtsp = self._play()
        rtsp.send(b'GET_PARAMETER rtsp://x RTSP/1.0\r\nCSe')
        rtsp.socket.close()

    def within_a_frame(self):
        rtsp = self._play()
        rtsp.send(b'$\1\xff\xff' + bytes(100))
        rtsp.socket.close()

    KINDS = ('killed', 'reset', 'half_closed', 'stopped', 'one_port_again', 'torn_down',
             'within_a_request', 'within_a_frame')

    def one(self):
        kind = self.chance.choice(self.KINDS)
        getattr(self, kind)()
        if len(self.stay) > 3:
            self.stay.pop(0).socket.close()
        return kind
