# SPDX-License-Identifier: LGPL-2.1-or-later
"""The sink by itself, with more readers than there are file descriptors for."""

import os
import subprocess

from report import Column
from rig import FIRST_PORT
from servers import BUILD, ROOT, clip_of

NAME = 'many'
TITLE = 'fanoutsink with a clip of 4 Mb/s in real time, in segmented sends and without; and 1000 ' \
    'readers of H.264 SVC of 2 Mb/s, who get the same layers, or one of nine sets each'
CASE, WHO, YARDSTICK = 'readers', 'sink', 'gso=off'
LOG = True
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %'),
    Column('sent', 'packets sent'),
    Column('segments', 'packets a send', '{:.1f}'),
    Column('dropped', 'dropped'),
    Column('memory', 'bytes a reader'),
)

SECONDS = 5


LAYERS = {'all': 'all layers', '1.1': 'layers 1.1', '9': 'nine sets'}


def measure(rig, program, *arguments):
    environment = {**os.environ, 'GST_PLUGIN_PATH': str(BUILD / 'plugins'),
                   'GST_REGISTRY': str(BUILD / 'registry.bin'),
                   'WEIR_DATA': str(ROOT / 'tests/data')}
    done = subprocess.run([*rig.server, BUILD / 'tests/bench' / program, *arguments],
                          env=environment, capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def run(rig, quick):
    rig.drop_all_but(0)
    for readers in (1000, 10000):
        for _ in range(1 if quick else 3):
            for gso in 'auto', 'off':
                if gso == 'off' and readers > 1000:
                    continue  # a core is full at some three hundred of them
                yield str(readers), f'gso={gso}', measure(
                    rig, 'many_bench', gso, clip_of(4), rig.readers_address, str(FIRST_PORT),
                    str(readers), str(SECONDS))
    for _ in range(1 if quick else 3):
        for layers, name in LAYERS.items():
            yield '1000 of SVC', name, measure(
                rig, 'many_layers_bench', layers, rig.readers_address, str(FIRST_PORT), '1000',
                str(SECONDS))
