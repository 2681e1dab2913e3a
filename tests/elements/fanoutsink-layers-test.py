#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decodes the packets of readers with different layers of one fanoutsink.

The reference does not use Weir: svcfile.py cuts the layers out of the file, and a decoder of another
project decodes them. The frames of svcdec must be the same, bit by bit.
"""

import os
import pathlib
import subprocess
import tempfile
import time

from svcfile import check_shown, reference
from tap import run, test

PATIENCE = 120
CHANGES = 1000


def serve(directory, seed, pictures):
    """Returns the numbers and layers of each reader's pictures, which are in one file per reader."""
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


@test(timeout=PATIENCE)
def nine_sets():
    """each of 9 layer sets decodes bit-exact, all at once, over UDP and TCP"""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        references = [reference(directory, spatial) for spatial in range(3)]
        for seed in (1, 2):  # with aggregates and without
            shown = serve(directory, seed, 0)
            assert len(shown) == 18
            for reader, pictures in shown.items():
                spatial, temporal = reader // 6, reader // 2 % 3
                assert pictures == [(n, spatial) for n in range(0, 120, 1 << 2 - temporal)], \
                    f'reader {reader}: {pictures}'
                check_shown(directory, reader, pictures, references)


@test(timeout=PATIENCE)
def changes():
    """readers that change their layers 1000 times decode bit-exact"""
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}')
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        references = [reference(directory, spatial) for spatial in range(3)]
        shown = serve(directory, seed, CHANGES * 10 // 6)
        for reader, pictures in shown.items():
            assert {spatial for _, spatial in pictures} == {0, 1, 2}, 'not every spatial layer was sent'
            check_shown(directory, reader, pictures, references)


if __name__ == '__main__':
    run()
