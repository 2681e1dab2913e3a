# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what readers of a transport stream over HTTP cost the proxy, beside RTSP readers over
TCP of the same stream."""

import contextlib
import sys
import time

from load import Load
from proc import Proc
from progressive import READER
from report import Column
from servers import Origin, Weir

NAME = 'ts'
TITLE = 'Readers of one stream of 4 Mb/s, as MPEG-TS over HTTP and as RTP over RTSP and TCP'
CASE, WHO, YARDSTICK = 'readers', 'transport', 'RTSP over TCP'
LOG = False
MOST_DELIVERED = 130  # %, because readers begin at the last keyframe
COLUMNS = (
    Column('cpu', 'CPU % per Gb/s', '{:.1f}', spread=True),
    Column('all', 'CPU % in all'),
    Column('delivered', 'delivered %'),
    Column('memory', 'KiB a reader', '{:.1f}'),
)

MEGABITS = 4
HTTP_PORT = 18888
WARM = 6


class Both(Weir):
    whole = {'http': {'listen': f'0.0.0.0:{HTTP_PORT}'}}


def read_ts(rig, server, readers, seconds):
    """Returns what the server used at both ends of the measured time, and the bytes."""
    with Proc(*rig.readers, sys.executable, READER, server.address, HTTP_PORT, '/ts/s', readers, WARM,
              seconds) as client:
        client.wait_for_line('^BEGIN', timeout=60)
        begin = server.usage()
        got = int(client.wait_for_line(r'^BYTES (\d+)', timeout=seconds + 60)[1])
        return begin, server.usage(), got


def read_rtsp(rig, server, readers, seconds):
    with Load(rig, '--transport', 'tcp', '--readers', readers, '--duration', WARM + seconds + 1,
              server.url('s')) as load:
        time.sleep(WARM)
        begin = server.usage()
        time.sleep(seconds)
        end = server.usage()
        result = load.result(60)
        return begin, end, result['bytes'] * (end.at - begin.at) / result['duration_s']


def one(rig, read, readers, seconds):
    rig.drop_all_but(0)
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin(rig, MEGABITS))
        server = stack.enter_context(Both(rig, {'s': origin.url}))
        before = server.usage()
        begin, end, got = read(rig, server, readers, seconds)
    took = end.at - begin.at
    cpu, bits = 100 * (end.cpu - begin.cpu) / took, got * 8 / took
    return {'cpu': cpu / (bits / 1e9), 'all': cpu, 'delivered': 100 * bits / (readers * MEGABITS * 1e6),
            'memory': (end.rss - before.rss) / 1024 / readers}


def run(rig, quick):
    for readers in (100,) if quick else (100, 1000):
        for _ in range(1 if quick else 3):
            for name, read in (('RTSP over TCP', read_rtsp), ('MPEG-TS over HTTP', read_ts)):
                yield str(readers), name, one(rig, read, readers, 10 if quick else 20)
