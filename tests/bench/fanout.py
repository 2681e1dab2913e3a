# SPDX-License-Identifier: LGPL-2.1-or-later
"""One stream, many readers: measures the server's cost per delivered packet."""

import time
from typing import NamedTuple

from load import Delay, Loads
from many import has_kernel_path
from report import Column
from rig import PROBES
from servers import ORIGIN_RTP, PORT, Origin, Weir, WeirKernel, raise_file_limit, servers

NAME = 'fanout'
TITLE = "CPU time of the server per packet delivered to a reader"
CASE, WHO, YARDSTICK = 'readers', 'server', 'stock gst-rtsp-server'
LOG = True
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %'),
    Column('delay_p50', 'delay p50 ms', '{:.1f}'),
    Column('delay_p99', 'p99 ms', '{:.1f}'),
    Column('delivered', 'delivered %'),
    Column('lost', 'lost'),
    Column('memory', 'MB'),
    Column('threads', 'threads'),
)

SAMPLED = 8    # extra readers whose delay is measured
SETTLE = 1.5   # seconds from the last arrival to the measurement
FRAMING = 4    # bytes before each packet over TCP (interleaved framing)


class Case(NamedTuple):
    readers: int
    megabits: int
    transport: str
    live: bool = False  # as a zero-latency encoder sends it: three segmented sends for each frame

    def __str__(self):
        return (f'{self.readers} {self.transport.upper()} {self.megabits} Mb/s'
                + (', slices' if self.live else ''))


# More readers than the other servers serve here: 10,000, or as many as the limit of open files
# allows, as a connection takes two descriptors of the server.
MOST = Case(min(10000, raise_file_limit() // 2 - 500), 4, 'udp')
JOINING, JOINING_MOST = 250, 125  # readers a second


def cases(quick):
    if quick:
        return [Case(1000, 1, 'udp'), Case(1000, 4, 'udp'), Case(1000, 4, 'udp', live=True),
                Case(200, 4, 'tcp'), MOST]
    return [MOST, *(Case(readers, megabits, transport) for transport in ('udp', 'tcp')
              for megabits in (1, 4) for readers in (100, 500, 1000, 2000)),
            Case(1000, 4, 'udp', live=True)]


class Traffic(NamedTuple):
    """RTP bytes counted so far: sent to the readers (with framing, over TCP) and to the server."""

    out: int
    upstream: int
    upstream_packets: int

    @classmethod
    def now(cls, rig, transport):
        out = (rig.tcp_bytes(PORT) if transport == 'tcp' else
               rig.rtp('media', 'sampled', 'dropped'))
        return cls(out, rig.rtp('upstream'), rig.packets('upstream'))

    def since(self, before):
        return Traffic(*(new - old for new, old in zip(self, before)))


def one(rig, server_type, case, rate, window):
    """Runs one server once. Returns the values of COLUMNS."""
    rig.drop_all_but(PROBES, let_through=(ORIGIN_RTP, ORIGIN_RTP + 1))
    rig.count_upstream(ORIGIN_RTP)
    joining = case.readers / rate
    with Origin(rig, case.megabits, live=case.live) as origin, \
            server_type(rig, {'s': origin.url}) as server:
        url = server.url('s')
        probes = PROBES if rig.real and case.transport == 'udp' else 0
        with Loads(rig, case.readers, rate, probes, '--transport', case.transport,
                   '--duration', joining + SETTLE + window + 1, url) as load, \
                Delay(rig, '--transport', case.transport, '--readers', SAMPLED,
                      '--over', joining, '--duration', SETTLE + window, origin.url, url) as delay:
            time.sleep(joining + SETTLE)
            before, traffic = server.usage(), Traffic.now(rig, case.transport)
            time.sleep(window)
            after, traffic = server.usage(), Traffic.now(rig, case.transport).since(traffic)
            delays, result = delay.result(30), load.result(60)
    framing = FRAMING if case.transport == 'tcp' else 0
    due = (traffic.upstream + framing * traffic.upstream_packets) * (result['connected'] + SAMPLED)
    if rig.real:
        packets = traffic.out / (result['bytes'] / result['packets'] + framing)
    else:
        stays = joining / 2 + SETTLE + window + 1  # on average
        packets = result['packets'] / stays * window
    return {
        'ns': 1e9 * (after.cpu - before.cpu) / packets,
        'cpu': 100 * (after.cpu - before.cpu) / (after.at - before.at),
        'delay_p50': delays.get('p50'), 'delay_p99': delays.get('p99'),
        'delivered': 100 * traffic.out / due if due else None,
        'lost': result['lost'],
        'memory': after.rss / 2**20, 'threads': after.threads,
        'connected': result['connected'], 'load_cpu': result['cpu_s'],
    }


def run(rig, quick):
    repeats, window = 3, (4 if quick else 5)
    kernel = [WeirKernel] if rig.real and has_kernel_path(rig) else []
    for case in cases(quick):
        for _ in range(1 if quick and case == MOST else repeats):
            for server_type in (([Weir] if case == MOST else servers())
                                + (kernel if case.transport == 'udp' else [])):
                yield str(case), server_type.name, one(
                    rig, server_type, case, JOINING_MOST if case == MOST else JOINING, window)
