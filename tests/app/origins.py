# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers of other projects as upstreams, over UDP and TCP: readers get the frames of a film with
B-frames and AAC unchanged, in order and without a gap."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import lru_cache

from proc import Proc, free_port, free_udp_pair
from proxy import CLIP, Origin, Proxy, Read, check_whole
from tap import SLOWER, Skip, run, test

GOP = 25
# Of a reader: 3 s. FFmpeg's -t would end by times, which the first sender report can move.
SOME = '-frames:v', '75', '-frames:a', '140'


def program(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f'{name} is not on the PATH')
    return path


@lru_cache
def film():
    """Returns a film of 20 s with B-frames, whose frames differ from each other."""
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, 'film.mp4')
    subprocess.run([program('ffmpeg'), '-nostdin', '-loglevel', 'error', '-stream_loop', '9', '-i',
                    CLIP, '-t', '20', '-vf', 'scale=320:180,noise=alls=6:allf=t', '-c:v', 'libx264',
                    '-preset', 'veryfast', '-bf', '2', '-g', str(GOP), '-c:a', 'aac', '-ac', '1', path],
                   check=True, timeout=60 * SLOWER)
    return folder, path


def hashes(source, options=(), ends=()):
    """Returns {stream: hashes}: of each decoded picture, and of each audio frame as received."""
    done = subprocess.run(
        [program('ffmpeg'), '-nostdin', '-loglevel', 'error', *options, '-i', source, '-map', '0:v',
         '-map', '0:a', '-vsync', 'passthrough', '-c:a', 'copy', '-copyinkf:a', *ends, '-f',
         'framehash', '-hash', 'sha256', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    streams = {'0': [], '1': []}
    for line in done.stdout.splitlines():
        if not line.startswith('#'):
            fields = [field.strip() for field in line.split(',')]
            streams[fields[0]].append(fields[5])
    return streams


@lru_cache
def film_hashes():
    return hashes(film()[1])


def check_relayed(url):
    """Checks that readers of a proxy with this upstream get the film's frames without a gap."""
    for transport in 'udp', 'tcp':
        with Proxy({'/cam': {'upstream': url, 'transport': transport}}) as proxy:
            got = hashes(proxy.url(), ('-rtsp_transport', 'tcp'), SOME)
            assert proxy.running() and ' down: ' not in proxy.output(), proxy.output()
        for stream, frames in got.items():
            known = film_hashes()[stream]
            pairs = set(zip(known, known[1:] + known[:1]))
            # The first and the last audio frame may be cut. A reader that begins behind the live
            # edge gets its first pictures without some B-frames.
            frames = frames[GOP if stream == '0' else 1:-1]
            assert len(frames) > 40, (transport, stream, len(frames))
            alien = [n for n, pair in enumerate(zip(frames, frames[1:])) if pair not in pairs]
            assert not alien, (transport, stream, len(frames), alien)


@test
def the_film_has_b_frames():
    shown = subprocess.run(
        [program('ffprobe'), '-v', 'error', '-select_streams', 'v', '-show_entries',
         'frame=pict_type', '-of', 'csv=p=0', film()[1]],
        capture_output=True, text=True, check=True, timeout=30 * SLOWER).stdout
    assert shown.count('B') > 100, shown[:200]


@test
def a_server_of_gstreamer_is_relayed_unchanged():
    origin = os.environ.get('WEIR_GST_ORIGIN')
    if not origin:
        raise Skip('WEIR_GST_ORIGIN is not set')
    with Proc(origin, film()[1]) as server:
        port = server.wait_for_line(r'^PORT (\d+)')[1]
        check_relayed(f'rtsp://127.0.0.1:{port}/film')


@contextmanager
def mediamtx():
    """Runs MediaMTX, to which FFmpeg sends the film. Yields the URL."""
    rtsp, pair = free_port(), free_udp_pair()
    rtp = pair[0].getsockname()[1]
    for each in pair:
        each.close()
    settings = {
        'rtspAddress': f'127.0.0.1:{rtsp}', 'rtpAddress': f'127.0.0.1:{rtp}',
        'rtcpAddress': f'127.0.0.1:{rtp + 1}', 'rtmp': False, 'hls': False, 'webrtc': False,
        'srt': False, 'paths': {'film': {}}}
    url = f'rtsp://127.0.0.1:{rtsp}/film'
    with tempfile.TemporaryDirectory() as folder:  # mediamtx writes keys where it runs
        path = os.path.join(folder, 'mediamtx.yml')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(settings, file)
        environment = {**os.environ, 'MTX_MOQ': 'no'}
        with Proc(program('mediamtx'), path, cwd=folder, env=environment) as server:
            server.wait_for_line(r'\[RTSP\] (listener opened|started with listeners)', 30)
            with Proc(program('ffmpeg'), '-nostdin', '-loglevel', 'error', '-re', '-stream_loop',
                      '-1', '-i', film()[1], '-c', 'copy', '-f', 'rtsp', '-rtsp_transport', 'tcp',
                      url):
                server.wait_for_line(r"is publishing to path 'film'", 20)
                yield url


@test
def ffmpeg_through_mediamtx_is_relayed_unchanged():
    with mediamtx() as url:
        check_relayed(url)


@test
def a_server_of_gortsplib_is_relayed_unchanged():
    """the interop origin, whose clip has no B-frames, is relayed unchanged"""
    for transport in 'udp', 'tcp':
        with Origin() as origin, \
                Proxy({'/cam': {'upstream': origin.url, 'transport': transport}}) as proxy:
            check_whole(Read(proxy.url(), expect=origin.expect).result(), 1)


if __name__ == '__main__':
    run()
