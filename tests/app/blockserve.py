# SPDX-License-Identifier: LGPL-2.1-or-later
"""The titles of a block store over HTTP and RTSP, with a lost disk, and what is no store."""

import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile

from proxy import CLIP, program
from tap import Skip, run, test
from title_proxy import TitleProxy, check_rtsp, clip

COUNTERS = 'errors', 'second-choices'
FIGURES = ('queue', 'failing', 'service-microseconds', 'access-microseconds', 'rate', *COUNTERS)


class Stored(TitleProxy):
    """A proxy that serves a store of four folders, with the clip as a.mp4 and sub/b.mp4."""

    def __init__(self, before=None, **settings):
        tool = os.environ.get('WEIR_STORE_PROGRAM')
        if not tool:
            raise Skip('weir-store is not built')
        self.folder = tempfile.TemporaryDirectory()
        self.disks = [os.path.join(self.folder.name, f'disk{n}') for n in range(4)]
        for disk in self.disks:
            os.mkdir(disk)
        store = os.path.join(self.folder.name, 'store')
        self.tool(tool, 'init', store, '--disks', ','.join(self.disks), '--policy', 'rda',
                  '--slice', '1s')
        shutil.copy(CLIP, os.path.join(self.folder.name, 'a.mp4'))
        self.tool(tool, 'add', store, os.path.join(self.folder.name, 'a.mp4'))
        if before:
            before(self)
        super().__init__({'upstream': f'store://{store}/', **settings})

    @staticmethod
    def tool(*words):
        subprocess.run(words, check=True, capture_output=True, timeout=60)


@test
def bytes_come_unchanged_over_http():
    data, dice = clip(), random.Random(3)
    with Stored() as proxy:
        assert proxy.fetch('/films/a.mp4') == (200, data)
        for _ in range(20):
            first, last = sorted(dice.choices(range(len(data)), k=2))
            last = min(last, first + 300000)  # over two blocks or so
            got = proxy.fetch('/films/a.mp4', {'Range': f'bytes={first}-{last}'})
            assert got == (206, data[first:last + 1]), (first, last, got[0], len(got[1]))
        for path in '/films/none.mp4', '/films/..%2fstore.yaml', '/films':
            assert proxy.fetch(path)[0] == 404, path


@test
def pictures_come_unchanged_over_rtsp():
    with Stored() as proxy:
        check_rtsp(proxy)


def threads(proxy):
    """Returns the names of the threads of the proxy."""
    names = []
    for task in os.listdir(f'/proc/{proxy.pid}/task'):
        with contextlib.suppress(FileNotFoundError), \
                open(f'/proc/{proxy.pid}/task/{task}/comm', encoding='ascii') as file:
            names.append(file.read().strip())
    return names


@test
def threads_do_not_grow_with_connections():
    request = b'GET /films/a.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n'
    with Stored() as proxy, contextlib.ExitStack() as stack:
        proxy.fetch('/films/a.mp4')
        before = threads(proxy)
        readers = []
        for _ in range(300):
            readers.append(stack.enter_context(
                socket.create_connection(('127.0.0.1', proxy.web_port), timeout=20)))
            readers[-1].sendall(request)
        for reader in readers:
            assert reader.recv(13) == b'HTTP/1.1 200 '
        names = threads(proxy)
        own = [name for name in names
               if name in ('http-poll', 'weir-worker', 'http-open', 'weir-store')]
        assert 'http-poll' in own and 'weir-worker' in own and len(own) <= 8, names
        # GLib keeps threads of pools that have nothing to do, of all pools together.
        idle = names.count('pool-rtsp-proxy')
        assert idle <= 8, names
        assert len(names) - idle <= len(before) + 2, (before, names)


@test
def metrics_and_the_api_tell_what_the_disks_do():
    with Stored() as proxy:
        proxy.fetch('/films/a.mp4')
        text = proxy.get('/metrics').decode()
        reads = re.findall(r'^weir_store_disk_reads_total\{mount="/films",disk="\d"\} (\d+)$', text,
                           re.M)
        assert reads and sum(map(int, reads)) >= 5, reads
        disks = proxy.get('/v1/mounts/films')['disks']
        assert sum(disk['reads'] for disk in disks) >= 5, disks
        for disk in disks:
            labels = f'{{mount="/films",disk="{disk["disk"]}"}}'
            for figure in FIGURES:
                metric = figure.replace('-', '_') + ('_total' if figure in COUNTERS else '')
                line = f'weir_store_disk_{metric}{labels} {disk[figure]}'
                assert line in text.splitlines(), (line, text)


@test
def a_lost_disk_is_not_noticed():
    def lose(proxy):
        shutil.rmtree(os.path.join(proxy.disks[1], 'blocks'))

    with Stored(lose) as proxy:
        assert proxy.fetch('/films/a.mp4') == (200, clip())


@test
def a_title_that_cannot_be_read_is_answered_with_500_and_its_reason_logged():
    def damage(proxy):
        with open(os.path.join(proxy.folder.name, 'store', 'titles', 'a.mp4.index'), 'r+b') as file:
            file.truncate(40)

    with Stored(damage) as proxy:
        assert proxy.fetch('/films/a.mp4')[0] == 500
        proxy.wait_for_line('a title cannot be opened: .*a.mp4')
        assert proxy.fetch('/films/none.mp4')[0] == 404


@test
def what_is_no_store_is_named():
    with tempfile.TemporaryDirectory() as directory:
        for uri in f'store://{directory}/', 'store://host/x', f'store://{directory}/none/':
            done = subprocess.run([program(), '--mount', f'/films={uri}', '--check-config'],
                                  capture_output=True, timeout=20, check=False)
            assert done.returncode != 0 and re.search(b'block store', done.stderr), done.stderr


if __name__ == '__main__':
    run()
