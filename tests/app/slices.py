# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of several slices stay whole, on every way in and out.

FFmpeg decodes what readers get. Each picture must be one of the source's.
"""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled
from proc import Proc, free_port
from proxy import wait_until
from tap import run, test

SECONDS, FPS = 6, 25
ENOUGH = 30 # pictures that a reader must get
FILES = {
    'one': ('libx264', '-preset', 'ultrafast', '-x264-params', 'slices=1'),
    'two': ('libx264', '-preset', 'ultrafast', '-x264-params', 'slices=2:aud=1'),
    # As encoders for calls make them: threads by slices, no frames of B, SEI before each picture.
    'four': ('libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-x264-params',
             'slices=4:nal-hrd=cbr:vbv-maxrate=800:vbv-bufsize=800:filler=0', '-b:v', '800k'),
    'hevc': ('libx265', '-preset', 'ultrafast', '-x265-params', 'slices=4:log-level=none'),
}
# FLV has no H.265 that all versions of FFmpeg write.
WAYS_IN = {'clip': FILES, 'title': FILES, 'udp': FILES, 'srt': FILES,
           'rtmp': [name for name in FILES if name != 'hevc']}


def ffmpeg(*words):
    return ('ffmpeg', '-nostdin', '-v', 'error', *words)


@lru_cache
def folder():
    """Returns the folder of the files, which lasts as long as the program."""
    made = tempfile.TemporaryDirectory()
    for name, options in FILES.items():
        subprocess.run(ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=320x240:r={FPS}', '-t', str(SECONDS),
                              '-pix_fmt', 'yuv420p', '-c:v', *options, '-g', str(FPS), '-bf', '0',
                              '-threads', '1', f'{made.name}/{name}.mp4'), check=True, timeout=120)
    return made


def hashes(*words, timeout=60):
    """Returns the hashes of the decoded pictures."""
    done = subprocess.run(ffmpeg(*words, '-an', '-f', 'framemd5', '-'), capture_output=True, text=True,
                          timeout=timeout, check=False)
    return [line.split(',')[-1].strip() for line in done.stdout.splitlines() if line[:1].isdigit()]


@lru_cache
def of_source(name):
    found = frozenset(hashes('-i', f'{folder().name}/{name}.mp4'))
    assert len(found) > SECONDS * FPS * 0.9, len(found)
    return found


class Sliced(Controlled):
    """A proxy with a mount for each file and way in, whose senders run."""

    def __init__(self):
        self.senders = []
        where = folder().name
        ports = {name: free_port() for name in WAYS_IN['udp']}
        mounts = {'/title': {'upstream': f'file://{where}/'}}
        for name in FILES:
            mounts[f'/clip/{name}'] = {'upstream': f'file://{where}/{name}.mp4'}
            mounts[f'/udp/{name}'] = {'upstream': f'udp://127.0.0.1:{ports[name]}'}
            mounts[f'/srt/{name}'] = mounts[f'/rtmp/{name}'] = {'upstream': 'publish'}
        for keys in mounts.values():
            keys['start-timeout'] = '30s'
        super().__init__(mounts, rtmp={'listen': '127.0.0.1:0'}, srt={'listen': '127.0.0.1:0'},
                         http={'listen': '127.0.0.1:0'}, users=[{'name': 'any', 'permissions': [
                             {'action': each} for each in ('read', 'playback', 'publish')]}], api='off')
        self.web = self.wait_for_line(r' live mounts and titles (http://\S+)$')[1]
        self.rtmp = self.wait_for_line(r' takes publishers at (rtmp://\S+)$')[1]
        self.srt = self.wait_for_line(r' takes publishers at (srt://[^?\s]+)')[1]
        for name in FILES:
            self.send(name, 'mpegts', f'udp://127.0.0.1:{ports[name]}?pkt_size=1316')
            self.send(name, 'mpegts', f'{self.srt}?streamid=publish:/srt/{name}&pkt_size=1316')
        for name in WAYS_IN['rtmp']:
            self.send(name, 'flv', f'{self.rtmp}/rtmp/{name}')

    def send(self, name, form, url):
        self.senders.append(Proc(*ffmpeg('-re', '-stream_loop', '-1', '-i', f'{folder().name}/{name}.mp4',
                                         '-c', 'copy', '-f', form, url)))

    def urls(self, way, name, *outs):
        """Yields FFmpeg's arguments for a reader of each of these ways out."""
        rtsp = self.url('/title/' + name + '.mp4' if way == 'title' else f'/{way}/{name}')
        for out in outs:
            if out in ('tcp', 'udp'):
                yield '-rtsp_transport', out, '-i', rtsp
            else:
                yield '-i', f'{self.web}/{out}/{way}/{name}' + '/index.m3u8' * (out == 'hls')

    def __exit__(self, *error):
        for sender in self.senders:
            sender.kill()
        super().__exit__(*error)


def check(reader):
    name, words = reader
    got = hashes(*words, '-t', '2')
    wrong = [each for each in got if each not in of_source(name)]
    return None if len(got) >= ENOUGH and not wrong else f'{words}: {len(got)} pictures, {len(wrong)} wrong'


@test
def pictures_stay_whole_on_every_way():
    """pictures of one, two and four slices are those of the source, by RTSP, MPEG-TS and HLS"""
    for name in FILES:
        of_source(name)
    with Sliced() as proxy:
        readers = []
        for way, names in WAYS_IN.items():
            for name in names:
                outs = ('tcp', 'udp', 'ts', 'hls') if name == 'four' else ('tcp',)
                outs = [out for out in outs if way != 'title' or out in ('tcp', 'udp')]
                readers += [(name, words) for words in proxy.urls(way, name, *outs)]
        with ThreadPoolExecutor(4) as pool:
            wrong = [each for each in pool.map(check, readers) if each]
        assert not wrong, '\n'.join(wrong)


if __name__ == '__main__':
    run()
