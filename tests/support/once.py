# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that are made once in a program, also if its tests run at once (tap.py)."""

import contextlib
import fcntl
import os


def make_once(path, make):
    """Calls make(), which makes the file, unless another process of this program has made it. Returns
    the path. The folder must be one that the program made before its tests began."""
    with open(f'{path}.lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            try:
                make()
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                raise
    return path
