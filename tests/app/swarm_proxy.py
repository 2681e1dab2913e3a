# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy of a folder of torrents, their files, and a tracker."""

import hashlib
import os
import shutil
import tempfile
import time
from functools import lru_cache

from blockstores import call
from films import ffmpeg
from openapi import Contract
from proc import Rtsp, free_port, thread_names
from proxy import CLIP
from rangeserver import bencode
from stockpeers import Tracker, describe
from title_proxy import TitleProxy

CONTRACT = Contract()


@lru_cache
def cut():
    directory = tempfile.TemporaryDirectory()
    ffmpeg('-i', CLIP, '-t', '1', '-c', 'copy', os.path.join(directory.name, 'short.mp4'))
    return directory


def short():
    """Returns the path of a title of a second, as titles are sent at their own rate."""
    return os.path.join(cut().name, 'short.mp4')


def short_bytes():
    with open(short(), 'rb') as file:
        return file.read()


def fill(folder):
    os.makedirs(os.path.join(folder, 'sub'))
    shutil.copy(CLIP, os.path.join(folder, 'a.mp4'))
    shutil.copy(short(), folder)
    shutil.copy(short(), os.path.join(folder, 'sub', 'b c.mp4'))


FILES = 'notes.txt', 'one.mp4', 'more/two films.mp4'


def fill_set(folder):
    """Fills a folder with that of a torrent of several files."""
    os.makedirs(os.path.join(folder, 'set', 'more'))
    with open(os.path.join(folder, 'set', FILES[0]), 'w', encoding='utf-8') as file:
        file.write('notes\n' * 1000)
    shutil.copy(short(), os.path.join(folder, 'set', FILES[1]))
    shutil.copy(CLIP, os.path.join(folder, 'set', FILES[2]))


def several(path, url, files=FILES):
    """Writes a torrent of several files, whose folder is at `url`."""
    with tempfile.TemporaryDirectory() as folder:
        fill_set(folder)
        bodies = []
        for name in FILES:
            with open(os.path.join(folder, 'set', name), 'rb') as file:
                bodies.append(file.read())
    data = b''.join(bodies)
    pieces = (hashlib.sha1(data[i:i + 16384]).digest() for i in range(0, len(data), 16384))
    info = {'name': 'set', 'piece length': 16384, 'pieces': b''.join(pieces),
            'files': [{'length': len(body), 'path': name.split('/')}
                      for name, body in zip(files, bodies)]}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(bencode({'info': info, 'url-list': url}))


class Swarm(TitleProxy):
    """A proxy of a folder of torrents, whose files `files` has."""

    def __init__(self, torrents, others=None, top=None, **swarm):
        self.peer_port = free_port()
        super().__init__({'upstream': f'swarm://{torrents}/', 'swarm': {
            'listen': f'127.0.0.1:{self.peer_port}', **swarm}}, others, **(top or {}))

    def describe(self, path):
        with Rtsp(self.port) as rtsp:
            return rtsp.request('DESCRIBE', self.url(path))[0]

    def figures(self, title='a.mp4'):
        """Returns the figures of a title, whose answer agrees with the contract."""
        answer = self.http('GET', '/v1/mounts/films')
        CONTRACT.check('GET', '/v1/mounts/films', answer)
        return {each['title']: each for each in answer[2]['swarm']}.get(title)

    def worker(self, other_than=None):
        """Returns the process that takes part in swarms, and is not the one named."""
        found = []

        def is_there():
            with open(f'/proc/{self.pid}/task/{self.pid}/children', encoding='ascii') as file:
                pids = map(int, file.read().split())
            found[:] = [pid for pid in pids if pid != other_than and 'weir-swarm' in thread_names(pid).values()]
            return found

        wait_until(is_there)
        assert len(found) == 1, found
        return found[0]

    def bytes_over_http(self):
        return sum(reader['bytes'] for reader in self.get('/v1/readers')['readers'] if reader['transport'] == 'HTTP')


class Folder(tempfile.TemporaryDirectory):
    """A folder with torrents of files."""

    def add(self, name, path, *words):
        """Returns the path of the torrent of a title."""
        torrent = os.path.join(self.name, name + '.torrent')
        os.makedirs(os.path.dirname(torrent), exist_ok=True)
        call('torrent', path, '-o', torrent, *words)
        return torrent

    def __enter__(self):
        return self


def tracked(folder, *words):
    """Returns a tracker, and the torrent of the clip in a folder, which names the tracker."""
    torrent = folder.add('a.mp4', CLIP)
    tracker = Tracker(describe(torrent)['info-hash'])
    return tracker, folder.add('a.mp4', CLIP, '--tracker', tracker.url, '--name',
                               os.path.basename(CLIP), *words)


def wait_until(ready, seconds=60):
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, 'it has not come in time'
        time.sleep(0.05)
