# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figure 5 of the AMPS testbed (UMass 2004-08): how a dispatcher of requests finds the connections to
read, of clients who come at a rate and stay for two minutes."""

import subprocess

from report import Column
from servers import BUILD

SESSION = 120  # s, in which a client keeps its connection
REQUESTS = 4   # of a session: DESCRIBE, SETUP, PLAY and TEARDOWN
WAYS = {'select': 'select', 'throttled': 'select, then 15 ms of sleep', 'polling': 'polling every 15 ms',
        'epoll': 'epoll', 'glib': 'a main loop of GLib'}


class Dispatchers:
    NAME = 'amps-dispatchers'
    TITLE = 'CPU time of a dispatcher of requests, by how it finds the connections to read'
    CASE, WHO, YARDSTICK, LOG = 'clients a second', 'way', None, False
    LINES = True
    COLUMNS = (Column('cpu', 'CPU % of one processor', '{:.2f}'), Column('p50', 'answered in ms p50', '{:.2f}'),
               Column('p99', 'p99', '{:.2f}'))

    @staticmethod
    def run(_rig, quick):
        for rate in (5, 20) if quick else (1, 5, 10, 15, 20, 25):
            for way, name in WAYS.items():
                yield str(rate), name, dispatch(way, rate, 4 if quick else 20)


def dispatch(way, rate, seconds):
    """Returns the figures of a dispatcher of those clients who are there at a time."""
    words = BUILD / 'tests/bench/dispatchers_bench', way, rate * SESSION, rate * REQUESTS, seconds
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          timeout=seconds + 60)
    assert done.returncode == 0, f'{way}: {done.stderr or done.returncode}'
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}
