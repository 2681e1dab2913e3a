# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with a low limit of open files, and crowds of clients of all its protocols: each is served
or refused, the readers that play lose nothing, and the proxy serves again when the crowd has left."""

import collections
import contextlib
import os
import resource
import shutil
import signal
import socket
import ssl
import tempfile
import threading

from control import rss_kib
from good import SANITIZED
from libsrt import Caller
from proc import Rtsp, free_udp_pair
from proxy import CLIP, Origin, wait_until
from secured import Secure, trust
from tap import run, test
from watchers import Player, Watchers

CROWD = 500  # for each limit
THREADS = 12
CALLERS = 8  # over SRT
PATIENCE = 30


class Everything(Secure):
    """A proxy with a port of each protocol, a live mount and titles."""

    def __init__(self, origin, limit):
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(CLIP, os.path.join(self.folder.name, 'clip.mp4'))
        super().__init__({'/cam': {'upstream': origin.url, 'transport': 'tcp'},
                          '/films': {'upstream': f'file://{self.folder.name}/', 'max-titles': 1000}},
                         http={'listen': '127.0.0.1:0'},
                         srt={'listen': '127.0.0.1:0'},
                         limits={'connections': 100000, 'idle-timeout': '600s'})
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE,
                         (limit, resource.prlimit(self.pid, resource.RLIMIT_NOFILE)[1]))
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])
        self.srt_port = int(self.wait_for_line(r' srt://127\.0\.0\.1:(\d+)$')[1])


def play(rtsp, url, stack, transport):
    """Returns 'plays', or the method that was refused and its status."""
    requests = [('DESCRIBE', url, None)]
    requests += [('SETUP', f'{url}/stream={track}', {'Transport': transport(stack, track)})
                 for track in range(2)]
    for method, where, fields in [*requests, ('PLAY', url, None)]:
        status = rtsp.request(method, where, fields)[0]
        if status != 200:
            return method, status
    return 'plays'


def interleaved(_stack, track):
    return f'RTP/AVP/TCP;unicast;interleaved={2 * track}-{2 * track + 1}'


def datagrams(stack, _track):
    rtp, rtcp = map(stack.enter_context, free_udp_pair())
    return f'RTP/AVP;unicast;client_port={rtp.getsockname()[1]}-{rtcp.getsockname()[1]}'


def over_tcp(proxy, stack, path='/cam', way=interleaved):
    return play(stack.enter_context(Rtsp(proxy.port, timeout=PATIENCE)), proxy.url(path), stack, way)


def over_udp(proxy, stack):
    return over_tcp(proxy, stack, way=datagrams)


def title(proxy, stack):
    return over_tcp(proxy, stack, '/films/clip.mp4')


def silent(proxy, stack):
    stack.enter_context(socket.create_connection(('127.0.0.1', proxy.port)))
    return 'connected'


def over_tls(proxy, stack):
    plain = stack.enter_context(socket.create_connection(('127.0.0.1', proxy.tls_port), PATIENCE))
    rtsp = Rtsp.__new__(Rtsp)
    rtsp.cseq, rtsp.session, rtsp.frames, rtsp._buffer = 0, None, [], b''
    rtsp.socket = stack.enter_context(
        trust(proxy.pem).wrap_socket(plain, server_hostname='127.0.0.1'))
    return play(rtsp, proxy.tls_url(), stack, interleaved)


def fetch(proxy, stack, path):
    web = stack.enter_context(socket.create_connection(('127.0.0.1', proxy.web_port), PATIENCE))
    web.sendall(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.encode())
    head = web.recv(4096)
    return 'HTTP', int(head.split()[1]) if head else 'closed'


def film(proxy, stack):
    return fetch(proxy, stack, '/films/clip.mp4')


def transport_stream(proxy, stack):
    return fetch(proxy, stack, '/ts/cam')


def hls(proxy, stack):
    return fetch(proxy, stack, '/hls/cam/index.m3u8')


WAYS = (over_tcp, over_udp, over_tls, title, film, transport_stream, hls, silent)


def crowd(proxy, stack):
    """Returns how often each way had each result."""
    results, numbers = collections.Counter(), iter(range(CROWD))
    lock = threading.Lock()

    def come():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            way, own = WAYS[number % len(WAYS)], contextlib.ExitStack()
            try:
                result = way(proxy, own)
            except (ConnectionError, ssl.SSLError) as error:
                result = 'closed', type(error).__name__
            except Exception as error:  # a time-out, which fails the test
                result = 'wrong', repr(error)
            with lock:
                results[(way.__name__, result)] += 1
                stack.enter_context(own)

    threads = [threading.Thread(target=come) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def serves(proxy, way):
    with contextlib.ExitStack() as stack:
        try:
            return way(proxy, stack) in ('plays', ('HTTP', 200), 'connected')
        except (ConnectionError, ssl.SSLError):
            return False


def serve_all(proxy, ways):
    for way in ways:
        wait_until(lambda: serves(proxy, way), PATIENCE, f'the proxy serves {way.__name__}')


def watch(proxy):
    return Watchers(proxy, 3)


def play_hls(proxy):
    return Player(proxy.web_port)


def stand(limit, readers, *ways):
    """With this limit, good readers lose nothing, and clients that come in these ways are served before the crowd and
    after it."""
    with Origin() as origin, Everything(origin, limit) as proxy:
        good = [begin(proxy) for begin in readers]
        serve_all(proxy, ways)
        before = rss_kib(proxy)
        with contextlib.ExitStack() as stack:
            results = crowd(proxy, stack)
            for _ in range(CALLERS):
                stack.enter_context(Caller(proxy.srt_port, 'read:cam'))
            assert proxy.running()
            print(f'# {limit} files: {rss_kib(proxy) - before} KiB more;', dict(results))
            assert not [key for key in results if 'wrong' in key[1]], results
        proxy.wait_for_line('too few open files are left')
        serve_all(proxy, ways)
        assert SANITIZED or rss_kib(proxy) < before + 65536
        for each in good:
            each.check()
        proxy.signal(signal.SIGTERM)
        assert proxy.wait(PATIENCE) == 0


@test
def each_connection_that_waits_has_the_files_of_a_reader():
    with Origin() as origin, Everything(origin, 256) as proxy, contextlib.ExitStack() as stack:
        good = Watchers(proxy, 3)
        clients = [stack.enter_context(Rtsp(proxy.port, timeout=PATIENCE)) for _ in range(CROWD)]
        proxy.wait_for_line('a connection was refused: too few open files are left')
        results = collections.Counter()
        for client in clients:
            try:
                results[play(client, proxy.url(), stack, interleaved)] += 1
            except ConnectionError:
                results['refused'] += 1
        print('#', dict(results))
        assert set(results) == {'plays', 'refused'} and results['plays'] > 20, results
        good.check()


@test
def each_title_that_was_opened_has_the_files_to_play():
    with Origin() as origin, Everything(origin, 256) as proxy, contextlib.ExitStack() as stack:
        url = proxy.url('/films/clip.mp4')
        clients = [stack.enter_context(Rtsp(proxy.port, timeout=PATIENCE)) for _ in range(12)]
        admitted = [client for client in clients if client.request('DESCRIBE', url)[0] == 200]
        proxy.wait_for_line('/films: too few open files are left')
        assert len(admitted) > 1
        for client in admitted:
            assert play(client, url, stack, datagrams) == 'plays'


# The proxy's side of the worker process of SRT takes some of the files.
@test
def with_80_files():
    stand(80, [watch], over_tcp, over_udp, film, silent)  # too few for a title


@test
def a_player_over_hls_with_80_files():
    stand(80, [play_hls], hls, film, silent)


@test
def with_256_files():
    stand(256, [play_hls, watch], *WAYS)


if __name__ == '__main__':
    run()
