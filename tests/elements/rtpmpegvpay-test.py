#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""MPEG video of FFmpeg in RTP: its headers and cuts, the way back by GStreamer's depayloader, and the
packets of live555's sender, of its testProgs (Debian: livemedia-utils)."""

import contextlib
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

from kernelpath import inside
from multicast import join
from netns import Namespace, NoRig
from proc import Proc
from sanitized import environment
from tap import Skip, run, test

PATIENCE = 30
MTU = 1000
LIVE555 = 'testMPEG1or2VideoStreamer'
LIVE555_GROUP = '239.255.42.42', 8888
AN_AND_N = 0xc000


@contextlib.contextmanager
def stream(version, size='352x288'):
    """Gives the path of a stream with B-frames. In MPEG-1 a picture is one slice, mostly longer than a
    packet; in MPEG-2 each row of 16 lines is one, in this size shorter than a packet."""
    if not shutil.which('ffmpeg'):
        raise Skip('ffmpeg is not on the PATH')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f'a.m{version}v'
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i',
                        f'testsrc2=size={size}:rate=25:duration=1', '-c:v', f'mpeg{version}video',
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


def packets_of(framed, mtu=MTU):
    """Yields the marker and the payload of each packet (RFC 4571)."""
    while framed:
        size, = struct.unpack('>H', framed[:2])
        packet, framed = framed[2:2 + size], framed[2 + size:]
        assert len(packet) == size <= mtu and packet[0] == 0x80 and packet[1] & 0x7f == 32
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


# ---- live555 ----

@contextlib.contextmanager
def network():
    """Gives a namespace whose multicast stays on its loopback interface."""
    try:
        namespace = Namespace()
        namespace.run('ip', 'link', 'set', 'lo', 'up', 'multicast', 'on')
        namespace.run('ip', 'route', 'add', '224.0.0.0/4', 'dev', 'lo')
    except NoRig as why:
        raise Skip(str(why))
    with contextlib.closing(namespace):
        yield namespace


def packets_of_live555(path):
    """Returns the packets of the stream, which the program sends again and again."""
    if not shutil.which(LIVE555):
        raise Skip(f'{LIVE555} of live555 is not on the PATH')
    # It sends a slice when it has seen what follows.
    (path.parent / 'test.mpg').write_bytes(2 * path.read_bytes())
    left, packets = path.stat().st_size, []
    with network() as namespace, inside(namespace, lambda: join(*LIVE555_GROUP)) as receiver, \
            Proc(*namespace.words, LIVE555, cwd=path.parent):
        receiver.settimeout(PATIENCE)
        while left > 0:
            packet = receiver.recv(65536)
            assert packet[0] == 0x80 and packet[1] & 0x7f == 32
            packets.append((packet[1] >> 7, packet[12:]))
            left -= len(packet) - 16
    assert left == 0, left
    assert packets[0][0] == 1  # as if a picture had ended
    return [(0, packets[0][1]), *packets[1:]]


def without(bits, packets):
    return [(marker, (int.from_bytes(payload[:4], 'big') & ~bits).to_bytes(4, 'big') + payload[4:])
            for marker, payload in packets]


def both(path):
    """Returns our packets and those of live555, whose longest has a length that depends on its version.
    It ends a packet earlier, with 1000 bytes, only where a further slice follows."""
    theirs = packets_of_live555(path)
    mtu = max(12 + len(payload) for _, payload in theirs)
    return list(packets_of(launch(path, f'rtpmpegvpay mtu={mtu} ! rtpstreampay'), mtu)), theirs


@test
def mpeg1_packets_are_those_of_live555():
    with stream(1) as path:
        ours, theirs = both(path)
    assert ours == theirs, next(pair for pair in zip(ours, theirs) if pair[0] != pair[1])


@test
def mpeg2_packets_are_those_of_live555_but_for_an_and_n():
    with stream(2, '2048x16') as path:
        ours, theirs = both(path)
    assert {payload[2] >> 6 for _, payload in theirs} == {0}
    ours = without(AN_AND_N, ours)
    assert ours == theirs, next(pair for pair in zip(ours, theirs) if pair[0] != pair[1])


@test
def mpeg2_short_slices_are_described_as_by_live555():
    """each byte of short slices in MPEG-2 has the description of live555, but for AN and N"""
    with stream(2) as path:
        ours, theirs = both(path)
    # S, B and E belong to a packet, the rest to the picture.
    ours, theirs = (
        [(payload[4 + i], payload[:4]) for _, payload in without(AN_AND_N | 0x3800, packets)
         for i in range(len(payload) - 4)] for packets in (ours, theirs))
    assert ours == theirs


if __name__ == '__main__':
    run()
