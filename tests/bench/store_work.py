# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles and arrivals of the dissertation's workloads (section 4.3)."""

import bisect
import itertools
import random

TITLES = 1000
ARRIVALS = 1  # a second, before time is scaled


def first_disks(policy, disks):
    """Returns the disks on which a title can begin: each, or the first one of each pair."""
    return range(0, disks, 2 if policy == 'raid1' else 1)


def even(policy, disks, titles):
    """Titles that lie evenly on the disks."""
    firsts = first_disks(policy, disks)
    return [(f't{i}', firsts[i % len(firsts)]) for i in range(titles)]


def uniform(streams, spread=0):
    """Distinct titles, started at random within `spread` s."""
    starts = random.Random(3)
    return [(time, f't{i}') for i, time in
            enumerate(sorted(spread * starts.random() for _ in range(streams)))]


def arriving(streams, mean):
    """Distinct titles, started in a Poisson process with `mean` s between them."""
    starts, time, work = random.Random(4), 0, []
    for i in range(streams):
        time += starts.expovariate(1 / mean)
        work.append((time, f't{i}'))
    return work


def overloaded(policy, disks, streams, percent):
    """As many distinct titles as streams. The first disk or pair has `percent` more than each of
    the others. Returns [(title, first disk)]."""
    firsts = list(first_disks(policy, disks))
    # The first disk counts 1 + percent/100 times.
    weights = [1 + percent / 100] + [1] * (len(firsts) - 1)
    due, titles = [0.0] * len(firsts), []
    for i in range(streams):
        for disk, weight in enumerate(weights):
            due[disk] += weight / sum(weights)
        most = max(range(len(firsts)), key=due.__getitem__)
        due[most] -= 1
        titles.append((f't{i}', firsts[most]))
    return titles


class Zipf:
    """Arrivals of a Poisson process. Title r is asked for with a probability of r^-s, and plays to
    the end of the run."""

    def __init__(self, exponent, scale, seed=1):
        self._random = random.Random(seed)
        self._sums = list(itertools.accumulate(r ** -exponent for r in range(1, TITLES + 1)))
        self._scale = scale
        self._streams = []
        self._time = 0

    def streams(self, n):
        while len(self._streams) < n:
            self._time += self._random.expovariate(ARRIVALS * self._scale.time)
            rank = bisect.bisect(self._sums, self._random.random() * self._sums[-1])
            self._streams.append((self._time, f't{rank}'))
        return self._streams[:n]

    def titles(self, n, policy, disks, worst):
        """Returns [(title, first disk)] of those that the first n streams play. The most popular
        titles lie together (`worst`), or each title on a disk chosen at random."""
        firsts = first_disks(policy, disks)
        places = [rank * len(firsts) // TITLES for rank in range(TITLES)]
        if not worst:
            random.Random(2).shuffle(places)
        played = {int(title[1:]) for _, title in self.streams(n)}
        return [(f't{rank}', firsts[places[rank]]) for rank in sorted(played)]
