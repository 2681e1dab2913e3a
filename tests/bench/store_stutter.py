# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts stoppages when one disk transfers useless data with each request (fail-stutter faults,
figures 4.5 to 4.7 of the dissertation)."""

import store_policies
from report import Column
from store_disks import Scale, store
from store_policies import DISKS, MEGABITS, POLICIES, TIMES_FASTER
from store_work import even, uniform

NAME = 'store-stutter'
TITLE = 'Stoppages when one of 8 disks transfers useless data too'
CASE, WHO, YARDSTICK = 'useless data, load', 'placement', None
LOG = False
COLUMNS = (
    Column('stoppages', 'stoppages', '{:.0f}'),
    Column('mean', 'mean s', '{:.2f}'),
    Column('longest', 'longest s', '{:.2f}'),
    Column('streams', 'streams', '{:.0f}'),
    Column('second', '% second choices', '{:.0f}'),
)
PICTURES = 'mean', 'longest'
PERCENTS = (0, 20, 40, 60, 80, 100)
LOADS = (100, 95)  # % of the placement's largest number of streams
SLICES = 40
QUICK = ((0, 20, 100), (95,), ('naive', 'raid1', 'rda'), 20)


def most_streams(scale, policy, slices):
    if policy not in store_policies.found:
        store_policies.measure_uniform(
            scale, 'within a slice', policy, slices, store_policies.QUICK_NEAR if slices < SLICES else store_policies.NEAR)
    return store_policies.found[policy]


def measure(scale, policy, percent, streams, slices):
    with store(scale, DISKS, policy, MEGABITS, slices, even(policy, DISKS, streams)) as filled:
        filled.disks[0].set(stutter=percent)
        result = filled.trial(uniform(streams, scale.slice), slices, stop=False)
    return {'stoppages': result['stoppages'], 'mean': scale.time * result['mean'],
            'longest': scale.time * result['longest'], 'streams': streams,
            'second': 100 * result['second'] / result['blocks']}


def run(_rig, quick):
    scale = Scale(TIMES_FASTER)
    percents, loads, policies, slices = QUICK if quick else (PERCENTS, LOADS, POLICIES, SLICES)
    for load in loads:
        for percent in percents:
            for policy in policies:
                streams = int(most_streams(scale, policy, slices) * load / 100)
                yield (f'{percent} %, {load} %', policy,
                       measure(scale, policy, percent, streams, slices))
