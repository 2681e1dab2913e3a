#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decodes the output of svclayerfilter and compares it with reference frames.

The references do not use Weir: the few lines below cut layers out of the file, and other projects'
decoders decode them. Frames are compared bit by bit.
"""

import hashlib
import os
import pathlib
import re
import struct
import subprocess
import tempfile

from sanitized import environment
from tap import SLOWER, Skip, run, test

DATA = pathlib.Path(__file__).resolve().parents[1] / 'data' / 'svc'
SVC = DATA / 'svc_3s3t.264'
SIZES = [(320, 180), (640, 360), (1280, 720)]
PATIENCE = 30 * SLOWER
BYTES = 'video/x-h264,stream-format=byte-stream,alignment=au'


def have(element):
    return subprocess.run(['gst-inspect-1.0', element], env=environment(),
                          capture_output=True).returncode == 0


def need(*elements):
    for each in elements:
        if not have(each):
            raise Skip(f'element {each} is missing')


def launch(line):
    # The time limit is for a hang of gst-launch when an element fails while others preroll.
    done = subprocess.run(['gst-launch-1.0', '-q'] + line.split(), env=environment(),
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f'{line}\n{done.stdout}{done.stderr}'
    assert 'WARNING' not in done.stdout + done.stderr, done.stdout + done.stderr


class Work:
    """A temporary directory for a test's files."""

    def __enter__(self):
        self._dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._dir.name)
        return self

    def __exit__(self, *_error):
        self._dir.cleanup()

    def file(self, name):
        return self.path / name


def frames_of(path, size):
    data = path.read_bytes()
    n = size[0] * size[1] * 3 // 2
    assert len(data) % n == 0, f'{len(data)} bytes are not a multiple of a {size} picture'
    return [hashlib.md5(data[i:i + n]).hexdigest() for i in range(0, len(data), n)]


def openh264(work, stream, size):
    """Decodes with GStreamer's openh264dec, which accepts the profile only under another name."""
    out = work.file('openh264.yuv')
    launch(f'filesrc location={stream} ! h264parse ! {BYTES} ! '
           f'capssetter caps=video/x-h264,profile=constrained-baseline ! openh264dec ! '
           f'filesink location={out}')
    return frames_of(out, size)


def ffmpeg(stream, size, extra=()):
    done = subprocess.run(
        ['ffmpeg', '-v', 'error', *extra, '-i', str(stream), '-pix_fmt', 'yuv420p', '-f', 'framemd5',
         '-'], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = [line.split(',') for line in done.stdout.splitlines() if not line.startswith('#')]
    n = size[0] * size[1] * 3 // 2
    assert all(int(line[4]) == n for line in lines), f'not all pictures have the size {size}'
    return [line[5].strip() for line in lines], done.stderr


def units(data):
    starts = [m.end() for m in re.finditer(b'\0\0\1', data)] + [len(data) + 3]
    for start, end in zip(starts, starts[1:]):
        yield data[start:end - 3].rstrip(b'\0')


def cut_svc(spatial, temporal, to):
    """Cuts out the units of the layers, according to annex G of H.264."""
    out, now = b'', 0
    for unit in units(SVC.read_bytes()):
        kind = unit[0] & 31
        if kind == 14:
            now = unit[3] >> 5
        if kind in (1, 5, 14) and now > temporal:
            continue
        if kind == 20 and (unit[2] >> 4 & 7 > spatial or unit[3] >> 5 > temporal):
            continue
        out += b'\0\0\0\1' + unit
    to.write_bytes(out)
    return to


class Reference:
    """The frames of each layer set, decoded once."""
    _frames = {}

    @classmethod
    def of(cls, work, spatial, temporal):
        key = spatial, temporal
        if key not in cls._frames:
            cut = cut_svc(spatial, temporal, work.file('cut.264'))
            cls._frames[key] = openh264(work, cut, SIZES[spatial])
            assert len(cls._frames[key]) == 120 >> (2 - temporal)
        return cls._frames[key]


POINTS = [(spatial, temporal) for spatial in range(3) for temporal in range(3)]


def check(got, wanted, what):
    assert got == wanted, f'{what}: {len(got)} frames, wanted {len(wanted)}; ' \
        f'{sum(a != b for a, b in zip(got, wanted))} differ'


@test
def the_reference():
    """fewer temporal layers show every second or fourth picture, unchanged"""
    need('openh264dec')
    with Work() as work:
        for spatial in range(3):
            whole = Reference.of(work, spatial, 2)
            check(Reference.of(work, spatial, 1), whole[::2], f'{spatial}.1')
            check(Reference.of(work, spatial, 0), whole[::4], f'{spatial}.0')


@test
def as_access_units():
    """SVC as access units: every layer set decodes bit-exact"""
    need('openh264dec')
    with Work() as work:
        for spatial, temporal in POINTS:
            out = work.file('out.264')
            launch(f'filesrc location={SVC} ! h264parse ! {BYTES} ! svclayerfilter '
                   f'max-spatial={spatial} max-temporal={temporal} ! filesink location={out}')
            check(openh264(work, out, SIZES[spatial]), Reference.of(work, spatial, temporal),
                  f'{spatial}.{temporal}')


@test
def as_rtp():
    """SVC over RTP, in each aggregate mode: every layer set decodes bit-exact"""
    need('openh264dec')
    with Work() as work:
        for mode in ('none', 'zero-latency', 'max-stap'):
            for spatial, temporal in POINTS:
                out = work.file('out.264')
                launch(f'filesrc location={SVC} ! h264parse ! rtph264pay aggregate-mode={mode} ! '
                       f'svclayerfilter max-spatial={spatial} max-temporal={temporal} ! '
                       f'rtph264depay ! {BYTES} ! filesink location={out}')
                check(openh264(work, out, SIZES[spatial]), Reference.of(work, spatial, temporal),
                      f'{mode} {spatial}.{temporal}')


@test
def as_plain_h264():
    """output-mode=avc: ffmpeg and OpenH264 decode each layer alike, from access units and RTP"""
    need('openh264dec')
    with Work() as work:
        for spatial, temporal in POINTS:
            choice = f'output-mode=avc max-spatial={spatial} max-temporal={temporal}'
            units_out, rtp_out = work.file('units.264'), work.file('rtp.264')
            launch(f'filesrc location={SVC} ! h264parse ! {BYTES} ! svclayerfilter {choice} ! '
                   f'filesink location={units_out}')
            launch(f'filesrc location={SVC} ! h264parse ! rtph264pay aggregate-mode=max-stap ! '
                   f'svclayerfilter {choice} ! rtph264depay ! h264parse ! {BYTES} ! '
                   f'filesink location={rtp_out}')
            for out in (units_out, rtp_out):
                frames, errors = ffmpeg(out, SIZES[spatial])
                assert not errors, errors
                check(frames, Reference.of(work, spatial, temporal), f'{out.stem} {spatial}.{temporal}')


@test
def with_codec_data():
    """stream-format=avc: parameter sets that are only in the caps are the layer's own"""
    need('openh264dec')
    with Work() as work:
        for mode in ('svc', 'avc', 'base'):
            out = work.file('out.264')
            launch(f'filesrc location={SVC} ! h264parse ! video/x-h264,stream-format=avc ! '
                   f'svclayerfilter output-mode={mode} max-spatial=1 ! h264parse ! {BYTES} ! '
                   f'filesink location={out}')
            spatial = 0 if mode == 'base' else 1
            if mode == 'svc':
                frames = openh264(work, out, SIZES[1])
            else:
                frames, errors = ffmpeg(out, SIZES[spatial])
                assert not errors, errors
            check(frames, Reference.of(work, spatial, 2), mode)


@test
def inferred_layers():
    """infer-temporal: layers inferred from nal_ref_idc show every 2nd, 4th or 8th picture"""
    stream, size = DATA / 'avc_4t.264', (640, 360)
    whole, _errors = ffmpeg(stream, size)
    assert len(whole) == 120
    with Work() as work:
        for temporal in range(4):
            out = work.file('out.264')
            launch(f'filesrc location={stream} ! h264parse ! {BYTES} ! svclayerfilter '
                   f'infer-temporal=true max-temporal={temporal} ! filesink location={out}')
            frames, errors = ffmpeg(out, size)
            assert not errors, errors
            # Until all values of nal_ref_idc have been seen, pictures count as lower layers.
            step = 8 >> temporal
            assert set(frames) <= set(whole)
            check(frames[-(112 // step):], whole[8::step], f'temporal {temporal}')


def is_t0_of_h265(unit):
    return (unit[1] & 7) == 1


@test
def h265():
    """H.265, as access units and as RTP: the base layer decodes bit-exact"""
    need('rtph265pay')
    stream, size = DATA / 'hevc_2t.265', None
    with Work() as work:
        cut, out, rtp = (work.file(name) for name in ('cut.265', 'out.265', 'rtp.265'))
        cut.write_bytes(b''.join(
            b'\0\0\0\1' + unit for unit in units(stream.read_bytes()) if is_t0_of_h265(unit)))
        launch(f'filesrc location={stream} ! h265parse ! video/x-h265,stream-format=byte-stream ! '
               f'svclayerfilter max-temporal=0 ! filesink location={out}')
        launch(f'filesrc location={stream} ! h265parse ! rtph265pay ! '
               f'svclayerfilter max-temporal=0 ! rtph265depay ! h265parse ! '
               f'video/x-h265,stream-format=byte-stream ! filesink location={rtp}')
        wanted = [line for line in md5s(cut)]
        assert len(wanted) == 33, len(wanted)
        check(md5s(out), wanted, 'access units')
        check(md5s(rtp), wanted, 'RTP')


def md5s(stream):
    done = subprocess.run(['ffmpeg', '-v', 'error', '-i', str(stream), '-f', 'framemd5', '-'],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [line.split(',')[5].strip() for line in done.stdout.splitlines() if line[:1] != '#']


def superframes(data):
    at = 32
    while at < len(data):
        size, time = struct.unpack_from('<IQ', data, at)
        yield time, data[at + 12:at + 12 + size]
        at += 12 + size


def cut_superframe(frame, spatial):
    """Returns the first frames of a superframe, according to annex B of the VP9 specification."""
    n, size = (frame[-1] & 7) + 1, (frame[-1] >> 3 & 3) + 1
    index = frame[-1 - n * size:-1]
    sizes = [int.from_bytes(index[i * size:(i + 1) * size], 'little') for i in range(n)]
    kept = sizes[:spatial + 1]
    out = frame[:sum(kept)]
    if len(kept) > 1:
        marker = bytes([0xc0 | 3 << 3 | len(kept) - 1])
        out += marker + b''.join(struct.pack('<I', each) for each in kept) + marker
    return out


@test
def vp9():
    """VP9 superframes: every spatial layer decodes bit-exact"""
    need('ivfparse', 'vp9dec')
    data = (DATA / 'vp9_l3t3.ivf').read_bytes()
    with Work() as work:
        for spatial, size in enumerate([(160, 90), (320, 180), (640, 360)]):
            cut, out = work.file('cut.ivf'), work.file('out.yuv')
            frames = [(time, cut_superframe(each, spatial)) for time, each in superframes(data)]
            cut.write_bytes(data[:32] + b''.join(
                struct.pack('<IQ', len(each), time) + each for time, each in frames))
            launch(f'filesrc location={DATA}/vp9_l3t3.ivf ! ivfparse ! '
                   f'svclayerfilter max-spatial={spatial} ! vp9dec ! filesink location={out}')
            # ffmpeg's native decoder shows every layer of a superframe, so libvpx decodes.
            wanted, errors = ffmpeg(cut, size, ['-c:v', 'libvpx-vp9'])
            assert len(wanted) == 60 and not errors, errors
            check(frames_of(out, size), wanted, f'spatial {spatial}')


def cut_av1(data, spatial, temporal):
    """Cuts out the OBUs of the layers, according to section 5.3 of the AV1 specification."""
    out, at, delimiter = b'', 0, b''
    while at < len(data):
        header = data[at]
        has_extension = header >> 2 & 1
        extension = data[at + 1] if has_extension else 0
        size = shift = 0
        body = at + 1 + has_extension
        while True:
            size |= (data[body] & 127) << shift
            shift += 7
            body += 1
            if not data[body - 1] & 128:
                break
        kind = header >> 3 & 15
        if kind == 2:
            delimiter = data[at:body + size]  # kept only if a frame follows
        elif kind == 1 or not has_extension or (
                extension >> 5 <= temporal and extension >> 3 & 3 <= spatial):
            out += delimiter + data[at:body + size]
            delimiter = b''
        at = body + size
    return out


@test
def av1():
    """AV1: every layer set equals the specification's byte by byte, and decodes"""
    need('av1parse')
    stream = DATA / 'av1_l3t3.obu'
    with Work() as work:
        for spatial, temporal in POINTS:
            out = work.file('out.obu')
            launch(f'filesrc location={stream} ! av1parse ! video/x-av1,alignment=tu ! '
                   f'svclayerfilter max-spatial={spatial} max-temporal={temporal} ! '
                   f'filesink location={out}')
            assert out.read_bytes() == cut_av1(stream.read_bytes(), spatial, temporal), \
                f'{spatial}.{temporal}'
            assert len(md5s(out)) == 60 >> (2 - temporal)


@test
def svcdec():
    """svcdec decodes the requested layer bit-exact"""
    need('openh264dec', 'svcdec')
    with Work() as work:
        for spatial, temporal in POINTS:
            out = work.file('out.yuv')
            launch(f'filesrc location={SVC} ! h264parse ! svcdec target-spatial={spatial} '
                   f'target-temporal={temporal} ! filesink location={out}')
            check(frames_of(out, SIZES[spatial]), Reference.of(work, spatial, temporal),
                  f'{spatial}.{temporal}')


@test
def svcenc():
    """svcdec and ffmpeg decode svcenc's stream alike after svclayerfilter"""
    need('svcenc', 'svcdec')
    with Work() as work:
        for spatial, size in enumerate([(160, 90), (320, 180), (640, 360)]):
            stream, plain, shown = (work.file(name) for name in ('a.264', 'plain.264', 'a.yuv'))
            launch(f'videotestsrc num-buffers=40 pattern=ball ! '
                   f'video/x-raw,width=640,height=360,framerate=30/1 ! svcenc ! tee name=t '
                   f't. ! queue ! svclayerfilter max-spatial={spatial} output-mode=avc ! '
                   f'filesink location={plain} '
                   f't. ! queue ! svclayerfilter max-spatial={spatial} ! svcdec ! '
                   f'filesink location={shown} '
                   f't. ! queue ! filesink location={stream}')
            frames, errors = ffmpeg(plain, size)
            assert not errors, errors
            assert len(frames) == 40
            check(frames_of(shown, size), frames, f'spatial {spatial}')
            ids = [sps_id(unit) for unit in units(stream.read_bytes()) if unit[0] & 31 in (7, 15)]
            assert ids == [0, 1, 2], ids


def sps_id(unit):
    bits = ''.join(f'{byte:08b}' for byte in unit[4:8])
    zeros = bits.index('1')
    return int(bits[zeros:2 * zeros + 1], 2) - 1


@test
def simulcast():
    """svcenc simulcast=true: three plain streams, each from its own pad"""
    need('svcenc')
    with Work() as work:
        files = [work.file(f'{i}.264') for i in range(3)]
        launch(f'videotestsrc num-buffers=30 ! video/x-raw,width=640,height=360,framerate=30/1 ! '
               f'svcenc name=e simulcast=true e.layer_0 ! queue ! filesink location={files[0]} '
               f'e.layer_1 ! queue ! filesink location={files[1]} '
               f'e.src ! queue ! filesink location={files[2]}')
        for file, size in zip(files, [(160, 90), (320, 180), (640, 360)]):
            frames, errors = ffmpeg(file, size)
            assert len(frames) == 30 and not errors, f'{file.name}: {len(frames)} {errors}'


if __name__ == '__main__':
    os.environ.setdefault('GST_DEBUG_NO_COLOR', '1')
    run()
