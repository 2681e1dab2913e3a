# SPDX-License-Identifier: LGPL-2.1-or-later
"""The interop origin and reader agree with each other without Weir between them, and are built by a Go
that is new enough."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import goprogram
from proc import Proc, interop
from tap import run, test

CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')


def read_over(transport):
    program = interop()
    with tempfile.TemporaryDirectory() as directory:
        dump = os.path.join(directory, 'dump')
        with Proc(
            program, 'origin', '--listen', '127.0.0.1:0', '--clip', CLIP, '--dump', dump
        ) as origin:
            url = origin.wait_for_line(r'^READY (rtsp://\S+)')[1]
            reader = subprocess.run(
                [program, 'read', '--transport', transport, '--duration', '2', '--json',
                 '--expect', dump, url],
                capture_output=True, text=True, timeout=30, check=False,
            )
    assert reader.returncode == 0, reader.stdout + reader.stderr
    total = json.loads(reader.stdout)['totals']
    assert total['ok'] == 1 and total['matched'] > 0, total


@test
def the_reader_gets_the_origins_stream_over_tcp():
    read_over('tcp')


@test
def the_reader_gets_the_origins_stream_over_udp():
    read_over('udp')


# Stands for Go: says its version, knows the Go of the module proxy, if there is one, and builds a
# program that is the text of its version.
FAKE_GO = """#!/bin/sh
case "$*" in
  'env GOVERSION') echo @VERSION@ ;;
  'env GOARCH') echo amd64 ;;
  'mod download -json golang.org/toolchain@v0.0.1-go1.24.0.linux-amd64') echo '@DOWNLOAD@' ;;
  'mod download') exit @MODULES@ ;;
  'build -o /'*) echo @VERSION@ >"$3"; chmod 755 "$3" ;;
  *) exit 9 ;;
esac
"""


def fake_go(version, proxy='', modules=0):
    return (FAKE_GO.replace('@VERSION@', version).replace('@MODULES@', str(modules))
            .replace('@DOWNLOAD@', json.dumps({'Dir': str(proxy)}) if proxy else ''))


def build(*, go=None, proxy_has='go1.24.0', modules=0):
    """Builds a module that needs Go 1.24.0 with the Go `go` in PATH. Returns the output's text, and
    whether it is a program."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        proxy = folder / 'proxy' if proxy_has else ''
        (folder / 'go.mod').write_text('module m\n\ngo 1.24.0\n', encoding='utf-8')
        (folder / 'bin').mkdir()
        if go:
            (folder / 'bin/go').write_text(fake_go(go, proxy, modules), encoding='utf-8')
            (folder / 'bin/go').chmod(0o755)
        if proxy_has:
            (folder / 'proxy/bin').mkdir(parents=True)
            (folder / 'proxy/bin/go').write_text(fake_go(proxy_has), encoding='utf-8')
        before = os.environ['PATH']
        (folder / 'bin/chmod').symlink_to(shutil.which('chmod'))  # and nothing else, so no real Go
        os.environ['PATH'] = str(folder / 'bin')
        try:
            goprogram.main(folder, os.path.relpath(folder / 'out'))
        finally:
            os.environ['PATH'] = before
        return (folder / 'out').read_text(encoding='utf-8').strip(), os.access(folder / 'out', os.X_OK)


@test
def a_new_go_builds_by_itself():
    assert build(go='go1.24.0') == ('go1.24.0', True)
    assert build(go='devel go1.26-abcdef') == ('devel go1.26-abcdef', True)


@test
def an_old_go_gets_the_one_that_the_modules_name():
    for old in 'go1.19.8', 'go1.22.2', 'go1.23':
        assert build(go=old) == ('go1.24.0', True), old


@test
def what_is_missing_for_a_build_is_said():
    assert build() == ('needs Go 1.24.0, and Go is not installed', False)
    assert build(go='go1.22.2', proxy_has='') == (
        'needs Go 1.24.0; this is go1.22.2, and the module proxy gives no other', False)
    assert build(go='go1.26.0', modules=1) == ('the Go modules cannot be had', False)


if __name__ == '__main__':
    run()
