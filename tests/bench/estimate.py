# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what the estimate of readers' lines costs."""

import subprocess

from report import Column
from servers import BUILD

NAME = 'estimate'
TITLE = 'CPU time of the estimate of 1000 readers\' lines'
CASE, WHO, YARDSTICK = 'what', 'who', 'core'
LOG = False
COLUMNS = (Column('ns', 'ns', '{:.1f}', spread=True),)

WHAT = {
    'sent': 'a packet that is sent',
    'read': 'a feedback packet that is parsed',
    'taken': 'a packet that is told of',
    'seen': 'a look at the estimate',
}


def run(rig, quick):
    for _ in range(1 if quick else 3):
        done = subprocess.run([BUILD / 'tests/bench/estimate_bench'], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            what, ns = line.split()
            yield WHAT[what], 'core', {'ns': float(ns)}
