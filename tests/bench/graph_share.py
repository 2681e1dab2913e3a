# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares five presentations of one camera with the cost of their parts.

The parts are: one presentation with as many readers, of a camera whose rate is the mean of the
five, and the same decoder and encoders in a separate gst-launch-1.0.
"""

import os
import time

from configured import Configured
from load import Load
from proc import Proc
from report import Column
from rig import PROBES
from servers import CACHE, Origin, Usage

NAME = 'graph-share'
TITLE = 'CPU time of 5 presentations of a camera with 20 readers each'
CASE, WHO, YARDSTICK = 'readers', 'workload', 'sum of both parts'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('upstreams', 'upstream connections'),
    Column('decoders', 'decoders'),
    Column('encoders', 'encoders'),
    Column('connected', 'connected'),
    Column('lost', 'lost'),
    Column('memory', 'MB'),
)

READERS = 100
CHOICES = ('size=800x450&rate=700k', 'size=480x270&rate=400k', 'size=426x240&rate=300k',
           'size=320x180&rate=200k', 'size=256x144&rate=150k')
MEAN = 0.35  # Mb/s
RATE = 25    # arrivals a second
SETTLE = 3


def camera(origin):
    return {'/cam': {'upstream': origin.url, 'choices': {'transcode': ['size', 'rate']}}}


def count(server, origin):
    stages = [node['label'] for node in server.get('/v1/graph')['nodes'] if node['kind'] == 'stage']
    return {
        'upstreams': sum('event=connect' in line for line in origin.lines),
        'decoders': stages.count('decode'), 'encoders': stages.count('transcode'),
    }


def cpu(usage, window):
    before = usage()
    time.sleep(window)
    after = usage()
    return {'cpu': 100 * (after.cpu - before.cpu) / (after.at - before.at),
            'memory': after.rss / 2**20}


def served(rig, megabits, urls, window, picture=None):
    """Measures the cost of READERS readers, spread evenly over the URLs."""
    rig.drop_all_but(PROBES)
    joining = READERS / RATE
    probes = ('--probes', PROBES) if rig.real else ()
    with Origin(rig, megabits) as origin, Configured(rig, camera(origin)) as server, \
            Load(rig, '--readers', READERS, '--arrivals', f'uniform:{RATE}', *probes,
                 '--duration', joining + SETTLE + window + 2, *map(server.url, urls)) as load:
        time.sleep(joining + SETTLE)
        values = cpu(server.usage, window)
        values |= count(server, origin)
        if picture:
            picture.write_text(server.ask('GET', '/v1/graph.svg')[0], encoding='utf-8')
        result = load.result(60)
    return values | {'connected': result['connected'], 'lost': result['lost']}


def launch_line(server, upstream):
    """Returns a pipeline with the decoder and the encoders of all choices, in the stages' own
    text."""
    texts = [server.launch_text(f'/cam?{choice}') for choice in CHOICES]
    branches = (f't. ! queue ! {text["transcode"]} ! fakesink' for text in texts)
    return (f'rtspsrc location={upstream} latency=0 ! application/x-rtp,media=video ! '
            f'{texts[0]["decode"]} ! tee name=t {" ".join(branches)}')


def alone(rig, window):
    """Measures the cost of the transcodes alone."""
    with Origin(rig, 1) as origin:
        with Configured(rig, camera(origin)) as server:
            line = launch_line(server, origin.url)
        with Proc(*rig.server, 'gst-launch-1.0', *line.split(),
                  env={**os.environ, **Configured.environment}) as launch:
            launch.wait_for_line('PLAYING|Redistribute latency', timeout=30)
            time.sleep(SETTLE)
            values = cpu(lambda: Usage.of(launch.pid), window)
            assert launch.running(), 'gst-launch-1.0 has ended'
    return values | {'decoders': 1, 'encoders': len(CHOICES), 'upstreams': 1}


def run(rig, quick):
    repeats, window = (2, 8) if quick else (5, 20)
    case = str(READERS)
    for _ in range(repeats):
        five = served(rig, 1, [f'cam?{choice}' for choice in CHOICES], window,
                      picture=CACHE / 'graph.svg')
        one = served(rig, MEAN, ['cam'], window)
        transcodes = alone(rig, window)
        yield case, '5 presentations', five
        yield case, '1 presentation', one
        yield case, 'the transcodes alone', transcodes
        yield case, YARDSTICK, {'cpu': one['cpu'] + transcodes['cpu']}
