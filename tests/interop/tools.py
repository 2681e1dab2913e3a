# SPDX-License-Identifier: LGPL-2.1-or-later
"""The interop origin and reader agree with each other without Weir between them."""

import json
import os
import subprocess
import tempfile

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


if __name__ == '__main__':
    run()
