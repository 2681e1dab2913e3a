# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares readers at many different delays with as many readers at the live edge."""

from many import measure
from report import Column
from rig import FIRST_PORT

NAME = 'delays'
TITLE = 'the engine with 64 s of a 1 Mb/s stream in its window; readers at the live edge, ' \
    'or each at a different delay of up to 60 s'
CASE, WHO, YARDSTICK = 'readers', 'position', 'live'
LOG = False
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %'),
    Column('sent', 'packets sent'),
    Column('segments', 'packets per send', '{:.1f}'),
    Column('late', 'max ms behind its position', '{:.1f}'),
    Column('memory', 'MB', '{:.1f}'),
)

SECONDS = 5


def run(rig, quick):
    rig.drop_all_but(0)
    for readers in (1000,) if quick else (100, 1000):
        for _ in range(1 if quick else 3):
            for where in 'live', 'delays':
                yield str(readers), where, measure(
                    rig, 'delays_bench', where, rig.readers_address, str(FIRST_PORT),
                    str(readers), str(SECONDS))
