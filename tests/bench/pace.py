# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how evenly paced packets arrive, and how late they leave with thousands of pacers."""

import contextlib
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import time

from report import Column
from rig import FIRST_PORT
from servers import BUILD, PLUGINS, clip_of

NAME = 'pace'
TITLE = 'Deviation of packet spacing from even, at the receiver (p95)'
CASE, WHO, YARDSTICK = 'stream', 'sender', 'stock sync=true'
LOG = True
COLUMNS = (
    Column('off', 'deviation ms p95', '{:.3f}', spread=True),
    Column('within', '% within 0.3 ms', '{:.1f}'),
    Column('burst', 'longest burst', '{:.0f}'),
    Column('lost', 'lost %', '{:.2f}', spread=True),
    Column('late', 'late ms p99.9', '{:.2f}'),
    Column('threads', 'threads'),
    Column('cpu', 'CPU %', '{:.0f}'),
)

SO_TIMESTAMPNS = 35
SETTLE_NS = 2_000_000_000
TOGETHER_NS = 200_000  # packets closer than this are one burst
EVEN_MS = 0.3
SENDERS = {
    'stock sync=true': 'udpsink sync=true',
    'ratepacer': 'ratepacer ! udpsink sync=false',
}
# Senders whose readers are listed in clients=.
FAN_OUTS = {
    'stock sync=true': 'multiudpsink sync=true',
    'ratepacer': 'ratepacer ! fanoutsink sync=false',
    'ratepacer, 6 Mb/s': 'ratepacer mode=bitrate bitrate=6000000 ! '
                         'fanoutsink sync=false max-coalesce=0',
}
PACKET = 1400


def receive(reader, seconds):
    """Returns (arrival in ns, RTP timestamp) of each packet, as the kernel saw them."""
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
    return [arrivals for _, arrivals in frames[1:]]  # the first frame may be incomplete


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


def count_lost(address, readers, seconds):
    """Returns the percentage of sequence numbers missing, over all readers."""
    seen = {}
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for i in range(readers):
            reader = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            reader.bind((address, FIRST_PORT + 2 * i))
            selector.register(reader, selectors.EVENT_READ, seen.setdefault(i, []))
        print('ready', flush=True)
        selector.select(20)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(1):
                key.data.append(struct.unpack_from('!H', key.fileobj.recv(65536), 2)[0])
    due = got = 0
    for numbers in seen.values():
        due += (numbers[-1] - numbers[0]) % 65536 + 1
        got += len(numbers)
    return {'lost': 100 * (1 - got / due)}


def read(address, seconds):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        reader.settimeout(20)
        reader.bind((address, FIRST_PORT))
        print('ready', flush=True)
        print(json.dumps(judge(receive(reader, seconds))))


def receive_from(rig, what, megabits, seconds, sender, *words):
    """Plays the clip's RTP packets to this program as a receiver, and returns that receiver's
    result."""
    line = (f'filesrc location={clip_of(megabits)} ! qtdemux name=demux demux.video_0 ! '
            f'rtph264pay mtu={PACKET} ! {sender}')
    reader = subprocess.Popen(
        [*rig.readers, sys.executable, __file__, what, rig.readers_address, str(seconds),
         *map(str, words)], stdout=subprocess.PIPE, text=True)
    source = None
    try:
        assert reader.stdout.readline() == 'ready\n', 'the reader did not start'
        source = subprocess.Popen(
            [*rig.server, 'gst-launch-1.0', '-q', *line.split()], env={**os.environ, **PLUGINS})
        result, _ = reader.communicate(timeout=seconds + 60)
        assert reader.returncode == 0, 'the reader failed'
        return json.loads(result)
    finally:
        for process in filter(None, (source, reader)):
            process.kill()
            process.wait()


def gaps(rig, sender, megabits, seconds):
    return receive_from(rig, 'gaps', megabits, seconds,
                        f'{SENDERS[sender]} host={rig.readers_address} port={FIRST_PORT}')


def losses(rig, sender, readers, line, queue, seconds):
    clients = ','.join(f'{rig.readers_address}:{FIRST_PORT + 2 * i}' for i in range(readers))
    with rig.narrow(f'{line}mbit', queue * PACKET):
        return receive_from(rig, 'losses', 4, seconds, f'{FAN_OUTS[sender]} clients={clients}',
                            readers)


def many(rig, streams, seconds, properties):
    done = subprocess.run(
        [*rig.server, BUILD / 'tests/bench/pace_bench', str(streams), str(seconds), properties],
        env={**os.environ, **PLUGINS}, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    return {'late': result['late_p999_ms'], 'threads': result['threads'],
            'cpu': 100 * result['cpu']}


def run(rig, quick):
    for _ in range(1 if quick else 3):
        for megabits in (4,) if quick else (1, 4, 12):
            for sender in SENDERS:
                yield f'{megabits} Mb/s', sender, gaps(rig, sender, megabits, 8)
        # Readers, the line in Mb/s, its queue in packets. The first line carries a keyframe that is
        # spread over its time; the second carries only a stream sent at its average rate.
        for readers, line, queue in ((1, 50, 50), (1, 8, 50)) + (() if quick else ((20, 160, 200),)):
            for sender in FAN_OUTS:
                case = f'{readers} of 4 Mb/s, {line} Mb/s and {queue} packets'
                yield case, sender, losses(rig, sender, readers, line, queue, 8)
        for streams in (2000,) if quick else (200, 1000, 2000):
            case = f'{streams} of 1 Mb/s'
            yield case, 'ratepacer', many(rig, streams, 5, '')
            yield case, 'ratepacer, 5-ms rounds', many(rig, streams, 5, 'rounds=5000000')


if __name__ == '__main__':
    if sys.argv[1] == 'gaps':
        read(sys.argv[2], float(sys.argv[3]))
    else:
        print(json.dumps(count_lost(sys.argv[2], int(sys.argv[4]), float(sys.argv[3]))))
