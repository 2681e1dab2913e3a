# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads MPEG transport streams: their packets, and what ffmpeg finds in them."""

import subprocess

from tap import SLOWER

PACKET = 188
NULL = 0x1fff


def stream_of(packet):
    return (packet[1] & 0x1f) << 8 | packet[2]


def check_packets(data):
    """Checks the sync bytes, and that no packet of any stream is missing."""
    counters = {}
    assert len(data) > PACKET, len(data)
    for at in range(0, len(data) - PACKET + 1, PACKET):
        packet = data[at:at + PACKET]
        pid, counter = stream_of(packet), packet[3] & 15
        assert packet[0] == 0x47, (at, packet[:8])
        if pid == NULL or not packet[3] & 0x10:
            continue
        if pid in counters:
            assert counter == (counters[pid] + 1) % 16, (at, pid, counter, counters[pid])
        counters[pid] = counter


def clock_references(data):
    """Returns (offset, PCR in s) of each PCR."""
    found = []
    for at in range(0, len(data) - PACKET + 1, PACKET):
        p = data[at:at + PACKET]
        if p[3] & 0x20 and p[4] >= 7 and p[5] & 0x10:
            base = p[6] << 25 | p[7] << 17 | p[8] << 9 | p[9] << 1 | p[10] >> 7
            found.append((at, (base * 300 + ((p[10] & 1) << 8 | p[11])) / 27e6))
    return found


def ffmpeg(*words):
    done = subprocess.run(['ffmpeg', '-v', 'error', *words], capture_output=True, timeout=60 * SLOWER,
                          stdin=subprocess.DEVNULL, text=True)
    return done.stdout


def frames(path):
    """Returns {'v': [(time, md5)], 'a': ...}: the decoded pictures, and the coded pieces of sound."""
    result = {}
    for kind, codec in (('v', ['-map', '0:v?', '-fps_mode', 'passthrough', '-enc_time_base:v', '1:90000']),
                        ('a', ['-map', '0:a?', '-c', 'copy'])):
        if kind == 'a' and path.endswith('.ts'):
            codec += ['-bsf:a', 'aac_adtstoasc']
        rows, base = [], 1
        for line in ffmpeg('-copyts', '-i', path, *codec, '-f', 'framemd5', '-').splitlines():
            if line.startswith('#tb 0:'):
                over, under = line.split(':')[1].split('/')
                base = int(over) / int(under)
            elif line and not line.startswith('#'):
                fields = [field.strip() for field in line.split(',')]
                rows.append((int(fields[2]) * base, fields[5]))
        result[kind] = rows
    return result


def media_times(path):
    return {kind: [when for when, _ in rows] for kind, rows in frames(path).items()}


def offset_error(sent, source):
    """Returns by how many seconds the offset between video and audio differs from the source's."""
    moved = {}
    for kind in 'va':
        # What occurs once in the source has one time there.
        once = {}
        for when, md5 in source[kind]:
            once[md5] = None if md5 in once else when
        moved[kind] = [when - once[md5] for when, md5 in sent[kind] if once.get(md5) is not None]
        assert len(moved[kind]) > 20, (kind, len(moved[kind]))
    spread = max(max(each) - min(each) for each in moved.values())
    middle = {kind: sorted(each)[len(each) // 2] for kind, each in moved.items()}
    return max(abs(middle['v'] - middle['a']), spread)
