# SPDX-License-Identifier: LGPL-2.1-or-later
"""Viewers who help an origin, with real sessions: the experiments of swarm_parts.py, scaled in time,
number and rate, over loopback."""

import concurrent.futures
import contextlib
import json
import math
import os
import queue
import random
import shutil
import subprocess
import tempfile
import threading
import time
from typing import NamedTuple

from report import Column
from servers import BUILD, PLUGINS
from swarm_parts import (MINUTE, PICKERS, Leaving as SimulatedLeaving, Upload as SimulatedUpload,
                         simulate)
from tap import Skip

# The messages of BitTorrent take their time however short a title is: peers send blocks of 16 KiB,
# several at a time. So a title has hundreds of blocks, and its rate is low for the sake of the CPU.
RATE = 500_000           # of the title, bits a second
HOUR = 60                # minutes of the paper's title
BUSY = 0.35              # of the CPUs, at most: with more, viewers wake late
LATE = 20                # ms: so late may 1 of 100 viewers wake; a busy machine makes others late
FIRST_PORT = 21000
TOLERANCE = 0.06         # of the bound by upload: libtorrent's limit holds on average only


class Scale(NamedTuple):
    """A run. `gap` is the time between arrivals in lengths of the title, `cores` what the run
    takes."""
    length: float  # of the title, in s
    viewers: int
    gap: float
    cores: float
    rate: int = RATE

    def at_once(self):
        """Returns how many runs the CPUs bear."""
        return max(1, int(BUSY * os.cpu_count() / self.cores))


SCALES = Scale(60, 20, 1 / 10, 0.05), Scale(120, 60, 1 / 20, 0.1)  # with --quick, and without
LONG_SCALE = Scale(300, 150, 1 / 50, 0.35)
HOUR_SCALES = Scale(60, 300, 1 / 100, 0.35), Scale(3600, 300, 1 / 100, 0.35, 100_000)


class Case(NamedTuple):
    """What viewers of a run do. `delays` are one way in ms, of the viewers in turn."""
    picker: str
    upload: float = 1.0
    leave: str = 'stream'
    arrivals: str = 'uniform'
    minutes: int = 15  # in order
    storage: str = '100%'
    choking: str = 'tit-for-tat'
    delays: str = ''
    source: float = 0  # upload of a seed beside the origin, in rates of the title


class Origin:
    """nginx with the files of a folder of its own."""

    def __init__(self, port=FIRST_PORT - 1):
        self._nginx = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin')
        if not self._nginx:
            raise Skip('nginx is not installed')
        self._server = None
        self._files = tempfile.TemporaryDirectory(prefix='swarm-')
        self.folder = self._files.name
        self.url = f'http://127.0.0.1:{port}/'
        os.chmod(self.folder, 0o755)
        temporary = '\n'.join(f'{name}_temp_path {self.folder}/{name};'
                              for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        with open(self.file('nginx.conf'), 'w', encoding='utf-8') as config:
            config.write(f'''daemon off; master_process off; pid {self.folder}/pid;
                error_log stderr; events {{ worker_connections 4096; }}
                http {{ access_log off; {temporary}
                server {{ listen 127.0.0.1:{port}; root {self.folder}; }} }}''')

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._files.cleanup()

    def file(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        self._server = subprocess.Popen([self._nginx, '-e', 'stderr', '-c', self.file('nginx.conf')])

    def stop(self):
        self._server.terminate()
        self._server.wait()


class Title:
    """A title of random bytes, its torrent and its origin, for one part."""

    def __init__(self, origin, scale):
        self.origin = origin
        self.length = scale.length
        self.viewers = scale.viewers
        self.rate = scale.rate
        self.gap = scale.gap * scale.length
        self.file = origin.file('title')
        self.torrent = origin.file('title.torrent')
        self.slots = queue.SimpleQueue()  # of ports, one for each run at a time
        for slot in range(scale.at_once()):
            self.slots.put(slot)
        with open(self.file, 'wb') as file:
            file.write(random.Random(21).randbytes(self.length * self.rate // 8))
        subprocess.run([BUILD / 'apps/weir-store/weir-store', 'torrent', self.file, '-o',
                        self.torrent], check=True, capture_output=True)

    def simulate(self, case):
        """Returns what the simulation saves with as many viewers and gaps."""
        return simulate(
            case.picker, case.upload, case.leave, case.arrivals, self.viewers,
            self.gap / self.length * HOUR * MINUTE, case.minutes * MINUTE,
            case.minutes * MINUTE / 3 * 2, float(case.storage.rstrip('%')) / 100,
            'blind' if case.choking == 'rate-blind' else case.choking, quick=True)['saved']

    def run(self, case):
        """Returns the figures of a run."""
        slot = self.slots.get()
        try:
            return self.judge(self.view(case, slot), case)
        finally:
            self.slots.put(slot)

    def view(self, case, slot, outage=(0, 0)):
        """Runs the viewers with an `outage` of the origin: when and how long, in s. Returns their
        sums."""
        ports = 2 * self.viewers + 2  # of the viewers, of the relays before them and the origin, and a seed
        values = {**case._asdict(), 'torrent': self.torrent, 'file': self.file,
                  'origin': self.origin.url + 'title', 'rate': self.rate,
                  'port': FIRST_PORT + slot * ports, 'viewers': self.viewers, 'gap': self.gap,
                  'window': self.length * case.minutes / HOUR, 'unchoke': 1, 'seed': 1,
                  'outage': outage[0], 'outage_s': outage[1]}
        begun = time.monotonic()
        words = [BUILD / 'tests/bench/swarm_viewers',
                 *(f'{name}={value}' for name, value in values.items())]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **PLUGINS}) as process:
            limit = threading.Timer(self.viewers * self.gap * 2 + self.length * 4 + 60, process.kill)
            limit.start()
            try:
                answer = ''
                for answer in process.stdout:
                    if answer in ('down\n', 'up\n'):
                        (self.origin.stop if answer == 'down\n' else self.origin.start)()
                        process.stdin.write('\n')
                        process.stdin.flush()
            finally:
                limit.cancel()
        assert process.returncode == 0, f'the viewers end with {process.returncode}: {case}'
        sums = json.loads(answer)
        return {**sums, 'cores': sums['cpu_s'] / (time.monotonic() - begun)}

    def judge(self, sums, case):
        """Fails on figures that cannot be."""
        whole = self.viewers * sums['size']
        came = sums['peer'] + sums['origin']
        assert sums['failed'] == 0 and sums['read'] == whole, \
            f'a viewer has not read all, or has no port: {sums}'
        assert sums['wrong'] == 0, f'pieces did not hash: {sums}'
        assert came - sums['duplicate'] >= whole * 0.98, f'more was read than came: {sums}'
        # A seed is of the origin's side.
        served = sums['origin'] + sums['seed_sent'] + sums['seed_read']
        assert served >= sums['size'], f'nobody had fetched the title: {sums}'
        assert sums['late_wakes_ms'] <= LATE, f'the machine was too busy: {sums}'
        saved = 1 - served / whole
        assert case.leave == 'seed' or saved <= min(1, case.upload) + TOLERANCE, \
            f'peers sent more than their upload: {sums}'
        return {'saved': 100 * saved, 'twice': 100 * sums['duplicate'] / came,
                'stalls': sums['stalls'] / self.viewers, 'start': 1000 * sums['start_up_s'],
                'slowest': 1000 * sums['start_up_most_s'], 'traffic': 100 * came / whole,
                'cores': sums['cores'], 'wakes': sums['late_wakes_ms'],
                'seed': 100 * sums['seed_sent'] / whole, 'direct': 100 * sums['origin'] / whole}


class Part:
    WHO, YARDSTICK, LOG = 'picker', None, False
    COLUMNS = (Column('saved', '% saved', '{:.1f}'),
               Column('simulated', 'simulated: % saved', '{:.1f}'),
               Column('twice', '% sent twice', '{:.1f}'), Column('traffic', '% traffic', '{:.0f}'),
               Column('stalls', 'stalls a viewer', '{:.2f}'), Column('start', 'start-up ms'),
               Column('slowest', 'slowest'), Column('cores', 'cores', '{:.2f}'),
               Column('wakes', 'wakes late by ms'))
    PAPER = {}
    SCALES = SCALES
    figures = {}  # of all parts, by scale and case

    @classmethod
    def run(cls, _rig, quick):
        cases = list(cls.cases(quick))
        scale = cls.SCALES[not quick]
        refused = []
        with Origin() as origin, concurrent.futures.ThreadPoolExecutor(scale.at_once()) as pool:
            title = Title(origin, scale)
            simulated = dict(zip(cases, pool.map(title.simulate, (case for _, case in cases))))
            for _, case in cases:
                if (scale, case) not in cls.figures:
                    cls.figures[scale, case] = pool.submit(title.run, case)
            for name, case in cases:
                try:
                    yield name, case.picker, {**cls.figures[scale, case].result(),
                                              'simulated': simulated[name, case]}
                except AssertionError as why:
                    refused.append(f'{name}, {case.picker}: {why}')
        for key, saved in cls.PAPER.items():
            if (name := cls.name(*key[:-1])) in dict(cases):
                yield name, f'paper: {key[-1]}', {'saved': saved}
        assert not refused, '\n'.join(refused)


class Upload(Part):
    NAME = 'sessions-upload'
    TITLE = 'What real viewers save the origin, who leave after the end (figure 5.3 of the paper)'
    CASE = 'upload / bit rate'
    PAPER = SimulatedUpload.PAPER

    @staticmethod
    def name(upload):
        return f'{upload}'

    @classmethod
    def cases(cls, quick):
        for upload in (1.0, 0.5) if quick else (1.0, 0.75, 0.5):
            for picker in PICKERS:
                yield cls.name(upload), Case(picker, upload)


class Window(Part):
    NAME = 'sessions-window'
    TITLE = 'The window in order, upload as the bit rate (figure 5.4)'
    CASE = 'minutes of an hour'

    @staticmethod
    def cases(quick):
        for minutes in (2, 5, 9, 12, 15, 20):
            for picker in ('hybrid',) if quick else ('hybrid', 'adaptive'):
                yield f'{minutes}', Case(picker, minutes=minutes)


class Leaving(Part):
    NAME = 'sessions-leaving'
    TITLE = 'When viewers leave (figures 5.5 and 5.6; with the traffic, 5.10 and 5.11)'
    CASE = 'upload / bit rate, leaving'
    PAPER = {**{(upload, 'stream', picker): saved
                for (upload, picker), saved in SimulatedUpload.PAPER.items()}, **SimulatedLeaving.PAPER}
    PICTURES = 'traffic',

    @staticmethod
    def name(upload, leave):
        return f'{upload}, {leave}'

    @classmethod
    def cases(cls, quick):
        for upload in 1.0, 0.5:
            for leave in ('stream', 'seed') if quick else ('download', 'stream', 'seed'):
                for picker in PICKERS:
                    yield cls.name(upload, leave), Case(picker, upload, leave)


class Others(Part):
    NAME = 'sessions-others'
    TITLE = 'Arrivals, choking and storage, upload as the bit rate (figures 5.7 and 5.8)'
    CASE = 'case'

    @staticmethod
    def cases(quick):
        for picker in ('hybrid', 'adaptive') if quick else ('rarest', 'hybrid', 'adaptive'):
            yield 'uniform', Case(picker)
            for arrivals in 'poisson', 'together':
                yield arrivals, Case(picker, arrivals=arrivals)
            yield 'rate-blind', Case(picker, choking='rate-blind')
            for storage in ('25%', '50%') if quick else ('25%', '50%', '75%'):
                yield f'storage {storage}', Case(picker, storage=storage)


class Latency(Part):
    NAME = 'sessions-latency'
    TITLE = 'One-way delays, by relays; nobody leaves (figure 5.9)'
    CASE = 'upload / bit rate, delay'
    # Mixed: as the machines of the paper.
    DELAYS = {'none': '0', '4 ms': '4', '10 ms': '10', 'mixed': '0,0,0,4,4,5,5,5,5,5'}

    @classmethod
    def cases(cls, quick):
        for upload in 1.0, 0.5:
            for name, delays in cls.DELAYS.items():
                for picker in ('adaptive',) if quick else ('hybrid', 'adaptive'):
                    yield f'{upload}, {name}', Case(picker, upload, 'seed', delays=delays)


class Long(Leaving):
    NAME = 'sessions-long'
    TITLE = '150 viewers of a longer title (of figures 5.3, 5.5 and 5.6)'
    SCALES = LONG_SCALE, LONG_SCALE

    @classmethod
    def cases(cls, quick):
        for upload in 1.0, 0.5:
            for leave in 'stream', 'seed':
                yield cls.name(upload, leave), Case('adaptive', upload, leave)


class Hour(Leaving):
    NAME = 'sessions-hour'
    TITLE = '300 viewers of a title of an hour, one each 36 s (of figure 5.3)'
    SCALES = HOUR_SCALES

    @classmethod
    def cases(cls, quick):
        for upload in (1.0,) if quick else (1.0, 0.5):
            yield cls.name(upload, 'stream'), Case('hybrid', upload)


class Outage:
    NAME = 'sessions-outage'
    TITLE = 'The origin is down for half a title, upload twice the bit rate'
    CASE, WHO, YARDSTICK, LOG = 'leaving', 'held ahead', None, False
    COLUMNS = (Column('stalled', 'who stalled', '{:.0f}'), Column('viewers', 'viewers', '{:.0f}'),
               Column('time', 's stalled a viewer', '{:.1f}'))

    @classmethod
    def run(cls, _rig, quick):
        ways = 'stream', 'seed'
        with contextlib.ExitStack() as stack, \
                concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
            titles = [Title(stack.enter_context(Origin(FIRST_PORT - 1 - n)), SCALES[not quick])
                      for n, _ in enumerate(ways)]
            runs = [pool.submit(cls.cut, title, Case('hybrid', 2.0, leave), slot)
                    for slot, (leave, title) in enumerate(zip(ways, titles))]
            for leave, run in zip(ways, runs):
                for who, values in run.result():
                    yield leave, who, values

    @staticmethod
    def cut(title, case, slot):
        """Stops the origin when two thirds of the viewers have come. Returns what those met who held
        so much."""
        down = title.length / 2
        sums = title.view(case, slot, (title.viewers * title.gap * 2 / 3, down))
        title.judge(sums, case)
        met = []
        for who, least, most in ((f'{down:.0f} s and more', down, math.inf),
                                 (f'{down / 2:.0f} to {down:.0f} s', down / 2, down),
                                 (f'less than {down / 2:.0f} s', 0, down / 2), ('not there then', -1, 0)):
            times = [stalled for ahead, _, stalled in sums['outage'] if least <= ahead < most]
            if times:
                met.append((who, {'viewers': len(times), 'stalled': sum(map(bool, times)),
                                  'time': sum(times) / len(times)}))
        return met


NAME = 'swarm_sessions'
PARTS = Upload, Window, Leaving, Others, Latency, Outage, Long, Hour
