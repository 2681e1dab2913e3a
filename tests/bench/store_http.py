# SPDX-License-Identifier: LGPL-2.1-or-later
"""Streams from imitated disks as players over HTTP see them, whom rtsp-proxy admits or refuses
(figures 3.2 and 3.3 of the dissertation, end to end)."""

import contextlib
import sys

from configured import API
from proc import Proc
from progressive import PORT, wait_for_port
from report import Column
from servers import start_proxy
from store_disks import MEGABIT, Scale, model, store
from store_work import even
from strict import READER

NAME = 'store-http'
TITLE = 'Players over HTTP from imitated disks, each of a title of its own: those whom rtsp-proxy admits'
CASE, WHO, YARDSTICK, LOG = 'Mb/s, disks', 'players', None, False
COLUMNS = (Column('streams', 'streams'), Column('ratio', 'ratio to model', '{:.2f}'),
           Column('refused', 'refused'), Column('late', 'late bytes'),
           Column('least', 'least left to play, s', '{:.2f}'))
QUICK, FULL = ((25, 1), (6, 1)), ((25, 1), (6, 1), (25, 4), (6, 4))
TIMES_FASTER = 5   # slices of 1 s
ARRIVE, PLAY = 10, 20  # s
OFFERED = 1.2      # of the model's number


def measure(scale, megabits, disks):
    expected = model(scale, disks, megabits)
    players = int(OFFERED * expected)
    slices = round((ARRIVE + PLAY) / scale.slice) + 4
    with store(scale, disks, 'naive', megabits, slices, even('naive', disks, players)) as filled, \
            contextlib.ExitStack() as stack:
        folder = filled.path.parent
        server = stack.enter_context(start_proxy(folder, {
            'listen': '127.0.0.1:0', 'http': {'listen': f'127.0.0.1:{PORT}'}, 'api': API,
            'mounts': {'/films': {'upstream': f'store://{filled.path}/'}}}))
        wait_for_port(server)
        paths = ','.join(f'/films/t{n}' for n in range(players))
        readers = stack.enter_context(Proc(sys.executable, READER, '127.0.0.1', PORT, paths, players,
                                           megabits * MEGABIT, scale.slice, ARRIVE, PLAY))
        found = {name.lower(): float(readers.wait_for_line(rf'^{name} (\S+)', timeout=ARRIVE + PLAY + 60)[1])
                 for name in ('REFUSED', 'LATE', 'LEAST')}
    streams = players - found['refused']
    assert found['refused'] > 0, f'all {players} players were admitted, where the model allows {expected:.1f}'
    return expected, {**found, 'streams': streams, 'ratio': streams / expected}


def run(_rig, quick):
    scale = Scale(TIMES_FASTER)
    for megabits, disks in QUICK if quick else FULL:
        expected, found = measure(scale, megabits, disks)
        yield f'{megabits}, {disks}', 'model', {'streams': expected}
        yield f'{megabits}, {disks}', 'rtsp-proxy', found
