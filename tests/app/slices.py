# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of several slices stay whole, on every way in and out.

FFmpeg decodes what readers get. Each picture must be one of the source's. WEIR_SLICES=all has every
file read on every way out.
"""

import glob
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled
from proc import Proc, free_port
from proxy import wait_until
from tap import SLOWER, run, test
from webserver import WebServer

SECONDS, FPS = 6, 25
ENOUGH = 30 # pictures that a reader must get
ALL = os.environ.get('WEIR_SLICES') == 'all'
X264 = 'libx264', '-preset', 'ultrafast', '-x264-params'
FILES = {
    'one': (*X264, 'slices=1'),
    'two': (*X264, 'slices=2:aud=1'),
    # As encoders for calls make them: threads by slices, no frames of B, SEI before each picture.
    'four': (*X264, 'slices=4:nal-hrd=cbr:vbv-maxrate=800:vbv-bufsize=800:filler=0', '-b:v', '800k',
             '-tune', 'zerolatency'),
    # As some encoders on graphics cards: see sei_first().
    'sei': (*X264, 'slices=2:nal-hrd=vbr:vbv-maxrate=800:vbv-bufsize=800'),
    'hevc': ('libx265', '-preset', 'ultrafast', '-x265-params', 'slices=4:log-level=none'),
}
LIVE_OUTS = 'tcp', 'udp', 'ts', 'hls'
# The ways in, and their files. FLV has no H.265 that all versions of FFmpeg write.
WAYS_IN = {'clip': FILES, 'title': FILES, 'mpegts': FILES, 'srt': FILES, 'hls': FILES,
           'rtmp': [name for name in FILES if name != 'hevc']}
TITLES = 'mp4', 'ts', 'mkv', 'h264'


def ffmpeg(*words):
    return ('ffmpeg', '-nostdin', '-v', 'error', *words)


def convert(*words):
    subprocess.run(ffmpeg(*words), check=True, timeout=120 * SLOWER)


def sei_first(path):
    """Rewrites a byte stream of H.264: in keyframes, the SEI come before the parameter sets. Only the
    first keyframe and each second one after it have parameter sets."""
    with open(path, 'rb') as file:
        units = [unit for unit in file.read().replace(b'\0\0\0\1', b'\0\0\1').split(b'\0\0\1') if unit]
    out, sei, sets, keys = [], [], [], 0
    for unit in units:
        kind = unit[0] & 31
        if kind == 6:
            sei.append(unit)
        elif kind in (7, 8):
            sets.append(unit)
        elif kind != 9:
            keys += kind == 5 and unit[1] >= 128 # a first slice
            out += sei + (sets if keys % 2 else []) + [unit]
            sei, sets = [], []
    with open(path, 'wb') as file:
        file.write(b''.join(b'\0\0\0\1' + unit for unit in out))


@lru_cache
def folder():
    """Returns the folder of the files, which lasts as long as the program."""
    made = tempfile.TemporaryDirectory()
    for name, options in FILES.items():
        path = f'{made.name}/{name}'
        source = f'{path}.hevc' if name == 'hevc' else f'{path}.h264'
        convert('-f', 'lavfi', '-i', f'testsrc2=s=320x240:r={FPS}', '-t', str(SECONDS), '-pix_fmt', 'yuv420p',
                '-c:v', *options, '-g', str(FPS), '-bf', '0', '-threads', '1', source)
        if name == 'sei':
            sei_first(source)
        for form in TITLES[:3]:
            convert('-fflags', '+genpts', '-r', str(FPS), '-i', source, '-c', 'copy', f'{path}.{form}')
    return made


def hashes(*words, timeout=60):
    """Returns the hashes of the decoded pictures."""
    done = subprocess.run(ffmpeg(*words, '-an', '-f', 'framemd5', '-'), capture_output=True, text=True,
                          timeout=SLOWER * timeout, check=False)
    return [line.split(',')[-1].strip() for line in done.stdout.splitlines() if line[:1].isdigit()]


@lru_cache
def of_source(name):
    found = frozenset(hashes('-i', f'{folder().name}/{name}.mp4'))
    assert len(found) > SECONDS * FPS * 0.9, (name, len(found))
    return found


class Files(WebServer):
    """Serves the files of a folder."""

    def __init__(self, where):
        self.where = where
        super().__init__(lambda path, _body: self.give(path))

    def give(self, path):
        try:
            with open(self.where + path.partition('?')[0], 'rb') as file:
                return 200, file.read(), {'Content-Type': 'application/vnd.apple.mpegurl' if path.endswith('m3u8')
                                          else 'video/mp2t'}
        except FileNotFoundError:
            return 404, ''


class Sliced(Controlled):
    """A proxy with a mount for each file and way in, whose senders run. It records what comes."""

    def __init__(self, site, where):
        self.senders, self.where = [], where
        films = folder().name
        os.mkdir(f'{where}/recorded')
        ports = {name: free_port() for name in FILES}
        mounts = {'/title': {'upstream': f'file://{films}/'}}
        for name in FILES:
            mounts[f'/clip/{name}'] = {'upstream': f'file://{films}/{name}.mp4'}
            mounts[f'/mpegts/{name}'] = {'upstream': f'udp://127.0.0.1:{ports[name]}'}
            mounts[f'/hls/{name}'] = {'upstream': f'{site.base}/{name}.m3u8'}
            mounts[f'/srt/{name}'] = {'upstream': 'publish'}
            mounts[f'/rtmp/{name}'] = {'upstream': 'publish'}
        for path, keys in mounts.items():
            keys.update({'start-timeout': '30s', 'connect-timeout': '20s'})
            if path != '/title':
                keys['record'] = {'folder': f'{where}/recorded', 'segment': '2s', 'part': '500ms'}
        super().__init__(mounts, rtmp={'listen': '127.0.0.1:0'}, srt={'listen': '127.0.0.1:0'},
                         http={'listen': '127.0.0.1:0'}, users=[{'name': 'any', 'permissions': [
                             {'action': each} for each in ('read', 'playback', 'publish')]}], api='off')
        self.web = self.wait_for_line(r' live mounts and titles (http://\S+)$')[1]
        self.rtmp = self.wait_for_line(r' takes publishers at (rtmp://\S+)$')[1]
        self.srt = self.wait_for_line(r' takes publishers at (srt://[^?\s]+)')[1]
        for name in FILES:
            outs = [('mpegts', f'udp://127.0.0.1:{ports[name]}?pkt_size=1316'),
                    ('mpegts', f'{self.srt}?streamid=publish:/srt/{name}&pkt_size=1316'),
                    ('hls', '-hls_time', '1', '-hls_flags', 'delete_segments', f'{where}/{name}.m3u8')]
            if name in WAYS_IN['rtmp']:
                outs.append(('flv', f'{self.rtmp}/rtmp/{name}'))
            for form, *words in outs:
                self.senders.append(Proc(*ffmpeg('-re', '-stream_loop', '-1', '-i', f'{films}/{name}.mp4', '-c', 'copy',
                                                 '-f', form, *words)))

    def urls(self, way, name):
        """Yields FFmpeg's arguments for a reader of each way out."""
        outs = LIVE_OUTS if ALL or name == 'four' else ('tcp', 'hls') if name == 'hevc' else ('tcp',)
        if way == 'title':
            kinds = TITLES if name != 'hevc' else (*TITLES[:3], 'hevc')
            yield from (('-rtsp_transport', out, '-i', self.url(f'/title/{name}.{form}'))
                        for form in kinds for out in outs if out in ('tcp', 'udp'))
            return
        for out in outs:
            if out in ('tcp', 'udp'):
                yield '-rtsp_transport', out, '-i', self.url(f'/{way}/{name}')
            else:
                yield '-i', f'{self.web}/{out}/{way}/{name}' + '/index.m3u8' * (out == 'hls')

    def recorded(self, way, name):
        return sorted(glob.glob(f'{self.where}/recorded/{way}/{name}/*.mp4'))

    def __exit__(self, *error):
        for sender in self.senders:
            sender.kill()
        super().__exit__(*error)


def check(reader):
    """Returns what is wrong, or None."""
    name, words = reader
    got = hashes(*words, '-t', '2')
    wrong = [each for each in got if each not in of_source(name)]
    return None if len(got) >= ENOUGH and not wrong else f'{words}: {len(got)} pictures, {len(wrong)} wrong'


def check_all(pool, readers):
    wrong = [each for each in pool.map(check, readers) if each]
    assert not wrong, '\n'.join(wrong)


@test(timeout=120)
def pictures_stay_whole_on_every_way():
    """pictures of one, two and four slices are those of the source, by RTSP, MPEG-TS, HLS and recording"""
    for name in FILES:
        of_source(name)
    with tempfile.TemporaryDirectory() as where, Files(where) as site, Sliced(site, where) as proxy:
        for name in FILES:
            wait_until(lambda: os.path.exists(f'{where}/{name}.m3u8'), 30, 'segments')
        readers = [(name, words) for way, names in WAYS_IN.items() for name in names for words in proxy.urls(way, name)]
        with ThreadPoolExecutor(6) as pool:
            check_all(pool, readers)
            recorded = [(way, name) for way, names in WAYS_IN.items() for name in names if way != 'title']
            for way, name in recorded:
                wait_until(lambda: len(proxy.recorded(way, name)) > 1, 30, f'recordings of /{way}/{name}')
            check_all(pool, [(name, ('-i', proxy.recorded(way, name)[0])) for way, name in recorded])


if __name__ == '__main__':
    run()
