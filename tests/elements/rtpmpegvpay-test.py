#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""MPEG video of FFmpeg in RTP: its headers and cuts, and the way back by GStreamer's depayloader."""

import contextlib
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

from sanitized import environment
from tap import Skip, run, test

PATIENCE = 30
MTU = 1000


@contextlib.contextmanager
def stream(version):
    """Gives the path of a stream with B-frames, whose slices are shorter than a packet in MPEG-2,
    and longer in MPEG-1."""
    if not shutil.which('ffmpeg'):
        raise Skip('ffmpeg is not on the PATH')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f'a.m{version}v'
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i',
                        'testsrc2=size=352x288:rate=25:duration=1', '-c:v', f'mpeg{version}video',
                        '-threads', '1', '-bf', '2', '-g', '12', '-b:v', '2M', str(path)], check=True,
                       timeout=PATIENCE)
        yield path


def launch(path, line):
    """Returns what the elements after the parser write."""
    out = path.with_suffix('.out')
    done = subprocess.run(['gst-launch-1.0', '-q', *f'filesrc location={path} ! mpegvideoparse ! '
                           f'{line} ! filesink location={out}'.split()], env=environment(),
                          capture_output=True, text=True, timeout=PATIENCE)
    if 'no element' in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def packets_of(framed):
    """Yields the marker and the payload of each packet (RFC 4571)."""
    while framed:
        size, = struct.unpack('>H', framed[:2])
        packet, framed = framed[2:2 + size], framed[2 + size:]
        assert len(packet) == size <= MTU and packet[0] == 0x80 and packet[1] & 0x7f == 32
        yield packet[1] >> 7, packet[12:]


def vectors(data):
    """Returns the last byte of the header for a picture header."""
    bits = int.from_bytes(data[4:9], 'big')
    kind = bits >> 27 & 7
    return (bits >> 3 & 0xf if kind == 3 else 0) << 4 | (bits >> 7 & 0xf if kind > 1 else 0)


def check(version):
    with stream(version) as path:
        whole = path.read_bytes()
        packets = list(packets_of(launch(path, f'rtpmpegvpay mtu={MTU} ! rtpstreampay')))
        assert launch(path, f'rtpmpegvpay mtu={MTU} ! rtpmpvdepay') == whole
    assert b''.join(payload[4:] for _, payload in packets) == whole
    edges = [m.start() for m in re.finditer(rb'\x00\x00\x01', whole)] + [len(whole)]
    codes = {edge: whole[edge + 3] for edge in edges[:-1]}
    pictures = [edge for edge, code in codes.items() if code == 0]
    assert sum(marker for marker, _ in packets) == len(pictures)
    at, kinds = 0, set()
    for marker, payload in packets:
        head, size = int.from_bytes(payload[:4], 'big'), len(payload) - 4
        inside = [edge for edge in edges if at <= edge < at + size]
        slices = [edge for edge in inside if 0 < codes[edge] < 0xb0]
        picture = max(edge for edge in pictures if edge < at + size)
        reference, kind = divmod(int.from_bytes(whole[picture + 4:picture + 6], 'big') >> 3, 8)
        kinds.add(kind)
        assert head >> 16 == reference & 0x3ff and head >> 8 & 7 == kind
        assert head & 0xff == vectors(whole[picture:picture + 9]), (version, hex(head))
        assert head >> 15 & 1 == (version == 2)
        assert head >> 13 & 1 == any(codes[edge] == 0xb3 for edge in inside)
        assert head >> 12 & 1 == bool(slices)
        assert head >> 11 & 1 == (at + size in edges)
        assert not marker or at + size in edges
        at += size
    assert kinds == {1, 2, 3}, kinds


@test
def mpeg1_with_long_slices():
    check(1)


@test
def mpeg2_with_short_slices():
    check(2)


if __name__ == '__main__':
    run()
