# SPDX-License-Identifier: LGPL-2.1-or-later
"""How evenly packets come where a stream is paced, and how late they leave where thousands are."""

import json
import socket
import struct
import subprocess
import sys
import time

from report import Column
from rig import FIRST_PORT
from servers import BUILD, clip_of

NAME = 'pace'
TITLE = 'How far the time between two packets is from even, at the receiver (p95)'
CASE, WHO, YARDSTICK = 'stream', 'sender', 'stock sync=true'
LOG = True
COLUMNS = (
    Column('off', 'ms from even', '{:.3f}', spread=True),
    Column('within', '% within 0.3 ms', '{:.1f}'),
    Column('burst', 'longest burst', '{:.0f}'),
    Column('late', 'late ms p99.9', '{:.2f}'),
    Column('threads', 'threads'),
    Column('cpu', 'CPU %', '{:.0f}'),
)

SO_TIMESTAMPNS = 35
SETTLE_NS = 2_000_000_000
TOGETHER_NS = 200_000  # packets nearer than that are a burst
EVEN_MS = 0.3
SENDERS = {
    'stock sync=true': 'udpsink sync=true',
    'ratepacer': 'ratepacer ! udpsink sync=false',
}


def receive(reader, seconds):
    """(arrival in ns, RTP timestamp) of each packet, as the kernel saw them."""
    packets = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        packet, control, _, _ = reader.recvmsg(65536, 128)
        whole, part = struct.unpack('qq', control[0][2])
        packets.append((whole * 10**9 + part, struct.unpack_from('!I', packet, 4)[0]))
    return [packet for packet in packets if packet[0] > packets[0][0] + SETTLE_NS]


def frames_of(packets):
    frames = []
    for arrival, timestamp in packets:
        if not frames or frames[-1][0] != timestamp:
            frames.append((timestamp, []))
        frames[-1][1].append(arrival)
    return [arrivals for _, arrivals in frames[1:]]  # the first may be a part of one


def judge(packets):
    off = []
    frames = frames_of(packets)
    for frame, following in zip(frames, frames[1:]):
        even = (following[0] - frame[0]) / len(frame)
        off += [abs(b - a - even) / 1e6 for a, b in zip(frame, frame[1:])]
    off.sort()
    burst = longest = 1
    for (before, _), (after, _) in zip(packets, packets[1:]):
        burst = burst + 1 if after - before < TOGETHER_NS else 1
        longest = max(longest, burst)
    return {
        'off': off[len(off) * 95 // 100], 'burst': longest,
        'within': 100 * sum(each <= EVEN_MS for each in off) / len(off),
    }


def read(address, seconds):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        reader.settimeout(20)
        reader.bind((address, FIRST_PORT))
        print('ready', flush=True)
        print(json.dumps(judge(receive(reader, seconds))))


def gaps(rig, sender, megabits, seconds):
    line = (f'filesrc location={clip_of(megabits)} ! qtdemux name=demux demux.video_0 ! '
            f'rtph264pay mtu=1400 ! {SENDERS[sender]} host={rig.readers_address} port={FIRST_PORT}')
    reader = subprocess.Popen(
        [*rig.readers, sys.executable, __file__, rig.readers_address, str(seconds)],
        stdout=subprocess.PIPE, text=True)
    source = None
    try:
        assert reader.stdout.readline() == 'ready\n', 'the reader did not start'
        source = subprocess.Popen(
            [*rig.server, 'env', f'GST_PLUGIN_PATH={BUILD / "plugins"}',
             f'GST_REGISTRY={BUILD / "registry.bin"}', 'gst-launch-1.0', '-q', *line.split()])
        result, _ = reader.communicate(timeout=seconds + 60)
        assert reader.returncode == 0, 'the reader failed'
        return json.loads(result)
    finally:
        for process in filter(None, (source, reader)):
            process.kill()
            process.wait()


def many(rig, streams, seconds, properties):
    done = subprocess.run(
        [*rig.server, 'env', f'GST_PLUGIN_PATH={BUILD / "plugins"}',
         f'GST_REGISTRY={BUILD / "registry.bin"}', BUILD / 'tests/bench/pace_bench', str(streams),
         str(seconds), properties], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    return {'late': result['late_p999_ms'], 'threads': result['threads'],
            'cpu': 100 * result['cpu']}


def run(rig, quick):
    for _ in range(1 if quick else 3):
        for megabits in (4,) if quick else (1, 4, 12):
            for sender in SENDERS:
                yield f'{megabits} Mb/s', sender, gaps(rig, sender, megabits, 8)
        for streams in (2000,) if quick else (200, 1000, 2000):
            case = f'{streams} of 1 Mb/s'
            yield case, 'ratepacer', many(rig, streams, 5, '')
            yield case, 'ratepacer, 5-ms rounds', many(rig, streams, 5, 'rounds=5000000')


if __name__ == '__main__':
    read(sys.argv[1], float(sys.argv[2]))
