# SPDX-License-Identifier: LGPL-2.1-or-later
"""The placement policies when all streams ask for their first block at the same time."""

from store_disks import Scale
from store_policies import (CASE, COLUMNS, LOG, POLICIES, QUICK_SLICES, SLICES, TIMES_FASTER, WHO,
                            YARDSTICK, measure_uniform)

NAME = 'store-at-once'
TITLE = 'Streams of 6 Mb/s from 8 disks that start at once, by placement'
QUICK = 'random', 'raid0', 'rda'

__all__ = 'NAME', 'TITLE', 'CASE', 'WHO', 'YARDSTICK', 'LOG', 'COLUMNS', 'run'


def run(_rig, quick):
    scale = Scale(TIMES_FASTER)
    for policy in QUICK if quick else POLICIES:
        yield ('uniform, at once', policy,
               measure_uniform(scale, 'at once', policy, QUICK_SLICES if quick else SLICES))
