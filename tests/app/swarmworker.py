# SPDX-License-Identifier: LGPL-2.1-or-later
"""The process that takes part in swarms: it ends, hangs, meets peers that send anything, and leaves."""

import concurrent.futures
import os
import random
import shutil
import signal
import socket
import struct
import tempfile
import urllib.parse
from functools import lru_cache

from films import ffmpeg
from nginx import Nginx
from proc import open_files, thread_names
from proxy import CLIP, Read
from rangeserver import bencode
from stockpeers import Peer, describe
from swarm_proxy import Folder, Swarm, cut, fill, short, short_bytes, tracked, wait_until
from tap import run, test
from title_proxy import clip
from watchers import Watchers
from webserver import WebServer

LOOPS = 4  # of the clip in the long one


@lru_cache
def long_clip():
    path = os.path.join(cut().name, 'long.mp4')
    ffmpeg('-stream_loop', str(LOOPS - 1), '-i', CLIP, '-c', 'copy', path)
    return path


def frames(source, *words):
    """Returns the lines of FFmpeg about each frame of the video, which it does not decode: on a busy
    machine, that would take long enough for the reader to be thinned."""
    lines = ffmpeg(*words, '-i', source, '-an', '-c', 'copy', '-f', 'framemd5', '-').decode().splitlines()
    return [line for line in lines if not line.startswith('#')]


def bytes_of(path):
    with open(path, 'rb') as file:
        return file.read()


@test(timeout=120)
def a_crash_in_the_process_of_swarms_costs_nobody_a_packet():
    """readers of another mount lose nothing, over TCP and UDP, and a title goes on over HTTP and RTSP"""
    cam = {'/cam': {'upstream': f'file://{CLIP}', 'on-demand': 'no'}}
    with Folder() as folder, Nginx(fill) as nginx, tempfile.TemporaryDirectory() as pieces, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        shutil.copy(long_clip(), nginx.files)
        folder.add('long.mp4', long_clip(), '--origin', nginx.url + 'long.mp4')
        with Swarm(folder.name, cam, folder=pieces, storage='100%') as proxy:
            proxy.wait_for_line(' mount /cam up')
            others = Watchers(proxy, 5)
            udp = Read(proxy.url('/cam'), transport='udp', duration=120)
            http = pool.submit(proxy.fetch, '/films/long.mp4')
            rtsp = pool.submit(frames, proxy.url('/films/long.mp4'), '-rtsp_transport', 'tcp')
            wait_until(lambda: (proxy.figures('long.mp4') or {'starts': 0})['starts'] == 2)
            victim = proxy.worker()
            files = list(open_files(victim))
            assert any(path.startswith(pieces + '/') for path in files), files
            for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL:
                before, seen = proxy.figures('long.mp4'), len(proxy.lines)
                os.kill(victim, number)
                # ASan handles SIGSEGV itself.
                proxy.wait_for_line(rf'worker {victim} ended (by {number.name}|with status 1)'
                                    r'; it ran \d jobs?$', start=seen)
                victim = proxy.worker(other_than=victim)
                sent = proxy.bytes_over_http()
                wait_until(lambda more=sent + 300000: proxy.bytes_over_http() >= more)
                wait_until(lambda: proxy.figures('long.mp4')['held-bytes'] > 0)
                after = proxy.figures('long.mp4')
                assert after['readers'] == 2 and after['origin-bytes'] >= before['origin-bytes'], (before, after)
            assert http.result() == (200, bytes_of(long_clip()))
            got, expected = len(rtsp.result()), len(frames(long_clip()))
            assert expected - 10 < got <= expected, (got, expected)
            others.check()
            result = udp.finish()['totals']
            assert result['packets'] > 0 and result['lost'] == 0, result


@test(timeout=120)
def a_process_of_swarms_that_hangs_is_ended():
    """a title that is being read goes on in the next one"""
    with Folder() as folder, Nginx(fill) as nginx:
        folder.add('a.mp4', CLIP, '--origin', nginx.url + 'a.mp4')
        with Swarm(folder.name) as proxy, concurrent.futures.ThreadPoolExecutor() as pool:
            body = pool.submit(proxy.fetch, '/films/a.mp4')
            wait_until(lambda: (proxy.figures() or {'starts': 0})['starts'] == 1)
            victim = proxy.worker()
            os.kill(victim, signal.SIGSTOP)
            # Before its first sign of life, a process has 30 s to start.
            proxy.wait_for_line(rf'worker {victim} was killed: it did not answer for 5 s', timeout=40)
            assert body.result() == (200, clip())


@test
def titles_that_nobody_reads_stay_in_the_swarm_when_the_process_ends():
    """a peer gets a title from the next one, which has it from the origin"""
    with Folder() as folder, Nginx(fill) as nginx, tempfile.TemporaryDirectory() as empty:
        tracker, torrent = tracked(folder, '--origin', nginx.url + 'a.mp4')
        with tracker, Swarm(folder.name) as proxy:
            assert proxy.fetch('/films/a.mp4', {'Range': 'bytes=0-99'})[0] == 206
            wait_until(lambda: proxy.figures()['readers'] == 0)
            victim = proxy.worker()
            os.kill(victim, signal.SIGSEGV)
            assert proxy.worker(other_than=victim)
            with Peer(torrent, empty, f'127.0.0.1:{proxy.peer_port}') as peer:
                wait_until(lambda: proxy.figures()['peers'] == 1)
                assert proxy.fetch('/films/a.mp4') == (200, clip())
                peer.wait_for_line(f' down {len(clip())} of', timeout=20)


@test
def without_isolation_swarms_are_in_the_proxy():
    with Folder() as folder, Nginx(fill) as nginx, tempfile.TemporaryDirectory() as pieces:
        folder.add('a.mp4', short(), '--origin', nginx.url + 'short.mp4')
        with Swarm(folder.name, top={'isolate': 'no'}, folder=pieces) as proxy:
            assert proxy.fetch('/films/a.mp4') == (200, short_bytes())
            assert 'weir-swarm' in thread_names(proxy.pid).values()
            assert proxy.figures()['origin-bytes'] >= len(short_bytes())


# ---- leaving ----

@test
def trackers_hear_that_the_proxy_leaves():
    """when it stops"""
    heard = []

    def answer(path, _):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query, encoding='latin-1')
        heard.append(query.get('event', [''])[0])
        return 200, bencode({'interval': 1800, 'peers': b''})

    with Folder() as folder, Nginx(fill) as nginx, WebServer(answer) as tracker:
        folder.add('a.mp4', short(), '--origin', nginx.url + 'short.mp4', '--tracker', f'{tracker.base}/announce')
        with Swarm(folder.name) as proxy:
            assert proxy.fetch('/films/a.mp4') == (200, short_bytes())
            wait_until(lambda: 'started' in heard)
        wait_until(lambda: heard[-1] == 'stopped')


# ---- peers ----

def message(kind, payload=b''):
    return struct.pack('>IB', 1 + len(payload), kind) + payload


def extended(kind, value):
    return message(20, bytes([kind]) + (value if isinstance(value, bytes) else bencode(value)))


HELLO = {'m': {'ut_metadata': 1, 'ut_pex': 2, 'lt_donthave': 3}, 'metadata_size': 10, 'reqq': 250}
EACH = range(24)  # kinds of messages, some of them unknown
WRONG = [
    b'', b'\xff' * 68, struct.pack('>I', 0xffffffff), struct.pack('>IB', 0x7fffffff, 7) + bytes(70000),
    *(message(kind) for kind in EACH), *(message(kind, b'\xff' * 3) for kind in EACH),
    *(message(kind, b'\xff' * 12) for kind in EACH), *(message(kind, bytes(40000)) for kind in EACH),
    message(4, struct.pack('>I', 0x7fffffff)), message(4, struct.pack('>I', 0x80000000)),
    message(5, b''), message(5, b'\xff' * 200000),
    message(6, struct.pack('>III', 0xffffffff, 0xffffffff, 0xffffffff)),
    message(6, struct.pack('>III', 0, 0, 0x7fffffff)), message(6, struct.pack('>III', 0, 1, 0)),
    message(7, struct.pack('>II', 0xffffffff, 0xfffffff0) + b'x' * 16384),
    message(7, struct.pack('>II', 0, 3) + b'x' * 16384), message(7, struct.pack('>II', 0, 0) + b'x' * 65000),
    message(8, struct.pack('>III', 0xffffffff, 0, 16384)), message(13, b'\xff' * 4), message(17, b'\xff' * 4),
    message(21, bytes(47)), message(22, b'\xff' * 300), message(23, bytes(48)),
    extended(0, HELLO), extended(0, b'd' * 30000), extended(0, b'i' + b'9' * 5000 + b'e'), extended(0, b'l' * 9999),
    extended(0, {'m': {'ut_pex': -1, 'ut_metadata': 1 << 40, 'lt_donthave': 255}, 'metadata_size': 1 << 62}),
    extended(0, {'m': {'x' * 60000: 9}, 'v': b'\xff' * 999, 'p': 1 << 33, 'yourip': b'x' * 77, 'reqq': -5}),
    *(extended(kind, b'\xff' * 4) for kind in range(1, 8)), *(extended(kind, b'') for kind in range(1, 8)),
    extended(1, {'msg_type': 1, 'piece': 1 << 40, 'total_size': 1 << 60}), extended(1, {'msg_type': -7}),
    extended(2, {'added': b'\xff' * 5001, 'added.f': b'', 'added6': b'x', 'dropped': b'y' * 7}),
    extended(2, {'added': socket.inet_aton('127.0.0.1') + b'\0\0', 'added.f': b'\xff'}),
    extended(3, b'\xff' * 4), extended(3, b'\x7f\xff\xff\xff'),
]


class BadPeer:
    """A connection of a peer that keeps to the protocol no further than its handshake."""

    def __init__(self, port, info_hash, reserved=b'\xff' * 8):
        self._socket = socket.create_connection(('127.0.0.1', port), timeout=5)
        self.send(b'\x13BitTorrent protocol' + reserved + bytes.fromhex(info_hash) + os.urandom(20))

    def send(self, data):
        """Sends what the proxy takes; it may close the connection at any time."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def close(self):
        self._socket.close()


def annoy(port, info_hash, dice):
    """Sends each wrong message on a connection of its own, and then mixtures of them."""
    for wrong in WRONG:
        peer = BadPeer(port, info_hash, dice.choice((b'\0' * 8, b'\xff' * 8, b'\0\0\0\0\0\x10\0\x05')))
        peer.send(extended(0, HELLO) + message(2) + wrong)
        peer.send(wrong)
        peer.close()
    for _ in range(100):
        peer = BadPeer(port, dice.choice((info_hash, '00' * 20)))
        for _ in range(dice.randrange(1, 20)):
            data = bytearray(dice.choice(WRONG) or message(1))
            for _ in range(dice.randrange(3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            if not peer.send(data[:dice.randrange(1, len(data) + 1)] if dice.random() < 0.2 else data):
                break
        peer.close()
    for _ in range(50):
        with socket.create_connection(('127.0.0.1', port), timeout=5) as stranger:
            stranger.sendall(dice.randbytes(dice.randrange(1, 300)))


@test(timeout=120)
def peers_may_send_anything():
    """the process of swarms goes on, and so does the title that is being read"""
    dice = random.Random(2107)
    with Folder() as folder, Nginx(fill) as nginx, concurrent.futures.ThreadPoolExecutor() as pool:
        torrent = folder.add('a.mp4', CLIP, '--origin', nginx.url + 'a.mp4')
        info_hash = describe(torrent)['info-hash']
        with Swarm(folder.name) as proxy:
            body = pool.submit(proxy.fetch, '/films/a.mp4')
            wait_until(lambda: (proxy.figures() or {'starts': 0})['starts'] == 1)
            worker = proxy.worker()
            annoy(proxy.peer_port, info_hash, dice)
            assert body.result() == (200, clip())
            assert proxy.fetch('/films/a.mp4', {'Range': 'bytes=5-999'}) == (206, clip()[5:1000])
            assert proxy.worker() == worker
            assert not any('ended by' in line for line in proxy.lines), proxy.lines


run()
