# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how adaptation copes with a line that is too narrow for all layers of a stream."""

import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import time

from load import Load
from proc import Proc
from report import Column
from servers import PORT, Upstream, Weir
from tap import Skip

NAME = 'adapt'
TITLE = 'Readers of H.264 SVC of 2 Mb/s, 3 x 3 layers, on a narrow line'
CASE, WHO, YARDSTICK = 'line', 'adapt', 'fixed'
LOG = False
COLUMNS = (
    Column('used', 'sent, % of the line', spread=True),
    Column('reports', 'reports until it fits'),
    Column('over', 'worst 15 s, % of the line'),
    Column('lost', 'lost %', '{:.1f}'),
    Column('broken', 'broken pictures %', '{:.1f}'),
    Column('spread', 'spatial layers between readers'),
)

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = ('fixed', 'bandwidth', 'aimd')
UPSTREAM, API = 6000, 9554
REPORT_SECONDS, WINDOW = 5, 15
FULL = 2.1e6  # bits per second of all layers, on the line
WIDE, NARROW, BEFORE, AFTER = 3e6, 0.7e6, 20, 60
MANY, PROBES, PART, SETTLE, MEASURE = 160, 10, 0.6, 45, 30


class Adapting(Weir):
    """The proxy with a layered stream as its upstream."""

    whole = {'api': f'127.0.0.1:{API}'}

    def __init__(self, rig, policy):
        self.keys = {'join': 'live', 'adapt': policy}
        super().__init__(rig, {'s': f'rtp://127.0.0.1:{UPSTREAM}?encoding-name=H264&payload=96'}, Upstream(always=True))


class Lines(Proc):
    """Runs one of our scripts and collects the JSON lines that it prints."""

    def __init__(self, side, script, *words):
        support = str(HERE.parent / 'support')
        super().__init__(*side, sys.executable, script, *words,
                         env={**os.environ, 'PYTHONPATH': support})

    def samples(self):
        return [json.loads(line) for line in list(self.lines) if line.startswith('{')]


class Line:
    """A rate limit on the readers' side of the link. Packets wait here as they would behind a
    router. A queue on the server's own device would fill the server's socket buffer instead."""

    def __init__(self, rig, rate, queue='100ms'):
        self._side, self._queue = rig.readers, queue
        self._run('ip', 'link', 'add', 'line', 'type', 'ifb')
        self._run('ip', 'link', 'set', 'line', 'up')
        self._tc('add', rate)
        self._run('nft', 'add table netdev line; add chain netdev line in { type filter hook ingress '
                  'device "veth" priority 10; }; add rule netdev line in fwd to "line"')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run('nft', 'delete table netdev line')
        self._run('ip', 'link', 'del', 'line')

    def _run(self, *words):
        subprocess.run([*self._side, *words], check=True)

    def _tc(self, what, rate):
        self._run('tc', 'qdisc', what, 'dev', 'line', 'root', 'tbf', 'rate', f'{rate:.0f}bit', 'burst',
                  '64kb' if rate > 1e7 else '8kb', 'latency', self._queue)

    def change(self, rate):
        self._tc('change', rate)


@contextlib.contextmanager
def serving(rig, policy, rate):
    """Yields the line and a sampler that records what the proxy sends."""
    with Line(rig, rate) as line, Adapting(rig, policy), \
            Lines(rig.server, HERE.parent / 'support' / 'svcfile.py', UPSTREAM):
        time.sleep(2)
        with Lines(rig.server, HERE / 'adapt_sampler.py', f'http://127.0.0.1:{API}') as sampler:
            yield line, sampler


def readers(rig, number):
    return Lines(rig.readers, HERE / 'adapt_readers.py', number, rig.server_address, PORT, '/s')


def rate_of(samples):
    return 8 * (samples[-1]['bytes'] - samples[0]['bytes']) / (samples[-1]['at'] - samples[0]['at'])


def worst(samples, seconds):
    """Returns the highest bit rate over any span of `seconds`."""
    rates = [0]
    for n, first in enumerate(samples):
        window = [each for each in samples[n:] if each['at'] <= first['at'] + seconds]
        if window[-1]['at'] > first['at'] + seconds - 1:
            rates.append(rate_of(window))
    return max(rates)


def seconds_until_it_fits(samples, rate):
    """Returns the seconds from the first sample until the sent rate, averaged over one report
    interval, fits the line. None if it never does."""
    for n, last in enumerate(samples):
        window = [each for each in samples[:n + 1] if each['at'] >= last['at'] - REPORT_SECONDS]
        if last['at'] >= samples[0]['at'] + REPORT_SECONDS and rate_of(window) <= rate:
            # The report at the window's start made the rate fit.
            return last['at'] - REPORT_SECONDS - samples[0]['at']
    return None


def since(samples, at):
    return [each for each in samples if each['at'] >= at]


def quality(before, after):
    packets, lost, pictures, broken = (after[key] - before[key]
                                       for key in ('packets', 'lost', 'pictures', 'broken'))
    return {'lost': 100 * lost / max(1, lost + packets), 'broken': 100 * broken / max(1, pictures)}


def cut(rig, policy):
    with serving(rig, policy, WIDE) as (line, sampler), readers(rig, 1) as reader:
        time.sleep(BEFORE)
        at = sampler.samples()[-1]['at']
        line.change(NARROW)
        time.sleep(WINDOW)
        before = reader.samples()[-1]
        time.sleep(AFTER - WINDOW)
        samples, after = since(sampler.samples(), at), reader.samples()[-1]
    seconds = seconds_until_it_fits(samples, NARROW)
    settled = since(samples, at + WINDOW)
    return {'used': 100 * rate_of(settled) / NARROW,
            'reports': seconds and math.ceil(seconds / REPORT_SECONDS),
            'over': 100 * worst(settled, WINDOW) / NARROW, **quality(before, after)}


def crowd(rig, policy, number, rate=None):
    """`rate` is that of the line, by default PART of what the readers would take."""
    rate = rate or PART * FULL * number
    seconds = SETTLE + MEASURE + 20
    with serving(rig, policy, rate) as (_, sampler), readers(rig, PROBES) as probes, \
            Load(rig, '--readers', number - PROBES, '--duration', seconds, '--timeout', 30,
                 '--arrivals', 'uniform:40', f'rtsp://{rig.server_address}:{PORT}/s'):
        time.sleep(SETTLE)
        before, at = probes.samples()[-1], sampler.samples()[-1]['at']
        time.sleep(MEASURE)
        samples, after = since(sampler.samples(), at), probes.samples()[-1]
    assert samples[-1]['readers'] == number, f'{samples[-1]["readers"]} readers play'
    layers = [[layer for layer, n in enumerate(each['spatial']) if n] for each in samples]
    return {'each': rate_of(samples) / number / 1e3, 'used': 100 * rate_of(samples) / rate,
            'over': 100 * worst(samples, WINDOW) / rate,
            'spread': max(each[-1] - each[0] for each in layers), **quality(before, after)}


def run(rig, quick):
    if not rig.real:
        raise Skip('a narrow line needs the rig')
    for policy in POLICIES:
        yield '3 Mb/s cut to 700 kb/s, 1 reader', policy, cut(rig, policy)
    number = 40 if quick else MANY
    for policy in POLICIES:
        yield f'60 % of the full rate, {number} readers', policy, crowd(rig, policy, number)
