# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pictures of the paper on periodic broadcast and patching (Bradshaw et al.) that show what a
server sends and when, with rtsp-proxy over a network: see broadcast_network.py."""

import time

from broadcast_network import (GROUP, LENGTH, MEGABITS, PORT, RATE, Films, Part, network, prepare,
                               result_of, run_in)
from report import Column

MEASURED = 20
CYCLE = 48  # s of the last segment of 30-GDB, with its pause


def share(bins, first, last):
    """Returns the part of the counts `first` to `last` of a histogram, in %."""
    return 100 * sum(bins[first:last + 1]) / sum(bins)


class Throughput(Part):
    NAME = 'broadcast-throughput'
    TITLE = f'What 30-GDB of titles of {LENGTH} s and {MEGABITS} Mb/s sends (figure 4)'
    CASE, WHO = 'titles', 'rate'
    COLUMNS = (Column('rate', 'Mb/s', '{:.1f}'), Column('late', 'frames 1 ms late'),
               Column('missed', 'frames not sent'), Column('cpu', 'CPU %', '{:.1f}'))

    @staticmethod
    def run(_rig, quick):
        for titles in (5,) if quick else (1, 2, 3, 4, 5, 6, 10):
            offered, sent = throughput(titles)
            yield f'{titles}', 'offered', offered
            yield f'{titles}', 'sent', sent


def throughput(titles):
    with network(1) as rig, Films(rig, {'scheme': 'gdb', 'first': '3s'}, titles) as server:
        prepare(rig, server)
        asks = run_in(rig.clients[0], 'describers.py', 2, 2 * CYCLE + 5, 1, *server.urls())
        time.sleep(CYCLE + 2)  # all segments have begun
        begin, before = server.usage(), server.figures()
        time.sleep(CYCLE)
        end, after = server.usage(), server.figures()
        result_of(asks)  # till now, the groups have clients
    took = end.at - begin.at
    return {'rate': after['rate'] / 1e6}, {
        'rate': (after['sent-bytes'] - before['sent-bytes']) * 8e-6 / took,
        'late': after['late-frames'] - before['late-frames'],
        'missed': after['missed-frames'] - before['missed-frames'],
        'cpu': 100 * (end.cpu - begin.cpu) / took}


class Gaps(Part):
    NAME = 'broadcast-gaps'
    TITLE = f'Frame inter-arrival times at {RATE} frames/s, 600 requests a minute (figure 9)'
    CASE, WHO = 'ms', 'scheme'
    COLUMNS = (Column('part', '% of the frames', '{:.1f}'),
               Column('variation', 'coefficient of variation', '{:.4f}'),
               Column('paper', 'paper', '{:.2f}'))
    PAPER = {3: 0.16, 10: 0.10, 30: None}

    @classmethod
    def run(cls, _rig, quick):
        found = {first: gaps(first) for first in ((10,) if quick else cls.PAPER)}
        for low, high in ((0, 29), (30, 31), (32, 32), (33, 33), (34, 34), (35, 36), (37, 99)):
            for first, even in found.items():
                means = {'variation': even['variation'],
                         'paper': cls.PAPER[first]} if low == 33 else {}
                yield f'{low}-{high + 1}', f'{first}-GDB', {
                    'part': share(even['bins'], low, high), **means}


def gaps(first):
    with network(2) as rig, Films(rig, {'scheme': 'gdb', 'first': f'{first * 100}ms'}) as server:
        prepare(rig, server)
        asks = run_in(rig.clients[0], 'describers.py', 10, MEASURED, 16, *server.urls())
        even = run_in(rig.clients[1], 'group_gaps.py', GROUP, PORT, 1000 / RATE, MEASURED)
        result_of(asks)
        return result_of(even)


class Answers(Part):
    NAME = 'broadcast-answers'
    TITLE = 'Time to the schedule, with patching of three titles (figure 11)'
    CASE, WHO = 'ms', 'requests a minute'
    COLUMNS = (Column('part', '% of the requests', '{:.1f}'), Column('p50', 'p50 ms', '{:.1f}'),
               Column('p99', 'p99 ms', '{:.1f}'))

    @staticmethod
    def run(_rig, quick):
        found = {requests: answers(requests) for requests in ((600,) if quick else (60, 600, 6000))}
        for low, high in ((0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 39), (40, 99)):
            for requests, asked in found.items():
                means = {key: asked[key] for key in ('p50', 'p99')} if low == 0 else {}
                yield f'{low / 2:g}-{(high + 1) / 2:g}', f'{requests}', {
                    'part': share(asked['bins'], low, high), **means}


def answers(requests):
    with network(1) as rig, Films(rig, {'scheme': 'patching'}) as server:
        prepare(rig, server)
        time.sleep(1)  # the answers of the preparation are over
        asked = result_of(run_in(rig.clients[0], 'describers.py', requests / 60, MEASURED, 16,
                                 *server.urls()))
    assert asked['got'] == asked['asked'], f'only {asked["got"]} of {asked["asked"]} schedules'
    return asked
