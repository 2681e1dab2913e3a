# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures many unused mounts, and a reload in which one of them has changed."""

import json
import time

from configured import Configured
from report import Column

NAME = 'graph-mounts'
TITLE = 'Start-up time of rtsp-proxy with unused mounts'
CASE, WHO, YARDSTICK = 'mounts', 'server', None
LOG = False
COLUMNS = (
    Column('ready', 'ms until ready', spread=True),
    Column('memory', 'MB', '{:.1f}'),
    Column('reload', 'reload ms, one mount changed', spread=True),
    Column('unchanged', 'mounts untouched'),
)


class Many(Configured):
    serves = r' ready .*/last$'


def mounts(number):
    paths = [f'/cam-{n}' for n in range(1, number)] + ['/last']
    return {path: {'upstream': f'rtsp://192.0.2.7{path}', 'user': 'viewer', 'password': 'secret',
                   'choices': {'transcode': ['size', 'rate']}} for path in paths}


def one(rig, number):
    all_mounts = mounts(number)
    begin = time.monotonic()
    with Many(rig, all_mounts) as server:
        ready = time.monotonic() - begin
        memory = server.usage().rss
        all_mounts['/last']['linger'] = '1m'
        server.write(all_mounts)
        answer, took = server.ask('POST', '/v1/reload')
    return {'ready': 1e3 * ready, 'memory': memory / 2**20, 'reload': 1e3 * took,
            'unchanged': json.loads(answer)['unchanged']}


def run(rig, quick):
    repeats = 3 if quick else 10
    one(rig, 1)  # fills GStreamer's plugin registry
    for number in 1, 100, 1000:
        for _ in range(repeats):
            yield str(number), Configured.name, one(rig, number)
