# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each library that parses what a stranger sent crashes while others play: readers of another mount,
two over UDP and two over TCP, lose no packet, and what crashed comes back.

docs/security.md has the table of the libraries."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

from clips import ffmpeg
from control import Watch
from proxy import CLIP, wait_until
from tap import SLOWER, run, test
from watched import Bench
from webserver import WebServer
from workers import LIVE, ON, wait_for_kind, worker_of

SIGNALS = signal.SIGSEGV, signal.SIGABRT
ENDED = {signal.SIGSEGV: '(by SIGSEGV|with status 1)', signal.SIGABRT: 'by SIGABRT'} # ASan handles SIGSEGV


@contextlib.contextmanager
def media():
    """Yields a folder with the clip in several containers."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in {'clip.ts': (), 'clip.mkv': (), 'live.m3u8': ('-hls_time', '2')}.items():
            subprocess.run([ffmpeg(), '-nostdin', '-v', 'error', '-i', CLIP, '-c', 'copy', *words,
                            os.path.join(folder, name)], check=True, timeout=60 * SLOWER)
        os.mkdir(os.path.join(folder, 'films'))
        for path in 'clip.mp4', 'films/film.mp4':
            shutil.copy(CLIP, os.path.join(folder, path))
        yield folder


def serve(folder):
    def answer(path, _):
        try:
            with open(os.path.join(folder, os.path.basename(path)), 'rb') as file:
                return 200, file.read()
        except OSError:
            return 404, ''

    return WebServer(answer)


def crash(bench, find, what):
    """Crashes the worker that `find` returns, by each signal. Waits for the next one, and checks what
    the readers of the other mount have."""
    for number in SIGNALS:
        found = []

        def is_there(found=found):
            found[:] = [find()]
            return found[0]

        wait_until(is_there, 30, f'a worker of {what}')
        victim, seen = found[0], len(bench.proxy.lines)
        before = [each.packets for each in bench.goods]
        os.kill(victim, number)
        bench.proxy.wait_for_line(rf' worker {victim} ended {ENDED[number]}', 20, start=seen)
        wait_until(lambda gone=victim: find() not in (None, gone), 30, f'{what} is back')
        wait_until(lambda then=before: all(each.packets > packets + 50
                                           for each, packets in zip(bench.goods, then)), 30,
                   'the readers of the other mount play on')
        bench.check()


@test(timeout=120)
def a_crash_of_a_demuxer_costs_other_readers_nothing():
    """a crash in tsdemux, matroskademux or qtdemux, or a parser behind it, costs other readers nothing"""
    with media() as folder:
        names = 'clip.ts', 'clip.mkv', 'clip.mp4'
        mounts = {f'/{name}': {'upstream': f'file://{folder}/{name}', **ON} for name in names}
        with Bench(mounts) as bench:
            for name in names:
                crash(bench, lambda name=name: worker_of(bench.proxy, f'file://{folder}/{name}'), name)


@test(timeout=90)
def a_crash_of_hls_costs_other_readers_nothing():
    """a crash in hlsdemux, or in the TLS and HTTP of an upstream, costs other readers nothing"""
    with media() as folder, serve(folder) as server:
        url = f'{server.base}/live.m3u8'
        with Bench({'/hls': {'upstream': url, **ON}}) as bench:
            crash(bench, lambda: worker_of(bench.proxy, url), 'HLS')


@test(timeout=90)
def a_crash_of_a_decoder_costs_other_readers_nothing():
    """a crash in a decoder or an encoder of a stage costs other readers nothing"""
    mount = {'upstream': f'file://{os.path.realpath(CLIP)}', 'choices': {'transcode': ['size']}}

    with Bench({'/cam': mount}) as bench, Watch(bench.proxy, '/cam?size=128x96'):
        def find():
            nodes = bench.proxy.get('/v1/graph')['nodes']
            return next((int(node['params']['worker']) for node in nodes if node['label'] == 'decode'
                         and node['state'] == 'up' and 'worker' in node['params']), None)

        crash(bench, find, 'the stage')


@test(timeout=90)
def a_crash_of_a_launch_line_costs_other_readers_nothing():
    with Bench({'/live': {'upstream': LIVE, **ON}}) as bench:
        crash(bench, lambda: worker_of(bench.proxy, 'a launch'), 'the launch line')


@test(timeout=90)
def a_crash_of_a_title_costs_other_readers_nothing():
    with media() as folder, Bench({'/films': {'upstream': f'file://{folder}/films/'}}) as bench:
        def find():
            with contextlib.suppress(AssertionError, OSError, EOFError):
                with Watch(bench.proxy, '/films/film.mp4') as reader:
                    reader.take(10)
                    return wait_for_kind(bench.proxy, 'title')
            return None

        crash(bench, find, 'titles')


if __name__ == '__main__':
    run()
