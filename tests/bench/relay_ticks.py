# SPDX-License-Identifier: LGPL-2.1-or-later
"""The delay that a server adds to a packet, by the tick of rtsp-proxy's receive engine."""

from relay_measure import MOST, Case, measure
from report import Column
from servers import MediaMtx, Weir, servers

NAME = 'relay-ticks'
TITLE = 'Delay added to a packet, by the tick of receiving'
CASE, WHO, YARDSTICK = 'streams', 'server', 'mediamtx'
LOG = True
MOST_DELIVERED = MOST
COLUMNS = (
    Column('delay_p50', 'delay p50 ms', '{:.2f}', spread=True),
    Column('delay_p99', 'p99 ms', '{:.2f}', spread=True),
    Column('delay_max', 'max ms', '{:.1f}'),
    Column('total', 'CPU %', '{:.1f}'),
    Column('delivered', 'delivered in time %', '{:.2f}'),
)


class HalfTick(Weir):
    name = 'rtsp-proxy, tick 0.5 ms'
    whole = {'receive-tick': '0.5ms'}


class NoTick(Weir):
    name = 'rtsp-proxy, no tick'
    whole = {'receive-tick': '0ms'}


def run(rig, quick):
    rig.let_all_through()
    for case in (Case(10, 'spread', how=('spread',)), Case(100, 'spread', how=('spread',)),
                 Case(100, 'spread, upstreams over TCP', how=('spread',), tcp=True)):
        for _ in range(1 if quick else 5):
            for server_type in Weir, HalfTick, NoTick, MediaMtx:
                if server_type is not MediaMtx or MediaMtx in servers():
                    yield case.name, server_type.name, measure(rig, server_type, case,
                                                               5 if quick else 10)
