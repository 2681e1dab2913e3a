# SPDX-License-Identifier: LGPL-2.1-or-later
"""Viewers of a title of a block store, with and without a seed beside the origin, which all tests of the
paper had. The seed is a swarmsrc that has read the title from the store, and that never leaves."""

import concurrent.futures
import os
import shutil
import tempfile

from progressive import PORT, make_store, wait_for_port
from report import Column
from servers import start_proxy
from swarm_sessions import RATE, SCALES, Case, Scale, Title

NAME = 'sessions-seed'
TITLE = 'What viewers of a title of a block store save, with a seed that serves it'
CASE, WHO, YARDSTICK, LOG = 'upload / bit rate', 'upload of the seed / bit rate', None, False
COLUMNS = (Column('saved', '% saved', '{:.1f}'), Column('direct', '% from the origin', '{:.1f}'),
           Column('seed', '% from the seed', '{:.1f}'), Column('stalls', 'stalls a viewer', '{:.2f}'),
           Column('start', 'start-up ms'), Column('wakes', 'wakes late by ms'))
UPLOADS, SOURCES = (1.0, 0.5), (0, 1, 4)
QUICK_SCALE = Scale(30, 20, 1 / 10, 0.1)


class StoreOrigin:
    """rtsp-proxy with a block store, which has the file `title` when it starts."""

    url = f'http://127.0.0.1:{PORT}/films/'

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='swarm-')
        os.mkdir(os.path.join(self.folder, 'films'))
        self._proxy = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._proxy:
            self._proxy.stop()
        shutil.rmtree(self.folder)

    def file(self, name):
        return os.path.join(self.folder, 'films' if name == 'title' else '', name)

    def start(self):
        store = make_store(self.folder, RATE)
        self._proxy = start_proxy(self.folder, {
            'listen': '127.0.0.1:0', 'http': {'listen': f'127.0.0.1:{PORT}'},
            'mounts': {'/films': {'upstream': f'store://{store}/'}}})
        wait_for_port(self._proxy)


def run(_rig, quick):
    scale = QUICK_SCALE if quick else SCALES[1]
    cases = [Case('hybrid', upload, source=source) for upload in (UPLOADS[:1] if quick else UPLOADS)
             for source in (SOURCES[:2] if quick else SOURCES)]
    with StoreOrigin() as origin, concurrent.futures.ThreadPoolExecutor(scale.at_once()) as pool:
        title = Title(origin, scale)
        origin.start()
        for case, values in zip(cases, pool.map(title.run, cases)):
            yield f'{case.upload}', f'{case.source}', values
