#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What readers of different layers of one fanoutsink see, as a decoder shows it.

The reference is made without Weir: layers are cut out of the file by the few lines below, and
decoded by a decoder of another project. Frames are compared bit by bit.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

from tap import Skip, run, test

SVC = pathlib.Path(__file__).resolve().parents[1] / 'data' / 'svc' / 'svc_3s3t.264'
SIZES = [(320, 180), (640, 360), (1280, 720)]
PATIENCE = 120
CHANGES = 1000


def stock():
    """The decoder sees no plugin of ours, which may be sanitized."""
    mine = {name: value for name, value in os.environ.items()
            if name not in ('GST_PLUGIN_PATH', 'GST_REGISTRY_FORK')}
    if 'GST_REGISTRY' in mine:
        mine['GST_REGISTRY'] += '-stock'
    return mine


def need(element):
    if subprocess.run(['gst-inspect-1.0', element], env=stock(),
                      capture_output=True).returncode != 0:
        raise Skip(f'no element {element}')


def bytes_of(spatial):
    return SIZES[spatial][0] * SIZES[spatial][1] * 3 // 2


def decode(stream, layers):
    """The frames, whose spatial layers are known. The decoder has to be told that it knows the
    profile."""
    need('openh264dec')
    # In one piece: h264parse breaks a start code that lies on the border of two.
    line = (f'filesrc location={stream} blocksize={stream.stat().st_size} ! '
            'queue max-size-bytes=0 ! h264parse ! '
            'video/x-h264,stream-format=byte-stream,alignment=au ! '
            'capssetter caps=video/x-h264,profile=constrained-baseline ! openh264dec ! fdsink fd=1')
    with subprocess.Popen(['gst-launch-1.0', '-q'] + line.split(), env=stock(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        frames = [hashlib.md5(child.stdout.read(bytes_of(layer))).hexdigest() for layer in layers]
        rest = child.stdout.read()
        errors = child.stderr.read().decode()
        assert child.wait(PATIENCE) == 0 and not rest, f'{len(rest)} bytes more; {errors}'
    return frames


def units(data):
    starts = [m.end() for m in re.finditer(b'\0\0\1', data)] + [len(data) + 3]
    for start, end in zip(starts, starts[1:]):
        yield data[start:end - 3].rstrip(b'\0')


def reference(directory, spatial):
    """The frames of a spatial layer and those below, by H.264's annex G."""
    cut = directory / 'cut.264'
    cut.write_bytes(b''.join(b'\0\0\0\1' + unit for unit in units(SVC.read_bytes())
                             if unit[0] & 31 != 20 or unit[2] >> 4 & 7 <= spatial))
    return decode(cut, [spatial] * 120)


def serve(directory, seed, pictures):
    """The pictures of each reader: their numbers and their layers."""
    done = subprocess.run([os.environ['WEIR_FANOUTSINK_LAYERS'], str(directory), str(seed), str(pictures)],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    shown = {}
    for line in done.stdout.splitlines():
        reader, picture, spatial = map(int, line.split())
        shown.setdefault(reader, []).append((picture, spatial))
    return shown


def check(directory, reader, pictures, references):
    frames = decode(directory / f'{reader}.264', [spatial for _, spatial in pictures])
    wanted = [references[spatial][picture % 120] for picture, spatial in pictures]
    wrong = [at for at, (a, b) in enumerate(zip(frames, wanted)) if a != b]
    assert not wrong, f'reader {reader}: {len(wrong)} of {len(frames)} frames differ, ' \
        f'first {pictures[wrong[0]]}'


@test(timeout=PATIENCE)
def nine_sets():
    """each of 9 sets of layers, at once and over UDP and TCP, decodes bit-exact"""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        references = [reference(directory, spatial) for spatial in range(3)]
        for seed in (1, 2):  # with aggregates, and without
            shown = serve(directory, seed, 0)
            assert len(shown) == 18
            for reader, pictures in shown.items():
                spatial, temporal = reader // 6, reader // 2 % 3
                assert pictures == [(n, spatial) for n in range(0, 120, 1 << 2 - temporal)], \
                    f'reader {reader}: {pictures}'
                check(directory, reader, pictures, references)


@test(timeout=PATIENCE)
def changes():
    """readers that change their layers 1000 times decode bit-exact, whatever they got"""
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}')
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        references = [reference(directory, spatial) for spatial in range(3)]
        shown = serve(directory, seed, CHANGES * 10 // 6)
        for reader, pictures in shown.items():
            assert {spatial for _, spatial in pictures} == {0, 1, 2}, 'not all layers were there'
            check(directory, reader, pictures, references)


if __name__ == '__main__':
    run()
