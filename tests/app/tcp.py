# SPDX-License-Identifier: LGPL-2.1-or-later
"""TCP readers that do not read, and strangers that try to use their sessions."""

import socket
import struct
import time
from contextlib import suppress

from proc import Rtsp
from proxy import Origin, Proxy, Read, check_whole, matches, wait_for_readers
from tap import run, test


class Deaf(Rtsp):
    """Plays with a small receive buffer and does not read."""

    def __init__(self, proxy, url=None):
        super().__init__(proxy.port)
        self.socket.close()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(10)
        self.socket.connect(('127.0.0.1', proxy.port))
        play(self, url or proxy.url())


def live(origin):
    """With join: live, because a reader that begins at an earlier keyframe has shifted
    timestamps. What a busy machine loses of an upstream over UDP would be missing for readers, too."""
    return {'/cam': {'upstream': origin.url, 'join': 'live', 'transport': 'tcp'}}


def play(rtsp, url):
    assert rtsp.request('DESCRIBE', url)[0] == 200
    for n in 0, 1:
        transport = f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
        answer = rtsp.request('SETUP', f'{url}/stream={n}', {'Transport': transport})
        assert answer[0] == 200, answer
    assert rtsp.request('PLAY', url)[0] == 200


@test(timeout=120)
def stalled_readers_do_not_affect_others():
    with Origin() as origin, Proxy(live(origin)) as proxy:
        deaf = [Deaf(proxy) for _ in range(8)]
        reads = [Read(proxy.url(), transport=transport, readers=3, duration=6,
                      expect=origin.expect) for transport in ('tcp', 'udp')]
        for read in reads:
            check_whole(read.result(), 3)
        proxy.check_alive()
        for rtsp in deaf:
            rtsp.socket.close()
        proxy.wait_for_line(' out: ')
        check_whole(Read(proxy.url(), readers=1, duration=2, expect=origin.expect).result(), 1)


@test
def stalled_tcp_readers_do_not_affect_udp_readers():
    """while all TCP readers stall, UDP readers continue"""
    with Origin() as origin, Proxy(live(origin)) as proxy:
        deaf = [Deaf(proxy) for _ in range(3)]
        wait_for_readers(proxy, 3)
        result = Read(proxy.url(), transport='udp', readers=2, duration=6,
                      expect=origin.expect).result()
        check_whole(result, 2)
        for rtsp in deaf:
            rtsp.socket.close()


@test(timeout=100)
def the_log_names_thinned_readers():
    with Origin() as origin, Proxy(live(origin)) as proxy:
        rtsp = Deaf(proxy)
        rtsp.socket.settimeout(0.2)
        proxy.wait_for_line(r' reader 127\.0\.0\.1:\d+ thinned: /cam: it gets [\w ]+ only; lag ', 20)
        end = time.monotonic() + 50
        while not matches(proxy, r' reader \S+ recovered: /cam: it gets all packets again$'):
            assert time.monotonic() < end, 'the log does not say that it reads again'
            with suppress(TimeoutError):
                rtsp.socket.recv(1 << 20)


@test
def a_stranger_cannot_use_a_session():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy, Rtsp(proxy.port) as victim:
        play(victim, proxy.url())
        for method in 'OPTIONS', 'TEARDOWN', 'PAUSE', 'PLAY', 'GET_PARAMETER', 'SETUP':
            with Rtsp(proxy.port) as stranger:
                headers = {'Session': victim.session,
                           'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
                url = proxy.url() + ('/stream=0' if method == 'SETUP' else '')
                status, answer, _ = stranger.request(method, url, headers)
                # A SETUP gets a session of its own, as some clients make one up.
                own = method == 'SETUP' and answer['session'].split(';')[0] != victim.session
                assert status == (200 if own else 454), (method, status)
            # The stranger has left, and the victim still plays.
            victim.frames.clear()
            for _ in range(10):
                victim.frame()


@test
def http_tunnels_are_refused():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        with Rtsp(proxy.port) as rtsp:
            rtsp.send(b'GET /cam HTTP/1.0\r\nx-sessioncookie: abc\r\n'
                      b'Accept: application/x-rtsp-tunnelled\r\n\r\n')
            # The connection does not become half a tunnel.
            assert rtsp.answer()[0] == 505
            assert rtsp.closed()


@test
def readers_may_leave_in_the_middle_of_a_frame():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        read = Read(proxy.url(), readers=2, duration=5, expect=origin.expect)
        wait_for_readers(proxy, 2)
        for n in range(20):
            with Rtsp(proxy.port) as rtsp:
                play(rtsp, proxy.url())
                rtsp.socket.recv(1 + 3 * n)
                if n % 2:
                    rtsp.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack('ii', 1, 0))
        check_whole(read.result(), 2)
        proxy.check_alive()


if __name__ == '__main__':
    run()
