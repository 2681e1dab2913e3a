# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures fanoutsink alone, with more readers than there are file descriptors."""

import os
import subprocess

from report import Column
from rig import FIRST_PORT
from servers import BUILD, PLUGINS, ROOT, clip_of

NAME = 'many'
TITLE = 'fanoutsink with a 4 Mb/s clip in real time, with and without segmented sends; and 1000 ' \
    'readers of 2 Mb/s H.264 SVC with the same layers, or one of nine layer sets each'
CASE, WHO, YARDSTICK = 'readers', 'sink', 'gso=off'
LOG = True
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %'),
    Column('sent', 'packets sent'),
    Column('segments', 'packets per send', '{:.1f}'),
    Column('dropped', 'dropped'),
    Column('memory', 'bytes per reader'),
)

SECONDS = 5


LAYERS = {'all': 'all layers', '1.1': 'layers 1.1', '9': 'nine sets'}


def measure(rig, program, *arguments):
    environment = {**os.environ, **PLUGINS, 'WEIR_DATA': str(ROOT / 'tests/data')}
    done = subprocess.run([*rig.server, BUILD / 'tests/bench' / program, *arguments],
                          env=environment, capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def run(rig, quick):
    rig.drop_all_but(0)
    for readers in (1000, 10000):
        for _ in range(1 if quick else 3):
            for gso in 'auto', 'off':
                if gso == 'off' and readers > 1000:
                    continue  # about 300 of these readers fill a core
                yield str(readers), f'gso={gso}', measure(
                    rig, 'many_bench', gso, clip_of(4), rig.readers_address, str(FIRST_PORT),
                    str(readers), str(SECONDS))
    for _ in range(1 if quick else 3):
        for layers, name in LAYERS.items():
            yield '1000 of SVC', name, measure(
                rig, 'many_layers_bench', layers, rig.readers_address, str(FIRST_PORT), '1000',
                str(SECONDS))
