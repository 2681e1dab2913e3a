# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds transport streams packet by packet, with faults that no multiplexer should make."""

import struct
import subprocess

from proxy import CLIP

PACKET = 188
PMT_PID, VIDEO_PID, AUDIO_PID, CLOCK_PID = 0x1000, 0x100, 0x101, 0x1ff


def crc(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04c11db7 if value & 0x80000000 else 0)) & 0xffffffff
    return value


def packet(pid, payload, start=True, counter=0):
    """Returns one packet. An adaptation field fills it up."""
    room = PACKET - 4 - len(payload)
    head = struct.pack('>BHB', 0x47, start << 14 | pid, (0x30 if room else 0x10) | counter & 15)
    field = b''
    if room:
        field = bytes([room - 1]) + (b'\0' + b'\xff' * (room - 2) if room > 1 else b'')
    return head + field + payload


def section(table, body):
    data = struct.pack('>BHH3B', table, 0xb000 | len(body) + 9, 1, 0xc1, 0, 0) + body
    return b'\0' + data + struct.pack('>I', crc(data))


def table_packets(*streams):
    """Returns PAT and PMT. A stream is (type, PID, descriptors). The clock has its own PID."""
    body = struct.pack('>HH', 0xe000 | CLOCK_PID, 0xf000)
    for kind, pid, descriptors in streams:
        body += struct.pack('>BHH', kind, 0xe000 | pid, 0xf000 | len(descriptors)) + descriptors
    return [packet(0, section(0, struct.pack('>HH', 1, 0xe000 | PMT_PID))),
            packet(PMT_PID, section(2, body))]


def pes(pts, body=b'\0\0\0\1\x09\x10' + b'x' * 50, stream_id=0xe0):
    time = b''
    if pts is not None:
        time = struct.pack('>BHH', 0x21 | pts >> 29 & 0xe, pts >> 14 & 0xfffe | 1,
                           pts << 1 & 0xfffe | 1)
    return struct.pack('>3sBH3B', b'\0\0\1', stream_id, 0, 0x80, 0x80 if time else 0,
                       len(time)) + time + body


def without_clock(*stream):
    """Returns tables, a PES packet without a timestamp, three with one, and no clock."""
    kind, pid, descriptors = stream or (0x1b, VIDEO_PID, b'')
    payloads = [pes(time) for time in (None, 90000, 93000, 96000, 99000)]
    return table_packets((kind, pid, descriptors)) + [
        packet(pid, payload, counter=n) for n, payload in enumerate(payloads)]


def halved(payloads):
    """Returns packets of which the first payload's head lies in two."""
    return table_packets((0x1b, VIDEO_PID, b'')) + [
        packet(VIDEO_PID, payloads[0][:2]),
        packet(VIDEO_PID, payloads[0][2:], start=False, counter=1),
        *(packet(VIDEO_PID, payload, counter=n) for n, payload in enumerate(payloads[1:], 2))]


def opus(channels):
    return 0x06, AUDIO_PID, b'\x05\x04Opus' + bytes((0x7f, 2, 0x80, channels))


STREAMS = {
    'no time': without_clock(),
    'an id without a time': [data.replace(b'\0\0\1\xe0', b'\0\0\1\xbf') for data in without_clock()],
    'a head in two packets': halved([pes(time) for time in (None, 90000, 93000, 96000)]),
    'two programs': without_clock() + without_clock(0x0f, AUDIO_PID, b''),
    **{f'opus of {code}': without_clock(*opus(code)) for code in (0, 8, 0x10, 0x48, 0x80, 0x81, 0x88,
                                                                  0xff)},
}


def whole():
    return subprocess.run(
        ['ffmpeg', '-nostdin', '-loglevel', 'error', '-i', CLIP, '-t', '3', '-c', 'copy', '-f',
         'mpegts', '-'], capture_output=True, check=True).stdout


def packets_of(stream):
    return [stream[at:at + PACKET] for at in range(0, len(stream), PACKET)]


def mutated(packets, chance):
    packets = list(packets)
    for _ in range(chance.randrange(1, 30)):
        at, other = chance.randrange(len(packets)), chance.randrange(len(packets))
        what = chance.randrange(5)
        if what == 0:
            del packets[at]
        elif what == 1:
            packets.insert(at, packets[other])
        elif what == 2:
            packets[at], packets[other] = packets[other], packets[at]
        else:
            data = bytearray(packets[at])
            for _ in range(chance.randrange(1, 8)):
                # Changes in the heads matter most.
                data[chance.randrange(1, 40 if what == 3 else PACKET)] = chance.randrange(256)
            packets[at] = bytes(data)
        if len(packets) < 2:
            break
    return packets
