# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how readers over WebRTC follow a line whose rate changes. The readers are Pion's, with
transport-wide feedback; the stream has three temporal layers."""

import contextlib
import json
import shutil
import subprocess
import tempfile
import time

from adapt import HERE, Line, Lines
from goprogram import go_program
from proc import Proc
from report import Column
from servers import CACHE, Upstream
from tap import Skip
from webrtc import HTTP_PORT, Whep

NAME = 'line'
TITLE = 'Readers over WebRTC with transport-wide feedback on a line that changes'
CASE, WHO, YARDSTICK = 'line', 'adapt', 'aimd'
LOG = False
COLUMNS = (
    Column('used', 'received, % of what fits', spread=True),
    Column('down', 'down after s', '{:.1f}'),
    Column('queue', 'queue p95 ms'),
    Column('alone', 'of TCP alone'),
    Column('first', 'first step up after s', '{:.1f}'),
    Column('all', 'all up after s', '{:.1f}'),
    Column('top', '% of the time at the top'),
    Column('lost', 'lost %', '{:.2f}'),
    Column('broken', 'broken pictures %', '{:.1f}'),
    Column('later', 'broken % later', '{:.1f}'),
    Column('spread', 'layers between readers'),
    Column('share', 'smaller of two shares %'),
    Column('line', '% of the line beside TCP'),
)

UPSTREAM, API = 6000, 9554
POLICIES = {'gcc': {}, 'aimd': {'adapt': 'aimd'}}  # gcc is the default
STEPS = 450e3, 1.3e6, 4e6  # bit/s of one, two and three layers
TOP = len(STEPS) - 1
OVERHEAD = 1.05  # of the line, to the payload
WIDE, NARROW, QUEUE = 5e6, 0.6e6, '400ms'
BEFORE, CUT, BACK = 15, 25, 35
SETTLED = 2  # s after the cut
EVERY = 0.1  # s between samples
MANY, PART, SCALE, SETTLE, MEASURE = 160, 0.6, 0.3, 30, 30
LOSS_EVERY, LOSS_SECONDS = 50, 40
LATER, BOTH = 30, 30
TCP_PORT, TCP_SETTLE, TCP_BESIDE, TCP_ALONE = 6100, 15, 40, 20


class Layered(Whep):
    """The proxy with a layered stream as its upstream."""

    whole = {'api': f'127.0.0.1:{API}'}

    def __init__(self, rig, keys):
        self.keys = keys
        super().__init__(rig, {'s': f'rtp://127.0.0.1:{UPSTREAM}?encoding-name=VP8&payload=96'}, Upstream(always=True))


class Pion(Proc):
    """Readers; `samples` are lines of JSON."""

    def __init__(self, rig, program, number, stagger=0):
        super().__init__(*rig.readers, program, 'read', '--twcc', '--json', '--codecs', 'vp8', '--series', int(1e3 * EVERY),
                         '--readers', number, '--stagger', stagger, '--duration', 3600,
                         f'http://{rig.server_address}:{HTTP_PORT}/s/whep')

    def samples(self):
        found = [json.loads(line) for line in list(self.lines) if line.startswith('{"at_ms"')]
        return [{**each, 'at': each['at_ms'] / 1e3} for each in found]


class Watch:
    """What is sampled while a case runs."""

    def __init__(self, readers, queue):
        self.readers, self.queue = readers, queue
        self.pions, self.rates = [], []

    def note_rate(self, rate):
        self.rates.append((time.time(), rate))

    def seen(self):
        """Returns the samples of the readers in turn."""
        return [pion.samples() for pion in self.pions]


@contextlib.contextmanager
def serving(rig, keys, rate, scale=1.0, every=EVERY):
    """Yields the line and what watches it."""
    with Line(rig, rate, QUEUE) as line, Layered(rig, keys), \
            Lines(rig.server, HERE / 'line_source.py', UPSTREAM, *(scale * step for step in STEPS)):
        time.sleep(2.5)
        with Lines(rig.server, HERE / 'line_sampler.py', 'readers', every, f'http://127.0.0.1:{API}') as readers, \
                Lines(rig.readers, HERE / 'line_sampler.py', 'queue', every) as queue:
            watch = Watch(readers, queue)
            watch.note_rate(rate)
            yield line, watch


# ---- figures ----


def between(samples, start, end):
    return [each for each in samples if start <= each['at'] < end]


def rate_of(samples, key, reader=None):
    """Returns the mean bit rate of a count of bytes; `reader` of all by default."""
    def total(sample):
        return sum(sample[key]) if reader is None else (sample[key] or [0])[reader]
    first, last = samples[0], samples[-1]
    return 8 * (total(last) - total(first)) / max(1e-3, last['at'] - first['at'])


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


def quality(samples):
    packets, lost, pictures, broken = (sum(samples[-1][key]) - sum(samples[0][key])
                                       for key in ('packets', 'lost', 'pictures', 'broken'))
    return {'lost': 100 * lost / max(1, lost + packets), 'broken': 100 * broken / max(1, pictures)}


def fitting(rate, scale=1.0):
    """Returns the rate of the highest step that the line carries."""
    return max([scale * step for step in STEPS if scale * step * OVERHEAD <= rate], default=scale * STEPS[0])


def until(samples, start, holds):
    """Returns the seconds from `start` until `holds` of a sample for the first time, or None."""
    return next((each['at'] - start for each in samples if each['at'] >= start and holds(each)), None)


def waits(watch, rate, start, end):
    """Returns how long a packet waits in the queue, in ms, sample by sample."""
    return [8e3 * each['waiting'] / rate for each in between(watch.queue.samples(), start, end)]


# ---- cases ----


def cut(rig, program, keys, quick):
    with serving(rig, keys, WIDE) as (line, watch), Pion(rig, program, 1) as pion:
        watch.pions.append(pion)
        time.sleep(BEFORE)
        line.change(NARROW)
        narrow = time.time()
        watch.note_rate(NARROW)
        time.sleep(CUT)
        line.change(WIDE)
        wide = time.time()
        watch.note_rate(WIDE)
        time.sleep(BACK)
        end = time.time()
    served, seen = watch.readers.samples(), pion.samples()
    low = min((each['layer'][0] for each in between(served, narrow, wide) if each['layer']), default=0)
    settled = between(seen, narrow + SETTLED, wide)
    fits = [step for step in range(len(STEPS)) if STEPS[step] * OVERHEAD <= NARROW]
    row = {
        'used': 100 * rate_of(settled, 'bytes') / fitting(NARROW),
        'down': until(served, narrow, lambda each: each['layer'] and each['layer'][0] <= max(fits)),
        'queue': percentile(waits(watch, NARROW, narrow + SETTLED, wide), 0.95),
        'first': until(served, wide, lambda each: each['layer'] and each['layer'][0] > low),
        'all': until(served, wide, lambda each: each['layer'] and each['layer'][0] == TOP),
        'later': quality(settled)['broken'], **quality(between(seen, narrow - 5, end))}
    return row, watch


def loss(rig, program, keys, quick):
    rig.lose_udp(LOSS_EVERY)
    try:
        with serving(rig, keys, 4 * WIDE) as (_, watch), Pion(rig, program, 1) as pion:
            watch.pions.append(pion)
            time.sleep(LOSS_SECONDS)
            end = time.time()
    finally:
        rig.let_all_through()
    served = [each for each in between(watch.readers.samples(), end - LOSS_SECONDS + 5, end) if each['layer']]
    seen = between(pion.samples(), end - LOSS_SECONDS + 5, end)
    top = sum(each['layer'][0] == TOP for each in served)
    return {'used': 100 * rate_of(seen, 'bytes') / STEPS[TOP], 'top': 100 * top / max(1, len(served)),
            **quality(seen)}, watch


def crowd(rig, program, keys, quick):
    number = 40 if quick else MANY
    rate = PART * SCALE * STEPS[TOP] * OVERHEAD * number
    with serving(rig, keys, rate, SCALE, 0.5) as (_, watch), Pion(rig, program, number, 30) as pion:
        watch.pions.append(pion)
        time.sleep(SETTLE + 0.03 * number)
        start = time.time()
        time.sleep(MEASURE)
        end = time.time()
    served = between(watch.readers.samples(), start, end)
    seen = between(pion.samples(), start, end)
    assert len(served[-1]['layer']) == number, f'{len(served[-1]["layer"])} readers play'
    return {'used': 100 * rate_of(seen, 'bytes') * OVERHEAD / rate,
            'queue': percentile(waits(watch, rate, start, end), 0.95),
            'spread': max(max(each['layer']) - min(each['layer']) for each in served), **quality(seen)}, watch


def two(rig, program, keys, quick):
    with serving(rig, keys, WIDE) as (_, watch), Pion(rig, program, 1) as first:
        watch.pions.append(first)
        time.sleep(LATER)
        with Pion(rig, program, 1) as second:
            watch.pions.append(second)
            time.sleep(BOTH)
            end = time.time()
    rates = [rate_of(between(samples, end - 10, end), 'bytes') for samples in watch.seen()]
    seen = between(watch.seen()[0], end - BOTH, end)
    return {'used': 100 * sum(rates) * OVERHEAD / WIDE, 'share': 100 * min(rates) / max(1, max(rates)),
            'queue': percentile(waits(watch, WIDE, end - BOTH + 5, end), 0.95), **quality(seen)}, watch


@contextlib.contextmanager
def tcp(rig):
    """Yields a TCP flow over the line."""
    where = rig.server_address, TCP_PORT
    with Lines(rig.server, HERE / 'line_tcp.py', 'serve', *where):
        time.sleep(0.5)
        with Lines(rig.readers, HERE / 'line_tcp.py', 'read', *where) as flow:
            yield flow


def beside(rig, program, keys, quick):
    with serving(rig, keys, WIDE) as (_, watch):
        with Pion(rig, program, 1) as pion:
            watch.pions.append(pion)
            time.sleep(BEFORE)
            with tcp(rig) as flow:
                time.sleep(TCP_SETTLE + TCP_BESIDE)
                end = time.time()
                both, seen = flow.samples(), pion.samples()
        with tcp(rig):
            time.sleep(TCP_ALONE)
            alone = time.time()
    start = end - TCP_BESIDE
    mine, its = (rate_of(between(samples, start, end), 'bytes') for samples in (seen, both))
    return {'used': 100 * (mine + its) * OVERHEAD / WIDE, 'line': 100 * mine * OVERHEAD / WIDE,
            'queue': percentile(waits(watch, WIDE, start, end), 0.95),
            'alone': percentile(waits(watch, WIDE, alone - TCP_ALONE + 5, alone), 0.95),
            **quality(between(seen, start, end))}, watch


CASES = {
    '5 Mb/s cut to 0.6 Mb/s, 1 reader': ('cut', cut),
    '2 % lost on a wide line, 1 reader': ('loss', loss),
    '60 % of the full rate, many readers': ('crowd', crowd),
    '5 Mb/s, 2 readers, one 30 s later': ('two', two),
    '5 Mb/s, 1 reader beside a TCP flow': ('tcp', beside),
}


# ---- pictures ----


def mean_of(samples, width):
    """Yields (at, bit/s) of the bytes received, over `width` samples."""
    for first, last in zip(samples, samples[width:]):
        yield last['at'], rate_of([first, last], 'bytes')


def curves(watch, end):
    """Yields the panel, the title and the points of each curve."""
    rates = [*watch.rates, (end, watch.rates[-1][1])]
    steps = [point for (at, rate), (then, _) in zip(rates, rates[1:]) for point in ((at, rate), (then, rate))]
    yield 'Mb/s', 'line', [(at, rate / 1e6) for at, rate in steps]
    for number, samples in enumerate(watch.seen(), 1):
        yield 'Mb/s', f'received {number}', [(at, rate / 1e6) for at, rate in mean_of(samples, 5)]
    served = watch.readers.samples()
    for number in range(min(2, max((len(each['layer']) for each in served), default=0))):
        mine = [each for each in served if len(each['layer']) > number]
        yield 'Mb/s', f'estimate {number + 1}', [(each['at'], each['estimate'][number] / 1e6) for each in mine
                                                 if each['estimate'][number]]
        yield 'layer', f'layer {number + 1}', [(each['at'], each['layer'][number] + 0.03 * number) for each in mine]

    def rate_at(at):
        return [rate for since, rate in watch.rates if since <= at][-1:] or [watch.rates[0][1]]
    yield 'queue, ms', 'queue', [(each['at'], 8e3 * each['waiting'] / rate_at(each['at'])[0])
                                 for each in watch.queue.samples()]


def draw(path, title, watch):
    """Draws rate, estimate, queue and layer over time. Does nothing without gnuplot."""
    if not shutil.which('gnuplot'):
        return
    end = watch.queue.samples()[-1]['at']
    begin = watch.rates[0][0]
    panels = {}
    for panel, name, points in curves(watch, end):
        if points:
            panels.setdefault(panel, []).append((name, points))
    script = ['set terminal pngcairo size 960,840 font "sans,11"', f'set output "{path}"',
              f'set multiplot layout {len(panels)},1 title "{title}" noenhanced', f'set xrange [0:{end - begin:.0f}]',
              'set yrange [0:*]; set grid; set key outside right top']
    for panel, drawn in panels.items():
        plots = ', '.join(f"'-' with lines lw 2 title '{name}'" for name, _ in drawn)
        script += [f'set ylabel "{panel}"', f'plot {plots}']
        for _, points in drawn:
            script += [f'{at - begin:.2f} {value:.4f}' for at, value in points] + ['e']
    subprocess.run(['gnuplot'], input='\n'.join([*script, 'unset multiplot', '']), text=True, check=True)


def run(rig, quick):
    if not rig.real:
        raise Skip('a narrow line needs the rig')
    with tempfile.TemporaryDirectory() as folder:
        program = go_program('webrtc', folder)
        for case, (name, measured) in CASES.items():
            for policy, keys in POLICIES.items():
                row, watch = measured(rig, program, keys, quick)
                draw(CACHE / f'line-{name}-{policy}.png', f'{case}, {policy}', watch)
                yield case, policy, row
