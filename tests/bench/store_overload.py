# SPDX-License-Identifier: LGPL-2.1-or-later
"""Asks more often for titles of one disk or mirror pair than for others (figure 4.4 of the
dissertation), and gives one disk other work."""

from report import Column
from store_disks import NEAR, Scale, largest, model, store
from store_policies import DISKS, MEGABITS, TIMES_FASTER
from store_work import even, first_disks, overloaded, uniform

NAME = 'store-overload'
TITLE = 'Streams of 6 Mb/s from 8 disks, when one disk has more to do'
CASE, WHO, YARDSTICK = 'more load on one disk', 'placement', None
LOG = False
COLUMNS = (
    Column('streams', 'streams', '{:.0f}'),
    Column('lost', '% lost', '{:.0f}'),
    Column('second', '% second choices', '{:.0f}'),
)
POLICIES = ('naive', 'raid1', 'rda')
PERCENTS = (0, 20, 40, 60, 80)
BUSY = (40, 80)  # % of its time that the disk is occupied by other work
SLICES = 30
QUICK_SLICES, QUICK_NEAR = 20, 0.04


def expected_streams(scale, policy, percent):
    places = len(first_disks(policy, DISKS))
    return (model(scale, DISKS, MEGABITS) / places
            * (places + percent / 100) / (1 + percent / 100))


def measure(scale, policy, percent, slices, near=NEAR):
    """The titles of each trial are chosen anew, so each has a store of its own."""
    def trial(n):
        titles = overloaded(policy, DISKS, n, percent)
        with store(scale, DISKS, policy, MEGABITS, slices, titles) as filled:
            return filled.trial(uniform(n, scale.slice), slices)

    without = model(scale, DISKS, MEGABITS)
    expected = without if policy == 'rda' else expected_streams(scale, policy, percent)
    return largest(trial, expected, int(1.1 * without), near)


def measure_busy(scale, policy, percent, slices):
    most = int(1.1 * model(scale, DISKS, MEGABITS))
    with store(scale, DISKS, policy, MEGABITS, slices, even(policy, DISKS, most)) as filled:
        filled.disks[0].set(load=percent)
        share = 1 - percent / 100
        expected = most * (share if policy == 'naive' else (DISKS - 1 + share) / DISKS)
        return largest(
            lambda n: filled.trial(uniform(n, scale.slice), slices), 0.9 * expected, most)


def run(_rig, quick):
    scale = Scale(TIMES_FASTER)
    slices = QUICK_SLICES if quick else SLICES
    for policy in POLICIES:
        without = None
        for percent in (0, 80) if quick or policy == 'rda' else PERCENTS:
            streams, result = measure(scale, policy, percent, slices, QUICK_NEAR if quick else NEAR)
            without = without or streams
            yield f'{percent} % more readers', policy, figures(streams, without, result)
        for percent in () if quick else BUSY:
            streams, result = measure_busy(scale, policy, percent, slices)
            yield f'{percent} % other work', policy, figures(streams, without, result)


def figures(streams, without, result):
    return {'streams': streams, 'lost': 100 * (1 - streams / without),
            'second': 100 * result['second'] / result['blocks'] if result else None}
