#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decodes what is made fit for browsers: the pictures are those of the source, without the B pictures.

x264 encodes with 1, 2 and 4 slices and with each way of B pictures, and the few lines below write
the packets as sources do: aggregated, fragmented for a line of 1400 bytes, or one of any length a
unit. FFmpeg decodes both, and the pictures are compared bit by bit.

Usage: fit-decode-test.py PROGRAM, built from fit-pipe.c.
"""

import re
import shutil
import struct
import subprocess
import sys
import tempfile

from tap import Skip, run, test

PROGRAM = sys.argv.pop(1)
LONG = 1400
LONGEST = 12 + 1188
PATIENCE = 60


def output(*command, data=None):
    return subprocess.run(command, input=data, capture_output=True, check=True, timeout=PATIENCE).stdout


def encode(path, slices, pyramid):
    output('ffmpeg', '-y', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=480x270:rate=25', '-t', '3',
           '-c:v', 'libx264', '-preset', 'veryfast', '-g', '40', '-bf', '3', '-b:v', '3M',
           '-x264-params', f'slices={slices}:b-pyramid={pyramid}:aud={slices & 1}', '-f', 'h264', path)


def pictures(path):
    text = output('ffmpeg', '-v', 'error', '-i', path, '-vsync', 'passthrough', '-f', 'framemd5', '-').decode()
    return [line.split(',')[-1].strip() for line in text.splitlines() if not line.startswith('#')]


def kinds(path):
    text = output('ffprobe', '-v', 'error', '-show_frames', '-show_entries', 'frame=pict_type', '-of', 'csv=p=0', path)
    return [line[0] for line in text.decode().splitlines() if line]


def access_units(data):
    unit, has_slice = [], False
    for nal in re.split(b'\0\0\0?\1', data)[1:]:
        nal = nal.rstrip(b'\0')
        kind = nal[0] & 31
        if has_slice and (kind in (6, 7, 8, 9) or (kind in (1, 5) and nal[1] & 0x80)):
            yield unit
            unit, has_slice = [], False
        unit.append(nal)
        has_slice |= kind in (1, 5)
    yield unit


def fragments(nal):
    parts = [nal[i:i + LONG - 2] for i in range(1, len(nal), LONG - 2)]
    for i, part in enumerate(parts):
        ends = (0x80 if i == 0 else 0) | (0x40 if i == len(parts) - 1 else 0)
        yield bytes([nal[0] & 0xe0 | 28, nal[0] & 31 | ends]) + part


def fragmented(unit):
    for nal in unit:
        if len(nal) > LONG:
            yield from fragments(nal)
        else:
            yield nal


def aggregated(unit):
    together = []
    for nal in unit + [None]:
        if together and (nal is None or sum(len(each) + 2 for each in together + [nal]) >= LONG):
            yield together[0] if len(together) == 1 else bytes([0x78]) + b''.join(
                struct.pack('>H', len(each)) + each for each in together)
            together = []
        if nal is not None and len(nal) > LONG:
            yield from fragments(nal)
        elif nal is not None:
            together.append(nal)


SHAPES = {'STAP-A': aggregated, 'FU-A': fragmented, 'whole units': iter}


def packets(data, shape):
    number = 65000
    for at, unit in enumerate(access_units(data)):
        payloads = list(shape(unit))
        for i, payload in enumerate(payloads):
            marker = 0x80 if i == len(payloads) - 1 else 0
            yield struct.pack('>BBHII', 0x80, 96 | marker, number & 0xffff, at * 3600, 1) + payload
            number += 1


def with_length(packet):
    return struct.pack('>H', len(packet)) + packet


def taken(data):
    while data:
        size = struct.unpack('>H', data[:2])[0]
        yield data[2:2 + size]
        data = data[2 + size:]


def check_headers(all_packets):
    last = None
    for packet in all_packets:
        assert len(packet) <= LONGEST, len(packet)
        number, time = struct.unpack('>HI', packet[2:8])
        if last:
            assert number == last[0] + 1 & 0xffff
            assert time >= last[1]
            assert (time != last[1]) == last[2], 'a marker ends each frame'
        last = number, time, bool(packet[1] & 0x80)


def byte_stream(all_packets):
    out, unit = b'', b''
    for payload in (packet[12:] for packet in all_packets):
        kind = payload[0] & 31
        if kind == 24:
            at = 1
            while at < len(payload):
                size = struct.unpack('>H', payload[at:at + 2])[0]
                out += b'\0\0\0\1' + payload[at + 2:at + 2 + size]
                at += 2 + size
        elif kind == 28:
            unit = (bytes([payload[0] & 0xe0 | payload[1] & 31]) if payload[1] & 0x80 else unit) + payload[2:]
            out += b'\0\0\0\1' + unit if payload[1] & 0x40 else b''
        else:
            out += b'\0\0\0\1' + payload
    return out


def check(slices, pyramid):
    if not shutil.which('ffmpeg') or b'libx264' not in output('ffmpeg', '-hide_banner', '-encoders'):
        raise Skip('FFmpeg with x264 is missing')
    with tempfile.TemporaryDirectory() as folder:
        source, fit = f'{folder}/source.h264', f'{folder}/fit.h264'
        encode(source, slices, pyramid)
        expected = [picture for picture, kind in zip(pictures(source), kinds(source)) if kind != 'B']
        assert 10 < len(expected) < 60
        with open(source, 'rb') as file:
            data = file.read()
        for name, shape in SHAPES.items():
            got = list(taken(output(PROGRAM, data=b''.join(map(with_length, packets(data, shape))))))
            check_headers(got)
            with open(fit, 'wb') as file:
                file.write(byte_stream(got))
            assert pictures(fit) == expected, name


@test
def one_slice_a_picture():
    for pyramid in 'none', 'strict', 'normal':
        check(1, pyramid)


@test
def two_slices_a_picture():
    for pyramid in 'none', 'strict', 'normal':
        check(2, pyramid)


@test
def four_slices_a_picture():
    for pyramid in 'none', 'strict', 'normal':
        check(4, pyramid)


run()
