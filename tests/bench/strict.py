# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the bytes that come too late for players over HTTP that forgive nothing (strict_readers.py)."""

import contextlib
import os
import pathlib
import re
import sys
import tempfile
import urllib.request

from proc import Proc
from progressive import PORT, make_store, wait_for_port, write_film
from report import Column
from servers import start_proxy

NAME = 'strict'
TITLE = 'Players over HTTP that never wait for a byte: what comes too late'
CASE, WHO, YARDSTICK = 'titles of', 'server', None
COLUMNS = (
    Column('late', 'late bytes'),
    Column('least', 'least left to play, s', '{:.3f}'),
    Column('starvations', 'late slices, by the proxy'),
    Column('seconds', 'seconds'),
    Column('readers', 'readers'),
)

READERS, RATE, TITLES = 60, 1500000, 3
STORE_SLICE, FILE_SLICE = 2, 5  # s
STORE_SECONDS, FILE_SECONDS, QUICK_SECONDS = 600, 60, 20
READER = pathlib.Path(__file__).with_name('strict_readers.py')


def starvations(port):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=20) as answer:
        text = answer.read().decode()
    return sum(map(int, re.findall(r'^weir_http_starvations_total\{.*\} (\d+)$', text, re.M)))


def one(is_store, slice_s, seconds):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        films = os.path.join(folder, 'films')
        os.mkdir(films)
        for n in range(TITLES):
            write_film(os.path.join(films, f'{n}.mp4'), seconds + 4 * slice_s, RATE)
        where = f'file://{films}/'
        if is_store:
            where = f'store://{make_store(folder, RATE, "--slice", f"{slice_s}s")}/'
        server = stack.enter_context(start_proxy(folder, {
            'listen': '127.0.0.1:0', 'http': {'listen': f'127.0.0.1:{PORT}'}, 'api': f'127.0.0.1:{PORT + 1}',
            'mounts': {'/films': {'upstream': where}}}))
        wait_for_port(server)
        paths = ','.join(f'/films/{n}.mp4' for n in range(TITLES))
        players = stack.enter_context(Proc(
            sys.executable, READER, '127.0.0.1', PORT, paths, READERS, RATE, slice_s, slice_s, seconds))
        refused = int(players.wait_for_line(r'^REFUSED (\d+)', timeout=seconds + slice_s + 60)[1])
        assert refused == 0, f'{refused} players were refused'
        late = int(players.wait_for_line(r'^LATE (\d+)')[1])
        least = float(players.wait_for_line(r'^LEAST (\S+)')[1])
        return {'late': late, 'least': least, 'starvations': starvations(PORT + 1), 'seconds': seconds,
                'readers': READERS}


def run(_rig, quick):
    yield (f'block store, slices of {STORE_SLICE} s', 'rtsp-proxy',
           one(True, STORE_SLICE, QUICK_SECONDS if quick else STORE_SECONDS))
    yield (f'files, slices of {FILE_SLICE} s', 'rtsp-proxy',
           one(False, FILE_SLICE, QUICK_SECONDS if quick else FILE_SECONDS))
