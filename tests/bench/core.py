# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the core's send path with bare system calls."""

import subprocess

from report import Column
from rig import FIRST_PORT
from servers import BUILD

NAME = 'core'
TITLE = 'CPU time per packet to one of 500 readers, by send method'
CASE, WHO, YARDSTICK = 'packets per burst', 'method', 'sendto'
LOG = True
COLUMNS = (Column('ns', 'ns/packet', spread=True),)


def run(rig, quick):
    words = [*rig.server, BUILD / 'tests/bench/send_bench']
    if rig.real:
        rig.drop_all_but(0)
        words += [rig.readers_address, str(FIRST_PORT)]
    for _ in range(1 if quick else 3):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            burst, way, ns = line.split()
            yield burst, way, {'ns': float(ns)}
