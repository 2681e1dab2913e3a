# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs lines of gst-launch-1.0 as a shell does, and reads the RTP that they send."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile

from sanitized import environment
from tap import Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 40
STORE = '/srv/store'


@contextlib.contextmanager
def running(line):
    """Runs a line as a shell does. Ends it with Ctrl-C and requires a clean exit."""
    process = subprocess.Popen(
        ['sh', '-c', f'exec gst-launch-1.0 {line.strip()}'],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
        assert process.poll() is None, f'ended early: {process.stdout.read()}'
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def made_store():
    """Makes a block store of two disks, in place of STORE, and gives its folder."""
    program = os.environ.get('WEIR_STORE_PROGRAM')
    if not program:
        raise Skip('weir-store is not built')
    with tempfile.TemporaryDirectory() as directory:
        disks = [os.path.join(directory, name) for name in ('a', 'b')]
        for disk in disks:
            os.mkdir(disk)
        store = os.path.join(directory, 'store')
        subprocess.run([program, 'init', store, '--disks', ','.join(disks), '--policy', 'rda'],
                       check=True, capture_output=True)
        yield store


def listen(port=0, group=None):
    reader = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    reader.settimeout(PATIENCE)
    reader.bind(('', port))
    if group:
        reader.setsockopt(
            socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
            socket.inet_aton(group) + socket.inet_aton('127.0.0.1'))
    return reader


def expect_frames(reader, n):
    """Reads RTP until n frames are complete. Fails on a gap in the sequence numbers."""
    last = None
    while n > 0:
        packet = reader.recv(65536)
        first, second, seq = struct.unpack('!BBH', packet[:4])
        assert first >> 6 == 2, 'not RTP'
        assert last is None or seq == (last + 1) % 65536, f'{seq} after {last}'
        last = seq
        n -= second >> 7
