# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs in Go below tests/interop with modules of their own."""

import os
import pathlib
import subprocess

from proc import interop
from tap import Skip

INTEROP = pathlib.Path(__file__).resolve().parents[1] / 'interop'


def go_program(name, folder):
    """Builds tests/interop/NAME into a folder. Returns its path. Skips the test if its modules cannot be had."""
    interop()  # needs the same Go
    source, env = INTEROP / name, {**os.environ, 'GOTOOLCHAIN': 'local'}
    try:
        subprocess.run(['go', 'mod', 'download'], cwd=source, env=env, capture_output=True, check=True, timeout=60)
    except subprocess.SubprocessError as error:
        raise Skip('the Go modules cannot be had') from error
    path = os.path.join(folder, name)
    subprocess.run(['go', 'build', '-o', path, '.'], cwd=source, env=env, check=True)
    return path
