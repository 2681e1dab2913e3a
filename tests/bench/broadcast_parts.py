# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of the paper on periodic broadcast and patching (Bradshaw et al.) that need no
network: one class for each table and picture."""

import subprocess

from report import Column
from servers import BUILD

TOMMY = 1200, 3e5      # s and bits/s of the paper's titles (table 1)
BLADE2 = 900.9, 3e6
SCHEMES = {'3-GDB': ('gdb', 3), '10-GDB': ('gdb', 10), 'patching': ('patching', 1),
           'unicast': ('unicast', 1)}


def bench(*words):
    done = subprocess.run([BUILD / 'tests/bench/schedule_bench', *map(str, words)],
                          capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def simulate(scheme, title, arrivals, hours, cache=0, policy='lfu'):
    """Returns the means and the distributions, in Mb/s and % of the time by 100 kb/s."""
    means, sent, read = bench(*SCHEMES[scheme], *title, arrivals, policy, cache * 1e6, hours)
    names = 'sent', 'read', 'most', 'theory_sent', 'theory_read'
    result = {name: value / 1e6 if value >= 0 else None for name, value in zip(names, means)}
    return {**result, 'sent_bins': [100 * n / sum(sent) for n in sent],
            'read_bins': [100 * n / sum(read) for n in read]}


def grouped(bins, width):
    """Yields the start of each group of `width` bins in Mb/s, and its part of the time."""
    for at in range(0, len(bins), width):
        yield at / 10, sum(bins[at:at + width])


class Part:
    CASE, WHO, YARDSTICK, LOG = 'scheme', 'by', None, False
    SIMULATED = True


class Bandwidth(Part):
    NAME = 'broadcast-bandwidth'
    TITLE = 'A title of 20 minutes and 300 kb/s, 2 clients a minute'
    COLUMNS = (Column('sent', 'Mb/s', '{:.2f}'), Column('most', 'most in a second', '{:.1f}'))
    PAPER = {'10-GDB': 2.09, 'patching': 2.32, 'unicast': 12}

    @classmethod
    def run(cls, _rig, quick):
        for scheme, paper in cls.PAPER.items():
            found = simulate(scheme, TOMMY, 2 / 60, 20 if quick else 200)
            yield scheme, 'paper', {'sent': paper}
            yield scheme, 'theory', {'sent': found['theory_sent']}
            yield scheme, 'simulated', {'sent': found['sent'], 'most': found['most']}


class Histogram(Part):
    NAME = 'broadcast-histogram'
    TITLE = 'Bandwidth of the same title, as parts of the time (figure 10 of the paper)'
    CASE, WHO = 'Mb/s from', 'scheme'
    COLUMNS = (Column('part', '% of the time', '{:.1f}'),)

    @staticmethod
    def run(_rig, quick):
        found = {scheme: list(grouped(
            simulate(scheme, TOMMY, 2 / 60, 20 if quick else 200)['sent_bins'], 3))
            for scheme in ('10-GDB', 'patching')}
        for n in range(16):
            for scheme, groups in found.items():
                yield f'{groups[n][0]:.1f}', scheme, {'part': groups[n][1]}


class Cache(Part):
    NAME = 'broadcast-cache'
    TITLE = 'Read load of a title of 15 minutes and 3 Mb/s with a cache (figure 6)'
    CASE, WHO = 'MB of cache', 'scheme, policy'
    COLUMNS = (Column('read', 'read Mb/s', '{:.2f}'), Column('theory', 'theory', '{:.2f}'),
               Column('paper', 'paper', '{:.2f}'))
    PAPER = {('10-GDB', 'lru', 32): 16.27, ('10-GDB', 'lfu', 32): 10.14,
             ('10-GDB', 'lru', 27): 19.27, ('3-GDB', 'lru', 27): 18.88}

    @classmethod
    def run(cls, _rig, quick):
        for cache in (0, 8, 27, 32, 64) if quick else (0, 4, 8, 12, 16, 20, 27, 32, 40, 48, 56, 64):
            for scheme in '3-GDB', '10-GDB':
                for policy in 'lru', 'lfu':
                    found = simulate(scheme, BLADE2, 1 / 60, 10, cache, policy)
                    yield f'{cache}', f'{scheme}, {policy.upper()}', {
                        'read': found['read'], 'theory': found['theory_read'],
                        'paper': cls.PAPER.get((scheme, policy, cache))}


class Crossing(Part):
    NAME = 'broadcast-crossing'
    TITLE = 'Read load of the same title by arrival rate, with an LFU cache (figure 7)'
    CASE, WHO = 'clients/s', 'scheme, cache'
    COLUMNS = (Column('read', 'read Mb/s', '{:.2f}'), Column('theory', 'theory', '{:.2f}'))
    DRAWN = (('3-GDB', 0), ('10-GDB', 0), ('patching', 0), ('10-GDB', 32), ('patching', 32))

    @classmethod
    def run(cls, _rig, quick):
        rates = (0.01, 0.03, 0.046) if quick else (0.005, 0.01, 0.014, 0.02, 0.03, 0.046, 0.06)
        for rate in rates:
            for scheme, cache in cls.DRAWN:
                found = simulate(scheme, BLADE2, rate, 10 if quick else 100, cache)
                yield f'{rate}', f'{scheme}, {cache} MB', {
                    'read': found['read'], 'theory': found['theory_read']}


class Patching(Part):
    NAME = 'broadcast-patching'
    TITLE = 'Read load of patching with an LFU cache, as parts of the time (figure 5)'
    CASE, WHO = 'Mb/s from', 'cache'
    COLUMNS = (Column('part', '% of the time', '{:.1f}'), Column('mean', 'mean Mb/s', '{:.1f}'),
               Column('paper', 'paper', '{:.1f}'))
    PAPER = {0: 18.7, 16: 17, 48: 11}

    @classmethod
    def run(cls, _rig, quick):
        found = {cache: simulate('patching', BLADE2, 5 / 180, 10 if quick else 100, cache)
                 for cache in cls.PAPER}
        groups = {cache: list(grouped(result['read_bins'], 32)) for cache, result in found.items()}
        for n in range(12):
            for cache, paper in cls.PAPER.items():
                means = {'mean': found[cache]['read'], 'paper': paper} if n == 0 else {}
                yield f'{groups[cache][n][0]:.1f}', f'{cache} MB', {
                    'part': groups[cache][n][1], **means}


class Stagger(Part):
    NAME = 'broadcast-stagger'
    TITLE = 'The most that 3-GDB of several titles of 15 minutes and 3 Mb/s sends (figure 12)'
    CASE, WHO = 'titles', 'start'
    COLUMNS = (Column('most', 'most Mb/s in a second', '{:.0f}'), Column('mean', 'mean', '{:.1f}'),
               Column('above', '% of the time 10 % above it', '{:.1f}'))

    @staticmethod
    def run(_rig, _quick):
        for titles in 3, 5, 20:
            for start in 'together', 'staggered':
                (mean, most, above), = bench(titles, start)
                yield f'{titles}', start, {
                    'most': most / 1e6, 'mean': mean / 1e6, 'above': above / 100}
