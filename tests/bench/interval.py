# SPDX-License-Identifier: LGPL-2.1-or-later
"""Interval caching of a stored title: Poisson arrivals, sessions of a fixed length.

Repeats the experiment of the AMPS testbed (UMass 2004-08): 5 arrivals per second, 120-s sessions,
a 20-s interval. Without the cache each reader has its own upstream session.
"""

import math
import time

from configured import Configured
from load import Load, figure
from report import Column
from rig import PROBES
from servers import Origin

NAME = 'interval'
TITLE = "A stored title's upstream sessions, with and without an interval cache"
CASE, WHO, YARDSTICK = 'arrivals', 'interval', 'none'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('upstreams', 'upstream sessions (peak)'),
    Column('opened', 'upstream sessions (total)'),
    Column('readers', 'readers (total)'),
    Column('start', 'first packet p50 ms', '{:.0f}'),
    Column('describe', 'DESCRIBE p50 ms', '{:.0f}'),
    Column('lost', 'lost'),
    Column('memory', 'MB'),
)

MEGABITS = 0.3  # the testbed's title V300


def sessions(server):
    """Returns how many upstream sessions run now."""
    return sum(node['kind'] == 'upstream' and node['state'] == 'up'
               for node in server.get('/v1/graph')['nodes'])


def measure(rig, interval, arrivals, session, length):
    rig.drop_all_but(PROBES)
    mounts = {'/title': {'interval': interval, 'linger': '1s'}}
    with Origin(rig, MEGABITS) as origin:
        mounts['/title']['upstream'] = origin.url
        with Configured(rig, mounts) as server, Load(
                rig, '--readers', math.ceil(arrivals * length), '--arrivals', f'poisson:{arrivals}',
                '--session', session, '--tracks', 'video', '--duration', length,
                server.url('title')) as load:
            time.sleep(session)  # from here on, readers leave as fast as they arrive
            before = server.usage()
            most = 0
            while time.monotonic() - before.at < length - session - 1:
                most = max(most, sessions(server))
                time.sleep(1)
            after = server.usage()
            result = load.result(120)
            opened = sum('event=play' in line for line in origin.lines)
    return {
        'cpu': 100 * (after.cpu - before.cpu) / (after.at - before.at),
        'memory': after.rss / 2**20, 'upstreams': most, 'opened': opened,
        'readers': result['connected'], 'lost': result['lost'],
        'start': figure(result, 'first_packet_ms', 'p50'), 'describe': figure(result, 'describe_ms', 'p50'),
    }


def run(rig, quick):
    # The quick run is a scaled-down version: a small machine may not sustain the sessions of the
    # full run without a cache.
    arrivals, session, interval, length = (2, 30, 5, 60) if quick else (5, 120, 20, 240)
    case = f'{arrivals}/s x {session} s'
    yield case, f'{interval} s', measure(rig, f'{interval}s', arrivals, session, length)
    # An interval so short that no two readers share a session.
    yield case, YARDSTICK, measure(rig, '1ms', arrivals, session, length)
