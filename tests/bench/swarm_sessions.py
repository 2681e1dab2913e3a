# SPDX-License-Identifier: LGPL-2.1-or-later
"""Viewers who help an origin, with real sessions: the experiments of swarm_parts.py, scaled in time,
number and rate, over loopback."""

import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import subprocess
import tempfile

from report import Column
from servers import BUILD
from swarm_parts import (MINUTE, PICKERS, Leaving as SimulatedLeaving, Upload as SimulatedUpload,
                         simulate)
from tap import Skip

# The messages of BitTorrent take their time however short a title is: peers send blocks of 16 KiB,
# several at a time. So a title has hundreds of blocks, and its rate is low for the sake of the CPU.
RATE = 500_000           # of the title, bits a second
LENGTH = 60, 120         # s of the title: with --quick, and without
VIEWERS = 20, 60
GAP = 1 / 10, 1 / 20     # between arrivals, in lengths of the title
HOUR = 60                # minutes of the paper's title
AT_ONCE = 10, 4          # runs
PORTS = 64               # of a run
TOLERANCE = 0.06         # of the bound by upload: libtorrent's limit holds on average only


@contextlib.contextmanager
def origin(folder):
    """nginx with the files of a folder. Gives its URL."""
    path = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin')
    if not path:
        raise Skip('nginx is not installed')
    os.chmod(folder, 0o755)
    config, port = os.path.join(folder, 'nginx.conf'), 20999
    temporary = '\n'.join(f'{name}_temp_path {folder}/{name};'
                          for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
    with open(config, 'w', encoding='utf-8') as file:
        file.write(f'''daemon off; master_process off; pid {folder}/pid; error_log stderr;
            events {{ worker_connections 4096; }} http {{ access_log off; {temporary}
            server {{ listen 127.0.0.1:{port}; root {folder}; }} }}''')
    with subprocess.Popen([path, '-e', 'stderr', '-c', config]) as server:
        try:
            yield f'http://127.0.0.1:{port}/'
        finally:
            server.terminate()


class Title:
    """A title of random bytes, its torrent and its origin, for one part."""

    def __init__(self, folder, url, quick):
        self.quick = quick
        self.length = LENGTH[not quick]
        self.viewers = VIEWERS[not quick]
        self.gap = GAP[not quick] * self.length
        self.url = url + 'title'
        self.file = os.path.join(folder, 'title')
        self.torrent = os.path.join(folder, 'title.torrent')
        with open(self.file, 'wb') as file:
            file.write(random.Random(21).randbytes(self.length * RATE // 8))
        subprocess.run([BUILD / 'apps/weir-store/weir-store', 'torrent', self.file, '-o',
                        self.torrent], check=True, capture_output=True)

    def run(self, number, picker='hybrid', upload=1.0, leave='stream', arrivals='uniform',
            minutes=15, storage='100%', choking='tit-for-tat'):
        """Returns the figures of a run."""
        values = {'torrent': self.torrent, 'file': self.file, 'origin': self.url, 'rate': RATE,
                  'port': 21000 + number * PORTS, 'viewers': self.viewers, 'gap': self.gap,
                  'arrivals': arrivals, 'upload': upload, 'picker': picker, 'leave': leave,
                  'window': self.length * minutes / HOUR, 'storage': storage, 'choking': choking,
                  'unchoke': 1, 'seed': 1}
        done = subprocess.run([BUILD / 'tests/bench/swarm_viewers',
                               *(f'{name}={value}' for name, value in values.items())],
                              capture_output=True, text=True, check=False,
                              timeout=self.viewers * self.gap * 2 + self.length * 4 + 60)
        assert done.returncode == 0, done.stderr
        simulated = simulate(
            picker, upload, leave, arrivals, self.viewers, self.gap / self.length * HOUR * MINUTE,
            minutes * MINUTE, minutes * MINUTE / 3 * 2, float(storage.rstrip('%')) / 100,
            'blind' if choking == 'rate-blind' else choking, self.quick)
        return {**self.judge(json.loads(done.stdout), upload, leave),
                'simulated': simulated['saved']}

    def judge(self, sums, upload, leave):
        """Fails on figures that cannot be."""
        whole = self.viewers * sums['size']
        came = sums['peer'] + sums['origin']
        assert sums['failed'] == 0 and sums['read'] == whole, f'not all was read: {sums}'
        assert sums['wrong'] == 0, f'pieces did not hash: {sums}'
        assert came - sums['duplicate'] >= whole * 0.98, f'more was read than came: {sums}'
        assert sums['origin'] >= sums['size'], f'nobody had fetched the title: {sums}'
        saved = 1 - sums['origin'] / whole
        assert leave == 'seed' or saved <= min(1, upload) + TOLERANCE, \
            f'peers sent more than their upload: {sums}'
        return {'saved': 100 * saved, 'twice': 100 * sums['duplicate'] / came,
                'stalls': sums['stalls'] / self.viewers, 'start': 1000 * sums['start_up_s'],
                'slowest': 1000 * sums['start_up_most_s'], 'traffic': 100 * came / whole,
                'cpu': sums['cpu_s']}


class Part:
    WHO, YARDSTICK, LOG = 'picker', None, False
    COLUMNS = (Column('saved', '% saved', '{:.1f}'),
               Column('simulated', 'simulated: % saved', '{:.1f}'),
               Column('paper', 'paper: % saved', '{:.0f}'),
               Column('twice', '% sent twice', '{:.1f}'), Column('traffic', '% traffic', '{:.0f}'),
               Column('stalls', 'stalls a viewer', '{:.2f}'), Column('start', 'start-up ms'),
               Column('slowest', 'slowest'), Column('cpu', 's of CPU'))
    PAPER = {}

    @classmethod
    def run(cls, _rig, quick):
        cases = list(cls.cases(quick))
        with tempfile.TemporaryDirectory(prefix='swarm-') as folder, origin(folder) as url, \
                concurrent.futures.ThreadPoolExecutor(AT_ONCE[not quick]) as pool:
            title = Title(folder, url, quick)
            runs = [pool.submit(title.run, i, picker, **settings)
                    for i, (_, picker, settings, _) in enumerate(cases)]
            for (case, picker, _, key), done in zip(cases, runs):
                yield case, picker, {**done.result(), 'paper': cls.PAPER.get(key)}


class Upload(Part):
    NAME = 'sessions-upload'
    TITLE = 'What real viewers save the origin, who leave after the end (figure 5.3 of the paper)'
    CASE = 'upload / bit rate'
    PAPER = SimulatedUpload.PAPER

    @staticmethod
    def cases(quick):
        for upload in (1.0, 0.5) if quick else (1.0, 0.75, 0.5):
            for picker in PICKERS:
                yield f'{upload}', picker, {'upload': upload}, (upload, picker)


class Window(Part):
    NAME = 'sessions-window'
    TITLE = 'The window in order, upload as the bit rate (figure 5.4)'
    CASE = 'minutes of an hour'

    @staticmethod
    def cases(quick):
        for minutes in (2, 5, 9, 12, 15, 20):
            for picker in ('hybrid',) if quick else ('hybrid', 'adaptive'):
                yield f'{minutes}', picker, {'minutes': minutes}, None


class Leaving(Part):
    NAME = 'sessions-leaving'
    TITLE = 'When viewers leave (figures 5.5 and 5.6)'
    CASE = 'upload / bit rate, leaving'
    PAPER = SimulatedLeaving.PAPER

    @staticmethod
    def cases(quick):
        for upload in 1.0, 0.5:
            for leave in ('download', 'seed') if quick else ('download', 'stream', 'seed'):
                for picker in ('hybrid', 'adaptive') if quick else PICKERS:
                    yield f'{upload}, {leave}', picker, {'upload': upload, 'leave': leave}, (
                        upload, leave, picker)


class Others(Part):
    NAME = 'sessions-others'
    TITLE = 'Arrivals, choking and storage, upload as the bit rate (figures 5.7 and 5.8)'
    CASE = 'case'

    @staticmethod
    def cases(quick):
        for picker in ('hybrid', 'adaptive') if quick else PICKERS:
            for arrivals in 'poisson', 'together':
                yield arrivals, picker, {'arrivals': arrivals}, None
            yield 'rate-blind', picker, {'choking': 'rate-blind'}, None
            for storage in ('25%', '50%') if quick else ('25%', '50%', '75%'):
                yield f'storage {storage}', picker, {'storage': storage}, None


NAME = 'swarm_sessions'
PARTS = Upload, Window, Leaving, Others
