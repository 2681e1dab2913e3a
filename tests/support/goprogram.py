# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the programs in Go of tests/interop: goprogram.py FOLDER OUTPUT.

It uses the Go in PATH. If that is older than FOLDER/go.mod asks for, it gets the Go that go.mod names
from Go's module proxy, as Go 1.21 and later do by themselves. If there is no Go, or the modules cannot
be had, OUTPUT is a text that says so, and interop() in proc.py skips the tests that need the program.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from tap import Skip

INTEROP = pathlib.Path(__file__).resolve().parents[1] / 'interop'
DOWNLOAD_S = 600


def _run(*words, cwd):
    env = {**os.environ, 'GOTOOLCHAIN': 'local'}
    if os.path.isabs(words[0]):
        env.pop('GOROOT', None)  # it would name the libraries of another Go
    return subprocess.run(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=True, timeout=DOWNLOAD_S).stdout


def _numbers(version):
    """Returns the numbers of a version such as 'go1.24.1' or 'devel go1.25-...'."""
    found = re.search(r'(\d+)\.(\d+)(?:\.(\d+))?', version)
    return tuple(int(number or 0) for number in found.groups()) if found else (0, 0, 0)


def _go_of_proxy(wanted):
    """Returns the path of the Go with this version, which the module proxy has as a module."""
    arch = _run('go', 'env', 'GOARCH', cwd='/').strip()
    told = _run('go', 'mod', 'download', '-json',
                f'golang.org/toolchain@v0.0.1-go{wanted}.linux-{arch}', cwd='/')
    folder = pathlib.Path(json.loads(told)['Dir'])
    # Modules have no executable files.
    for program in [*folder.glob('bin/*'), *folder.glob('pkg/tool/*/*')]:
        if not os.access(program, os.X_OK):
            program.chmod(0o555)
    return str(folder / 'bin/go')


def _go_for(source):
    wanted = re.search(r'^go (\S+)$', (source / 'go.mod').read_text(encoding='utf-8'), re.M)[1]
    try:
        have = _run('go', 'env', 'GOVERSION', cwd='/').strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise Skip(f'needs Go {wanted}, and Go is not installed') from error
    if _numbers(have) >= _numbers(wanted):
        return 'go'
    try:
        return _go_of_proxy(wanted)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        raise Skip(f'needs Go {wanted}; this is {have or "older"}, '
                   'and the module proxy gives no other') from error


def build(source, output):
    """Builds a folder. Raises Skip if there is no Go for it, or if its modules cannot be had."""
    go = _go_for(source)
    try:
        _run(go, 'mod', 'download', cwd=source)
    except subprocess.SubprocessError as error:
        raise Skip('the Go modules cannot be had') from error
    try:
        _run(go, 'build', '-o', output, '.', cwd=source)
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)


def go_program(name, folder):
    """Builds tests/interop/NAME into a folder. Returns its path. Skips the test as build() does."""
    path = os.path.join(folder, name)
    build(INTEROP / name, path)
    return path


def main(source, output):
    output = os.path.abspath(output)  # Go builds in the folder of the source
    try:
        build(pathlib.Path(source), output)
    except Skip as lack:
        pathlib.Path(output).unlink(missing_ok=True)
        pathlib.Path(output).write_text(str(lack), encoding='utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
