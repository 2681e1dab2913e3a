# SPDX-License-Identifier: LGPL-2.1-or-later
"""How soon viewers of a swarm have a title's first bytes from the origin: rtsp-proxy, beside nginx. A
piece lasts 5 s, as one of a film of two hours does."""

import contextlib
import json
import os
import subprocess
import tempfile

from progressive import PORT, proxy, wait_for_port, write_film
from report import Column
from servers import BUILD, PLUGINS
from swarm_sessions import FIRST_PORT, Origin

NAME = 'swarm_origin'
TITLE = 'Start-up of viewers of a swarm who get a title from its origin, in pieces of 5 s'
CASE, WHO, YARDSTICK = 'viewers who come together', 'origin', 'nginx'
LOG = False
COLUMNS = (Column('start', 'start-up ms', '{:.1f}', spread=True), Column('slowest', 'slowest', '{:.1f}'),
           Column('stalls', 'stalls a viewer', '{:.2f}'))

RATE, SECONDS, PIECE = 1677722, 6, '1M'  # bits/s, of the title; a piece lasts 5 s
VIEWERS = 1, 10
RUNS = 10
VIEW = {'rate': RATE, 'gap': 0.1, 'arrivals': 'together', 'upload': 1, 'picker': 'hybrid', 'window': 60,
        'leave': 'stream', 'storage': '100%', 'choking': 'tit-for-tat', 'unchoke': 1, 'seed': 1,
        'outage': 0, 'outage_s': 0, 'delays': '', 'source': 0, 'port': FIRST_PORT}


def view(viewers, path, torrent, origin):
    values = {**VIEW, 'viewers': viewers, 'torrent': torrent, 'file': path, 'origin': origin}
    words = [BUILD / 'tests/bench/swarm_viewers', *(f'{name}={value}' for name, value in values.items())]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=120,
                          env={**os.environ, **PLUGINS})
    sums = json.loads(done.stdout.splitlines()[-1])
    assert sums['failed'] == 0 and sums['read'] == viewers * sums['size'], sums
    return {'start': 1000 * sums['start_up_s'], 'slowest': 1000 * sums['start_up_most_s'],
            'stalls': sums['stalls'] / viewers}


def run(_rig, quick):
    with Origin() as nginx, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.mkdir(nginx.file('films'))
        os.symlink(nginx.file('films'), os.path.join(folder, 'films'))
        path, torrent = nginx.file('films/0.mp4'), nginx.file('0.torrent')
        write_film(path, SECONDS, RATE)
        subprocess.run([BUILD / 'apps/weir-store/weir-store', 'torrent', path, '-o', torrent, '--piece', PIECE],
                       check=True, capture_output=True)
        wait_for_port(stack.enter_context(proxy(folder)))
        for _ in range(RUNS if quick else 3 * RUNS):
            for viewers in VIEWERS:
                for name, url in (('nginx', nginx.url),
                                  ('rtsp-proxy', f'http://127.0.0.1:{PORT}/')):
                    yield str(viewers), name, view(viewers, path, torrent, f'{url}films/0.mp4')
