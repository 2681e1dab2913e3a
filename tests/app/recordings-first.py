# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recording of a publisher begins with the first picture that it sends, however far its keyframes are apart."""

import glob
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache

from control import Controlled
from proxy import QUICK, wait_until
from tap import SLOWER, Skip, run, test

SECONDS = 7
GOP = 100 # pictures, at 25 a second


@lru_cache
def folder():
    return tempfile.TemporaryDirectory()


@lru_cache
def film():
    """Makes a film whose pictures all differ. Returns its path."""
    if not shutil.which('ffmpeg'):
        raise Skip('no ffmpeg found')
    path = os.path.join(folder().name, 'film.mp4')
    subprocess.run(['ffmpeg', '-y', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=25', '-f', 'lavfi', '-i',
                    'sine=frequency=440:sample_rate=48000', '-t', str(SECONDS), '-c:v', 'libx264', '-preset', 'ultrafast', '-tune',
                    'zerolatency', '-g', str(GOP), '-x264-params', 'scenecut=0', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-ac', '2', path],
                   check=True, timeout=60 * SLOWER)
    return path


def pictures(path):
    """Returns the hashes of a file's pictures."""
    done = subprocess.run(['ffmpeg', '-v', 'error', '-i', path, '-map', '0:v', '-fps_mode', 'passthrough', '-pix_fmt', 'yuv420p', '-f',
                           'framehash', '-hash', 'md5', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=True)
    return [line.split(',')[5].strip() for line in done.stdout.splitlines() if not line.startswith('#')]


def output(proxy, way):
    return {'rtsp': ['-f', 'rtsp', '-rtsp_transport', 'tcp', proxy.url('/cam')],
            'rtsp-udp': ['-f', 'rtsp', '-rtsp_transport', 'udp', proxy.url('/cam')],
            'rtmp': ['-f', 'flv', f'rtmp://127.0.0.1:{proxy.rtmp_port}/cam'],
            'srt': ['-f', 'mpegts', f'srt://127.0.0.1:{proxy.srt_port}?streamid=publish:cam']}[way]


class Recorder(Controlled):
    """A proxy that records /cam, to which others publish."""

    def __init__(self, where):
        super().__init__({'/cam': {'upstream': 'publish', **QUICK, 'record': {'folder': where, 'part': '200ms'}}},
                         rtmp={'listen': '127.0.0.1:0'}, srt={'listen': '127.0.0.1:0'})
        self.rtmp_port = self.wait_for_line(r' rtmp://[\d.]+:(\d+)')[1]
        self.srt_port = self.wait_for_line(r' srt://[\d.]+:(\d+)')[1]


def check(way, times=1):
    """Publishes a film `times` times. Each time its first picture is recorded, and all that follow but the last ones, perhaps."""
    path = film()
    with tempfile.TemporaryDirectory() as where, Recorder(where) as proxy:
        for _ in range(times):
            seen = len(proxy.lines)
            # RTMP's end is not waited for by all versions of FFmpeg.
            subprocess.run(['ffmpeg', '-nostdin', '-v', 'quiet', '-re', '-i', path, '-c', 'copy', *output(proxy, way)], check=False, timeout=60 * SLOWER)
            proxy.wait_for_line(' mount /cam waits for a publisher', 30, start=seen)
            wait_until(lambda: proxy.get('/v1/mounts/cam')['recording']['state'] == 'waiting', 30, 'the file is complete')
        got = [each for path in sorted(glob.glob(f'{where}/cam/*.mp4')) for each in pictures(path)]
    source = pictures(path)
    assert len(set(source)) == len(source) == SECONDS * 25, len(source)
    begins = [i for i, each in enumerate(got) if each == source[0]]
    assert len(begins) == times and begins[0] == 0, (way, begins, source.index(got[0]))
    for begin, end in zip(begins, [*begins[1:], len(got)]):
        assert got[begin:end] == source[:end - begin] and end - begin > GOP + 1, (way, begin, end)


@test
def what_is_published_over_rtsp_and_tcp_is_recorded_from_its_first_picture():
    check('rtsp', 2)


@test
def what_is_published_over_rtsp_and_udp_is_recorded_from_its_first_picture():
    check('rtsp-udp')


@test
def what_is_published_over_rtmp_is_recorded_from_its_first_picture():
    check('rtmp')


@test
def what_is_published_over_srt_is_recorded_from_its_first_picture():
    check('srt')


if __name__ == '__main__':
    run()
