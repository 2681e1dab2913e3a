# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures failover: an upstream ends or falls silent while a second one is available."""

import random
import signal
import time

from configured import Configured
from load import Load
from report import Column
from servers import Origin

NAME = 'graph-failover'
TITLE = 'The first of two upstreams fails, with 50 readers'
CASE, WHO, YARDSTICK = 'keyframes every', 'upstream a', None
LOG = False
COLUMNS = (
    Column('silence', 'ms without media', spread=True),
    Column('disconnected', 'disconnected'),
    Column('gaps', 'sequence gaps'),
    Column('taken', 'ms until b is shown', spread=True),
)

READERS = 50
SETTLE, AFTER = 4, 4
READY = 'weir_standby_ready{mount="/cam"} 1'
STANDBYS = {'cold': (0.4, 1, 2), 'warm': (0.4, 2, 10)}  # distances of keyframes in s
WAYS = {'killed': signal.SIGKILL, 'stopped, its connection open': signal.SIGSTOP}


def shown(server):
    """Returns the label of the upstream that readers see."""
    nodes = server.get('/v1/graph')['nodes']
    return [node['label'] for node in nodes if node['kind'] == 'upstream' and node['state'] == 'up']


def fail_over(rig, gop, number, pause, standby):
    rig.drop_all_but(READERS)
    with Origin(rig, 1, gop) as a, Origin(rig, 1, gop, second=True) as b, \
            Configured(rig, {'/cam': {'upstreams': [a.url, b.url], 'standby': standby}}) as server, \
            Load(rig, '--readers', READERS, '--transport', 'mixed',
                 '--duration', SETTLE + 2 * gop + AFTER, server.url('cam')) as load:
        time.sleep(SETTLE)
        while standby == 'warm' and READY not in server.ask('GET', '/metrics')[0]:
            time.sleep(0.1)
        time.sleep(pause)
        assert shown(server) == [a.url], shown(server)
        begin = time.monotonic()
        a.signal(number)
        while shown(server) != [b.url]:
            assert time.monotonic() - begin < AFTER, 'upstream b did not take over'
            time.sleep(0.02)
        taken = time.monotonic() - begin
        result = load.result(60)
        a.kill()  # a stopped process ignores SIGTERM
    return {'silence': result['frame_gap_ms']['max'], 'taken': 1e3 * taken,
            'disconnected': READERS - result['connected'] + sum(result['errors'].values()),
            'gaps': result['lost']}


def run(rig, quick):
    repeats = 3 if quick else 8
    draw = random.Random(1)
    for standby, gops in STANDBYS.items():
        for gop in gops:
            for who, number in WAYS.items():
                for _ in range(repeats if standby == 'cold' else 2 * repeats + 4):
                    yield f'{gop:g} s, b {standby}', who, fail_over(
                        rig, gop, number, draw.uniform(0, gop), standby)
