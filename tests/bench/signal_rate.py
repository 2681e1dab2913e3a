# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how many sessions per second a server sets up, and how long a set-up takes."""

import time

from load import Load, set_up
from report import Column
from servers import Origin, servers

NAME = 'signal'
TITLE = 'Session set-up (DESCRIBE, SETUP and PLAY), by arrivals per second'
CASE, WHO, YARDSTICK = 'arrivals per second', 'server', 'stock gst-rtsp-server'
LOG = True
COLUMNS = (
    Column('p50', 'set-up p50 ms', '{:.1f}', spread=True),
    Column('p99', 'p99 ms, summed', '{:.1f}'),
    Column('rate', 'sessions/s'),
    Column('kept_up', '% of arrivals'),
    Column('failed', 'failed'),
    Column('cpu', 'CPU %'),
)

SESSION = 120
SECONDS = 4  # during which readers arrive
MOST = 3200  # sessions; each takes five files on the readers' side


def one(rig, server_type, rate, seed):
    """Measures one rate. Sessions last two minutes, so that none ends while others begin."""
    rig.drop_all_but(0)
    readers = min(rate * SECONDS, MOST)
    seconds = readers / rate
    with Origin(rig, 1) as origin, server_type(rig, {'s': origin.url}) as server:
        with Load(rig, '--mute', '--readers', readers, '--arrivals', f'poisson:{rate}',
                  '--session', SESSION, '--seed', seed,
                  '--duration', seconds, server.url('s')) as load:
            time.sleep(seconds / 2)
            before = server.usage()
            time.sleep(seconds / 2 - 0.5)
            after = server.usage()
            result = load.result(60)
    achieved = result['signal']['per_second']  # until the last session is set up
    return {
        'p50': set_up(result), 'p99': set_up(result, 'p99'),
        'rate': achieved, 'kept_up': 100 * achieved / rate,
        'failed': sum(result['refused'].values()) + sum(result['errors'].values()),
        'cpu': 100 * (after.cpu - before.cpu) / (after.at - before.at),
    }


def run(rig, quick):
    repeats, rates = ((1, (100, 200, 400, 800, 1600)) if quick else
                      (3, (50, 100, 200, 400, 600, 800, 1200, 1600)))
    for rate in rates:
        for seed in range(1, repeats + 1):
            for server_type in servers():
                yield str(rate), server_type.name, one(rig, server_type, rate, seed)
