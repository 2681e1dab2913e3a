#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What readers of different layers of one fanoutsink see, as a decoder shows it.

The reference is made without Weir: layers are cut out of the file by the few lines below, and
decoded by a decoder of another project. Frames that svcdec shows are compared with it bit by bit.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

from sanitized import environment
from tap import Skip, run, test

SVC = pathlib.Path(__file__).resolve().parents[1] / 'data' / 'svc' / 'svc_3s3t.264'
SIZES = [(320, 180), (640, 360), (1280, 720)]
BYTES = 'video/x-h264,stream-format=byte-stream,alignment=au'
PATIENCE = 120
CHANGES = 1000


def stock():
    """The reference's decoder sees no plugin of ours, which may be sanitized."""
    mine = {name: value for name, value in os.environ.items()
            if name not in ('GST_PLUGIN_PATH', 'GST_REGISTRY_FORK')}
    if 'GST_REGISTRY' in mine:
        mine['GST_REGISTRY'] += '-stock'
    return mine


def need(element, variables):
    if subprocess.run(['gst-inspect-1.0', element], env=variables,
                      capture_output=True).returncode != 0:
        raise Skip(f'no element {element}')


def bytes_of(spatial):
    return SIZES[spatial][0] * SIZES[spatial][1] * 3 // 2


def decode(line, layers, variables):
    """The frames, whose spatial layers are known."""
    with subprocess.Popen(['gst-launch-1.0', '-q', *line.split(), '!', 'fdsink', 'fd=1'], env=variables,
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
    need('openh264dec', stock())
    # The decoder has to be told that it knows the profile.
    return decode(f'filesrc location={cut} ! h264parse ! {BYTES} ! '
                  'capssetter caps=video/x-h264,profile=constrained-baseline ! openh264dec',
                  [spatial] * 120, stock())


def serve(directory, seed, pictures):
    """The pictures of each reader: their numbers and their layers. Each is in a file of its own:
    h264parse would have the decoder begin anew with each size, wherever it is."""
    done = subprocess.run([os.environ['WEIR_FANOUTSINK_LAYERS'], str(directory), str(seed), str(pictures)],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    shown, begins = {}, {}
    for line in done.stdout.splitlines():
        reader, picture, spatial, end = map(int, line.split())
        pictures = shown.setdefault(reader, [])
        with open(directory / f'{reader}.264', 'rb') as stream:
            stream.seek(begins.get(reader, 0))
            (directory / f'{reader}-{len(pictures)}.264').write_bytes(
                stream.read(end - begins.get(reader, 0)))
        begins[reader] = end
        pictures.append((picture, spatial))
    return shown


def check(directory, reader, pictures, references):
    # That decoder loses frames where the size of the picture changes.
    need('svcdec', environment())
    frames = decode(f'multifilesrc location={directory}/{reader}-%d.264 '
                    f'stop-index={len(pictures) - 1} caps={BYTES},framerate=30/1 ! svcdec',
                    [spatial for _, spatial in pictures], environment())
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
