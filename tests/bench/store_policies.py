# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the placement policies under uniform and Zipf popularity (figures 4.2 and 4.3 of the
dissertation)."""

from report import Column
from store_disks import NEAR, Scale, check, largest, model, store
from store_work import ARRIVALS, Zipf, arriving, even, uniform

NAME = 'store-policies'
TITLE = 'Streams of 6 Mb/s from 8 disks, by placement and popularity'
CASE, WHO, YARDSTICK = 'popularity', 'placement', None
LOG = False
COLUMNS = (
    Column('streams', 'streams', '{:.0f}'),
    Column('ratio', 'ratio to model', '{:.2f}'),
    Column('hits', '% from memory', '{:.0f}'),
    Column('start', 'start-up s', '{:.1f}'),
    Column('longest_start', 'longest start-up s', '{:.1f}'),
    Column('second', '% second choices', '{:.0f}'),
    Column('cpu', 'CPU % of the store', '{:.0f}'),
)
MEGABITS, DISKS = 6, 8
POLICIES = ('naive', 'raid0', 'raid1', 'random', 'rda')
SLICES = 40
TIMES_FASTER = 20
NEAR_ZIPF = 0.025
# By exponent: the most streams that are tried, as a part of the model's number. More titles would
# have more files than slowdisk can have open, which is 20,000 on many machines.
MOST_ZIPF = {0.5: 1.15, 1.0: 1.6}
QUICK = ('within a slice', ('naive', 'rda', 'random')),
QUICK_SLICES, QUICK_NEAR = 20, 0.03
FIRST = {'random': 0.92}  # part of the model's number with which the search begins
BETWEEN = 0.1  # s between arrivals, before time is scaled
STARTS = {      # of streams with uniform popularity
    'one by one': lambda n, scale: arriving(n, BETWEEN / scale.time),
    'within a slice': lambda n, scale: uniform(n, scale.slice),
    'at once': lambda n, scale: uniform(n),
}

found = {}  # policy: streams that start within a slice, for store_stutter


def figures(scale, streams, result):
    assert result, 'not one stream'
    return {'streams': streams, 'ratio': streams / model(scale, DISKS, MEGABITS),
            'hits': 100 * result['hits'] / result['blocks'],
            'start': scale.time * result['start'],
            'longest_start': scale.time * result['longest_start'],
            'second': 100 * result['second'] / result['blocks'], 'cpu': result['cpu']}


def measure_uniform(scale, starts, policy, slices, near=NEAR):
    expected = model(scale, DISKS, MEGABITS)
    most = int(1.1 * expected)
    with store(scale, DISKS, policy, MEGABITS, slices, even(policy, DISKS, most)) as filled:
        streams, result = largest(
            lambda n: filled.trial(STARTS[starts](n, scale), slices),
            FIRST.get(policy, 1) * expected, most, near)
    check(streams, expected)
    if starts == 'within a slice':
        found[policy] = streams
    return figures(scale, streams, result)


def measure_zipf(scale, exponent, name, slices):
    policy, _, worst = name.partition(' ')
    work = Zipf(exponent, scale)
    expected = model(scale, DISKS, MEGABITS)
    most = int(MOST_ZIPF[exponent] * expected)
    blocks = int(most / (ARRIVALS * scale.time) / scale.slice) + slices
    titles = work.titles(most, policy, DISKS, worst == 'worst')
    with store(scale, DISKS, policy, MEGABITS, blocks, titles) as filled:
        def trial(n):
            return filled.trial(work.streams(n), slices, memory=scale.memory)

        # Those that play when the first one stops are too many.
        stopped = int(trial(most)['playing'])
        streams, result = largest(trial, (1 - 2 * NEAR_ZIPF) * stopped, stopped, NEAR_ZIPF)
    return figures(scale, streams, result)


def zipf_names():
    return [name for policy in POLICIES
            for name in (('naive expected', 'naive worst') if policy == 'naive' else (policy,))]


def run(_rig, quick):
    scale = Scale(TIMES_FASTER)
    slices = QUICK_SLICES if quick else SLICES
    cases = [*((starts, POLICIES) for starts in STARTS if starts != 'at once'), (0.5, zipf_names()), (1.0, zipf_names())]
    for case, names in QUICK if quick else cases:
        for name in names:
            if case in STARTS:
                yield f'uniform, {case}', name, measure_uniform(
                    scale, case, name, slices, QUICK_NEAR if quick else NEAR)
            else:
                yield f'Zipf {case}', name, measure_zipf(scale, case, name, slices)
