# SPDX-License-Identifier: LGPL-2.1-or-later
"""gohlslib, a client in Go that shares no code with GStreamer or FFmpeg, reads Low-Latency HLS."""

import hashlib
import json
import pathlib
import subprocess
import tempfile

from goprogram import go_program
from hlsweb import Web, clip
from tap import SLOWER, run, test

UNITS = 120  # of each track


def slices(sample):
    """Returns the slices of a picture in an MP4, each after its length."""
    found, at = b'', 0
    while at < len(sample):
        end = at + 4 + int.from_bytes(sample[at:at + 4], 'big')
        found += sample[at:end] if 1 <= sample[at + 4] & 31 <= 5 else b''
        at = end
    return found


def units_of(path):
    """Returns {track: [(time, hash)]} of an MP4 with H.264 and AAC."""
    said = subprocess.run(['ffprobe', '-v', 'error', '-show_entries', 'packet=codec_type,pts_time,pos,size', '-of', 'json',
                           path], capture_output=True, text=True, check=True).stdout
    data, found = pathlib.Path(path).read_bytes(), {'video': [], 'audio': []}
    for packet in json.loads(said)['packets']:
        sample = data[int(packet['pos']):][:int(packet['size'])]
        sample = slices(sample) if packet['codec_type'] == 'video' else sample
        found[packet['codec_type']].append((float(packet['pts_time']), hashlib.sha256(sample).hexdigest()))
    return found


def read(program, url):
    """Returns the same of what the client reads."""
    done = subprocess.run([program, '--units', str(UNITS), url], capture_output=True, text=True, timeout=120 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    found = {'video': [], 'audio': []}
    for track, time, digest in (line.split() for line in done.stdout.splitlines()):
        found[track].append((float(time), digest))
    return found


def check(got, source):
    """Checks that units are the source's, in their order and at their times. A client leaves out parts that it comes too
    late for."""
    shifts = []
    for track, units in got.items():
        assert len(units) >= UNITS, (track, len(units))
        place = {digest: n for n, (_, digest) in enumerate(source[track])}
        assert len(place) == len(source[track]), f'units of {track} are alike'
        at = [place[digest] for _, digest in units]
        assert at == sorted(set(at)), (track, at)
        offsets = [time - source[track][n][0] for (time, _), n in zip(units, at)]
        assert max(offsets) - min(offsets) < 0.001, (track, min(offsets), max(offsets))
        shifts.append(offsets[0])
    assert max(shifts) - min(shifts) < 0.005, shifts


@test(timeout=120)
def gohlslib_reads_access_units_at_their_times():
    with tempfile.TemporaryDirectory() as folder:
        program, path = go_program('hls', folder), clip()
        source = units_of(path)
        with Web(f'file://{path}') as proxy:
            check(read(program, f'{proxy.web}/hls/cam/index.m3u8'), source)


if __name__ == '__main__':
    run()
