# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clips of picture and sound with a chosen distance of keyframes, encoded once in a program."""

import functools
import os
import shutil
import subprocess
import tempfile

from once import make_once
from proxy import CLIP
from tap import SLOWER, Skip

RATE = 25  # pictures/s
_FOLDER = tempfile.TemporaryDirectory()


def ffmpeg():
    program = shutil.which('ffmpeg')
    if not program:
        raise Skip('ffmpeg is not on the PATH')
    return program


@functools.cache
def clip(gop, seconds=None, size='320x180'):
    """Returns a clip with a keyframe every `gop` seconds, of the length of CLIP or of `seconds`."""
    path = os.path.join(_FOLDER.name, f'{gop:g}-{seconds}-{size}.mp4')
    loop, limit = ([], []) if seconds is None else (['-stream_loop', '-1'], ['-t', str(seconds)])
    pictures = str(round(RATE * gop))
    return make_once(path, lambda: subprocess.run(
        [ffmpeg(), '-nostdin', '-v', 'error', *loop, '-i', CLIP, *limit, '-s', size, '-r',
         str(RATE), '-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'main', '-bf', '0',
         '-sc_threshold', '0', '-g', pictures, '-keyint_min', pictures, '-c:a', 'copy', path],
        check=True, timeout=60 * SLOWER))
