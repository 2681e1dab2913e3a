# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests sent before the previous one is answered (RFC 2326, 9.1)."""

import os
import shutil
import tempfile
import threading

from proc import Rtsp
from proxy import CLIP, Proxy
from scripted import KEY_PICTURE, Server, rtp
from tap import run, test

TCP = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}


class Pipe(Rtsp):
    """Sends requests without waiting. Answers are returned as (CSeq, status)."""

    def ask(self, method, url, headers=None, body=b''):
        self.cseq += 1
        fields = {'CSeq': self.cseq, **(headers or {})}
        if body:
            fields['Content-Length'] = len(body)
        head = ''.join(f'{name}: {value}\r\n' for name, value in fields.items())
        self.send(f'{method} {url} RTSP/1.0\r\n{head}\r\n'.encode() + body)

    def answers(self, number):
        got = [self.answer() for _ in range(number)]
        return [(int(headers['cseq']), status) for status, headers, _ in got]


def serve(upstream, films=None, timeout='700ms'):
    """Serves /slow, which waits for this upstream, and /cam, which is up from the start."""
    mounts = {'/slow': {'upstream': upstream, 'start-timeout': timeout, 'connect-timeout': '20s'},
              '/cam': f'file://{CLIP}'}
    if films:
        mounts['/films'] = f'file://{films}/'
    return Proxy(mounts)


@test
def a_title_is_answered_behind_a_mount_that_never_starts():
    with tempfile.TemporaryDirectory() as films, Server(deaf_to=('OPTIONS', 'DESCRIBE')) as origin:
        shutil.copy(CLIP, os.path.join(films, 'clip.mp4'))
        with serve(origin.url, films) as proxy, Pipe(proxy.port) as pipe:
            for _ in range(3):
                pipe.ask('DESCRIBE', proxy.url('/slow'))
                pipe.ask('DESCRIBE', proxy.url('/films/clip.mp4'))
                pipe.ask('DESCRIBE', proxy.url('/slow'))
            assert pipe.answers(9) == [(i, 200 if i % 3 == 2 else 503) for i in range(1, 10)]
            proxy.check_alive()


@test
def a_running_mount_is_answered_behind_one_that_never_starts():
    with Server(deaf_to=('OPTIONS', 'DESCRIBE')) as origin, serve(origin.url) as proxy:
        proxy.ask('DESCRIBE', '/cam')
        with Pipe(proxy.port) as pipe:
            for path in '/slow', '/cam', '/nothing', '/slow', '/cam':
                pipe.ask('DESCRIBE', proxy.url(path))
            assert pipe.answers(5) == [(1, 503), (2, 200), (3, 404), (4, 503), (5, 200)]


@test
def answers_keep_the_order_of_requests():
    with Server(deaf_to=('OPTIONS', 'DESCRIBE')) as origin, serve(origin.url) as proxy, \
            Pipe(proxy.port) as pipe:
        cam = proxy.url('/cam')
        pipe.ask('DESCRIBE', proxy.url('/slow'))
        pipe.send_frame(1, bytes(20))  # is skipped
        pipe.ask('OPTIONS', '*')
        pipe.ask('GET_PARAMETER', cam, {'Session': 'unknown'})
        pipe.ask('SET_PARAMETER', cam, body=b'x: y\r\n')
        pipe.ask('DESCRIBE', cam)
        pipe.ask('SETUP', f'{cam}/stream=0', TCP)
        got = pipe.answers(5)
        assert got == [(1, 503), (2, 200), (3, 454), (4, 451), (5, 200)], got
        status, headers, _ = pipe.answer()
        assert (status, headers['cseq']) == (200, '6'), headers
        pipe.session = headers['session'].split(';')[0]
        assert pipe.request('PLAY', cam)[0] == 200
        pipe.frame()


def keep_playing(session):
    for seq in range(10000):
        session.send(0, rtp(seq, 3600 * seq, KEY_PICTURE))
        if session.left.wait(0.04):
            return


@test
def a_waiting_request_continues_when_its_upstream_is_up():
    asked = threading.Event()
    with Server(play=keep_playing, early=lambda _: asked.wait(10)) as origin, \
            serve(origin.url, timeout='20s') as proxy, Pipe(proxy.port) as pipe:
        slow = proxy.url('/slow')
        pipe.ask('DESCRIBE', slow)
        pipe.ask('SETUP', f'{slow}/stream=0', TCP)
        pipe.ask('DESCRIBE', proxy.url('/nothing'))
        # No other client waits.
        assert proxy.ask('OPTIONS', '/cam')[0] == 200
        asked.set()
        assert pipe.answers(3) == [(1, 200), (2, 200), (3, 404)]


@test
def too_many_waiting_requests_close_the_connection():
    for body, number in (b'', 40), (bytes(60000), 4):
        with Server(deaf_to=('OPTIONS', 'DESCRIBE')) as origin, \
                serve(origin.url, timeout='20s') as proxy, Pipe(proxy.port) as pipe:
            pipe.ask('DESCRIBE', proxy.url('/slow'))
            try:
                for _ in range(number):
                    pipe.ask('SET_PARAMETER', proxy.url('/cam'), body=body)
            except (BrokenPipeError, ConnectionResetError):
                pass
            assert pipe.closed()
            assert proxy.ask('OPTIONS', '/cam')[0] == 200


if __name__ == '__main__':
    run()
