# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of "One-to-Many Streaming Splicing" (IEEE MultiMedia): one stream of 256 kb/s to
many readers, by a plain daemon, by fanoutsink in user space and in the kernel, and by kernelrelay."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

from proc import Proc
from report import Column
from rig import FIRST_PORT
from servers import BUILD, PLUGINS, clip_of

NAME = 'omss'
KILOBITS, UPSTREAM, TCP_PORT = 256, 5600, 5601
RELAY_READERS = 1000  # of kernelrelay; more clones in a row are too many for the rig's queue
CLIP_MEGABITS, FAST, SLOW = 4, 4, 4

# Sends RTP with as many bytes of payload as the first argument says, at as many kb/s as the third:
# each packet is a frame.
SOURCE = f'''
import socket, struct, sys, time
payload = int(sys.argv[1])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
gap = payload * 8 / float(sys.argv[3]) / 1e3
start, n = time.monotonic(), 0
while True:
    packet = struct.pack('>BBHII', 0x80, 0xe0, n % 65536, int(n * gap * 90000) % 2**32, 1)
    out.sendto(packet + bytes(payload), (sys.argv[2], {UPSTREAM}))
    n += 1
    time.sleep(max(0, start + n * gap - time.monotonic()))
'''

# Connects a number of times, and reads ten times a second from each connection.
TCP_READERS = '''
import select, socket, sys, time
address, port, readers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
poll, connections = select.epoll(), {}
for _ in range(readers):
    connection = socket.create_connection((address, port))
    connection.setblocking(False)
    connections[connection.fileno()] = connection
    poll.register(connection, select.EPOLLIN)
while True:
    for number, _ in poll.poll(maxevents=len(connections)):
        if not connections[number].recv(65536):
            sys.exit()
    time.sleep(0.1)
'''


def tcp_readers(rig, count):
    return Proc(*rig.readers, sys.executable, '-c', TCP_READERS, rig.server_address, TCP_PORT, count)


def processor_time(process):
    """Returns seconds. The packets that a process sends over a virtual device are received, and
    relayed in the kernel, in its name."""
    text = pathlib.Path(f'/proc/{process.pid}/schedstat').read_text(encoding='ascii')
    return int(text.split()[0]) / 1e9


def measure(rig, way, transport, readers, payload, seconds, kilobits=KILOBITS, enter=()):
    """`enter` are words to put before the relay's command."""
    rig.drop_all_but(0)
    tcp, ingress = transport == 'tcp', way == 'ingress'
    upstream = rig.server_address if ingress else '127.0.0.1'
    address, port = ((rig.server_address, TCP_PORT) if tcp else
                     (rig.readers_address, FIRST_PORT))
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(Proc(
            *rig.server, *enter, BUILD / 'tests/bench/omss_bench', way, transport, address, port, readers,
            f'{upstream}:{UPSTREAM}' if ingress else UPSTREAM, seconds, env={**os.environ, **PLUGINS}))
        if tcp:
            bench.wait_for_line('^LISTENING')
            stack.enter_context(tcp_readers(rig, readers))
        bench.wait_for_line('^READY', 60)
        source = stack.enter_context(Proc(
            *(rig.readers if ingress else rig.server), sys.executable, '-c', SOURCE, payload,
            upstream, kilobits))
        if ingress:
            bench.wait_for_line('^BEGIN', 60)
            spent = -processor_time(source)
            bench.wait_for_line('^END', 60 + seconds)
            spent += processor_time(source)
        assert bench.wait(60 + seconds) == 0, bench.output()
        figures = dict(line.split() for line in bench.lines if ' ' in line)
    result = {name: float(value) for name, value in figures.items()}
    if ingress:
        result['cpu'] += 100 * spent / seconds
        result['ns'] += 1e9 * spent / result['sent']
    due = kilobits * 1000 / 8 / payload * readers * seconds
    return {**result, 'delivered': 100 * result['sent'] / due}


def watch(rig, policy, seconds):
    """Yields what the fast and the slow readers have seen."""
    reader = pathlib.Path(__file__).with_name('drop_readers.py')
    with Proc(*rig.server, BUILD / 'tests/bench/omss_bench', policy, 'tcp', rig.server_address,
              TCP_PORT, FAST + SLOW, clip_of(CLIP_MEGABITS, 1), seconds,
              env={**os.environ, **PLUGINS}) as bench:
        bench.wait_for_line('^LISTENING')
        done = subprocess.run(
            [*rig.readers, sys.executable, reader, rig.server_address, *map(str, (
                TCP_PORT, FAST, SLOW, int(CLIP_MEGABITS * 1e6 / 2), seconds))],
            capture_output=True, text=True, check=True)
    readers = [json.loads(line) for line in done.stdout.splitlines()]
    origin = min(arrival - time / 90000 for reader in readers for time, _, arrival in reader['frames'])
    for name in 'fast', 'slow':
        chosen = [reader['frames'] for reader in readers if reader['slow'] == (name == 'slow')]
        frames = [frame for found in chosen for frame in found]
        sent = len(chosen) * seconds * 25
        lags = sorted(1000 * (arrival - time / 90000 - origin) for time, _, arrival in frames)
        yield name, policy, {
            'decodable': 100 * sum(decodable for _, decodable, _ in frames) / sent,
            'arrived': 100 * len(frames) / sent, 'lag': lags[len(lags) // 2],
            'lag_p95': lags[len(lags) * 95 // 100]}


def ways():
    """Returns the ways that this build knows."""
    known = subprocess.run(['gst-inspect-1.0', 'fanoutsink'], env={**os.environ, **PLUGINS},
                           capture_output=True, text=True, check=True).stdout
    return ('daemon', 'engine') + (('kernel', 'ingress') if '\n  kernel ' in known else ())


def compare(rig, quick, values, load_of):
    """Measures all ways with each value. load_of(value) is (readers, bytes of payload)."""
    known = ways()
    for transport in 'udp', 'tcp':
        for value in values:
            for way in known:
                in_kernel = way in ('kernel', 'ingress')
                if not (in_kernel and transport == 'tcp') and not (
                        way == 'ingress' and load_of(value)[0] > RELAY_READERS):
                    yield f'{value} {transport.upper()}', way, measure(
                        rig, way, transport, *load_of(value), 4 if quick else 10)


class Part:
    WHO, YARDSTICK, LOG = 'way', 'daemon', False
    COLUMNS = (Column('ns', 'ns/packet'), Column('cpu', 'CPU %', '{:.1f}'),
               Column('delivered', 'sent, % of what is due'),
               Column('switches', 'context switches/s'))


class Bulk(Part):
    NAME = 'omss-bulk'
    TITLE = f'One stream of {KILOBITS} kb/s in packets of 1400 bytes to many readers'
    CASE = 'readers'

    @staticmethod
    def run(rig, quick):
        counts = (90, 1000, 4000) if quick else (90, 500, 1000, 2000, 4000, 6000, 8000)
        yield from compare(rig, quick, counts, lambda readers: (readers, 1400))


class Payload(Part):
    NAME = 'omss-payload'
    TITLE = f'One stream of {KILOBITS} kb/s to 800 readers, in packets of different size'
    CASE = 'bytes of payload'

    @staticmethod
    def run(rig, quick):
        sizes = (50, 200, 1400) if quick else (50, 100, 200, 400, 700, 1000, 1400)
        yield from compare(rig, quick, sizes, lambda payload: (800, payload))


class Drops(Part):
    """What the paper left for later: drop policies, seen from the readers."""

    NAME = 'omss-drops'
    TITLE = f'4 fast readers and 4 that read half of a stream of {CLIP_MEGABITS} Mb/s over TCP, ' \
        'with a window of 256 KiB'
    CASE, WHO, YARDSTICK = 'readers', 'policy', None
    COLUMNS = (Column('decodable', '% of frames that can be decoded', '{:.1f}'),
               Column('arrived', '% of frames that arrive', '{:.1f}'),
               Column('lag', 'lag p50 ms'), Column('lag_p95', 'lag p95 ms'))

    @staticmethod
    def run(rig, quick):
        seconds = 8 if quick else 16
        for policy in 'slowest', 'head', 'tail':
            yield from watch(rig, policy, seconds)


PARTS = Bulk, Payload, Drops
