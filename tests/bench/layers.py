# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of reducing a layered stream to some of its layers."""

import os
import subprocess

from report import Column
from servers import BUILD, PLUGINS, ROOT

NAME = 'layers'
TITLE = 'CPU time per packet for H.264 SVC of 3 x 3 layers: the core and svclayerfilter'
CASE, WHO, YARDSTICK = 'layers kept', 'step', 'project'
LOG = True
COLUMNS = (Column('ns', 'ns/packet', spread=True),)


def run(rig, quick):
    environment = {**os.environ, **PLUGINS, 'WEIR_DATA': str(ROOT / 'tests/data')}
    for _ in range(1 if quick else 3):
        done = subprocess.run([BUILD / 'tests/bench/layers_bench'], env=environment,
                              capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            kept, what, ns = line.split('\t')
            yield kept, what, {'ns': float(ns)}
