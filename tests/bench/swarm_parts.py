# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of the dissertation on Toast (Choe 2007, chapter 5), simulated without a network:
one class for each table and picture."""

import functools
import subprocess

from report import Column
from servers import BUILD

PICKERS = 'rarest', 'in-order', 'beta', 'hybrid', 'adaptive'
MINUTE = 60


@functools.lru_cache(maxsize=None)
def simulate(picker, upload=1.0, leaving='stream', arrivals='uniform', viewers=300, gap=36,
             window=15 * MINUTE, spread=10 * MINUTE, storage=1.0, choking='tit-for-tat',
             source=0, quick=False):
    """Returns saved and repeated traffic in %: the means of one to three simulations."""
    runs = []
    for seed in range(1, 2 if quick else 4):
        done = subprocess.run(
            [BUILD / 'tests/bench/swarm_bench',
             *map(str, (picker, upload, leaving, arrivals, viewers, gap, window, spread, storage,
                        choking, source, 430 if quick else 858, seed))],
            capture_output=True, text=True, check=True)
        saved, twice, late = map(float, done.stdout.split())
        assert late == 0, f'{late:.0f} pieces were late'
        runs.append((saved, twice))
    saved, twice = (100 * sum(values) / len(runs) for values in zip(*runs))
    return {'saved': saved, 'twice': twice}


class Part:
    WHO, YARDSTICK, LOG = 'picker', None, False
    SIMULATED = True
    COLUMNS = (Column('saved', '% saved', '{:.1f}'), Column('twice', '% sent twice', '{:.1f}'),
               Column('paper', 'paper: % saved', '{:.0f}'))


class Upload(Part):
    NAME = 'swarm-upload'
    TITLE = 'What viewers save the origin, who leave after the end (figure 5.3 of the paper)'
    CASE = 'upload / bit rate'
    PAPER = {(1.0, 'hybrid'): 80, (0.5, 'hybrid'): 45}

    @classmethod
    def run(cls, _rig, quick):
        for upload in 1.0, 0.75, 0.5:
            for picker in PICKERS:
                yield f'{upload}', picker, {**simulate(picker, upload, quick=quick),
                                            'paper': cls.PAPER.get((upload, picker))}


class Window(Part):
    NAME = 'swarm-window'
    TITLE = 'Pickers by the window in order, upload as the bit rate (figure 5.4)'
    CASE = 'minutes'

    @staticmethod
    def run(_rig, quick):
        for minutes in 2, 5, 9, 12, 15, 20:
            for picker in 'hybrid', 'adaptive':
                yield f'{minutes}', picker, simulate(picker, window=minutes * MINUTE, quick=quick)


class Leaving(Part):
    NAME = 'swarm-leaving'
    TITLE = 'When viewers leave (figures 5.5 and 5.6)'
    CASE = 'upload / bit rate, leaving'
    PAPER = {(1.0, 'seed', 'hybrid'): 90, (0.5, 'seed', 'hybrid'): 71}

    @classmethod
    def run(cls, _rig, quick):
        for upload in 1.0, 0.5:
            for leaving in 'download', 'stream', 'seed':
                for picker in PICKERS:
                    yield f'{upload}, {leaving}', picker, {
                        **simulate(picker, upload, leaving, quick=quick),
                        'paper': cls.PAPER.get((upload, leaving, picker))}


class Storage(Part):
    NAME = 'swarm-storage'
    TITLE = 'Viewers who keep a part of the title, upload as the bit rate (figure 5.8)'
    CASE = '% of the title'

    @staticmethod
    def run(_rig, quick):
        for percent in 25, 50, 75, 100:
            for picker in PICKERS:
                yield f'{percent}', picker, simulate(picker, storage=percent / 100, quick=quick)


class Arrivals(Part):
    NAME = 'swarm-arrivals'
    TITLE = '90 viewers by arrivals, with and without early fetches'
    CASE = 'arrivals, spread'

    @staticmethod
    def run(_rig, quick):
        for arrivals in 'uniform', 'poisson', 'together':
            for spread in (0, 10) if quick else (0, 2, 5, 10):
                for picker in PICKERS:
                    yield f'{arrivals}, {spread} min', picker, simulate(
                        picker, arrivals=arrivals, viewers=90, gap=120, spread=spread * MINUTE,
                        quick=quick)


class Choking(Part):
    NAME = 'swarm-choking'
    TITLE = 'Whom viewers send to, upload as the bit rate (figure 5.7)'
    CASE = 'choking'

    @staticmethod
    def run(_rig, quick):
        for choking in 'tit-for-tat', 'blind':
            for picker in PICKERS:
                yield choking, picker, simulate(picker, choking=choking, quick=quick)


class Seed(Part):
    NAME = 'swarm-seed'
    TITLE = 'A seed beside the origin, as in all tests of the paper; what it sends counts as the origin\'s'
    CASE = 'upload / bit rate, that of the seed'

    @staticmethod
    def run(_rig, quick):
        for upload in 1.0, 0.5:
            for source in (0, 1) if quick else (0, 1, 4):
                for picker in PICKERS:
                    yield f'{upload}, {source}', picker, simulate(picker, upload, source=source, quick=quick)
