# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the receive engine, at three ticks, with a thread that wakes for each packet."""

import subprocess

from report import Column
from servers import BUILD

NAME = 'ingest'
TITLE = 'CPU time per packet to receive streams of 1 Mb/s on one thread'
CASE, WHO, YARDSTICK = 'streams', 'method', 'recvmsg'
LOG = False
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %', '{:.1f}'),
    Column('p50', 'delay p50, us'),
    Column('p99', 'delay p99, us'),
)

SECONDS = 5
WAYS = {'recvmsg': 'recvmsg', '0': 'tick 0', '500': 'tick 0.5 ms', '2000': 'tick 2 ms'}


def measure(way, sent, streams):
    done = subprocess.run(
        [BUILD / 'tests/bench/ingest_bench', way, sent, str(streams), str(SECONDS)],
        capture_output=True, text=True, check=False)
    # A packet that is missing makes the figure one of something else.
    assert done.returncode == 0, f'{streams} streams, {way}: {done.stderr.strip()}'
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def run(_rig, quick):
    for streams in (100, 300, 1000):
        for sent, note in ('even', ''), ('frames', ', frames'):
            for _ in range(1 if quick else 3):
                for way, name in WAYS.items():
                    yield f'{streams}{note}', name, measure(way, sent, streams)
