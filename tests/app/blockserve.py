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
import time

from blockstores import blocks_of, call, some_bytes, told
from control import Watch
from films import ffmpeg
from proc import Rtsp, thread_names
from proxy import CLIP, program, wait_until
from tap import SLOWER, Skip, run, test
from title_proxy import PICTURES, TitleProxy, check_rtsp, clip, pictures

COUNTERS = 'errors', 'second-choices', 'moved-here', 'moved-away'
FIGURES = ('queue', 'failing', 'service-microseconds', 'access-microseconds', 'rate', *COUNTERS)


class Stored(TitleProxy):
    """A proxy that serves a store of four folders, with the clip as a.mp4 and sub/b.mp4."""

    def __init__(self, before=None, top=None, **settings):
        if not os.environ.get('WEIR_STORE_PROGRAM'):
            raise Skip('weir-store is not built')
        self.folder = tempfile.TemporaryDirectory()
        self.disks = [os.path.join(self.folder.name, f'disk{n}') for n in range(4)]
        for disk in self.disks:
            os.mkdir(disk)
        self.store = os.path.join(self.folder.name, 'store')
        call('init', self.store, '--disks', ','.join(self.disks), '--policy', 'rda', '--slice', '1s')
        shutil.copy(CLIP, os.path.join(self.folder.name, 'a.mp4'))
        self.add(os.path.join(self.folder.name, 'a.mp4'))
        if before:
            before(self)
        super().__init__({'upstream': f'store://{self.store}/', **settings},
                         **(top or {}))

    def add(self, path):
        call('add', self.store, path)


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


@test
def threads_do_not_grow_with_connections():
    request = b'GET /films/a.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n'
    with Stored() as proxy, contextlib.ExitStack() as stack:
        proxy.fetch('/films/a.mp4')
        before = list(thread_names(proxy.pid).values())
        readers = []
        for _ in range(300):
            readers.append(stack.enter_context(
                socket.create_connection(('127.0.0.1', proxy.web_port), timeout=20)))
            readers[-1].sendall(request)
        for reader in readers:
            assert reader.recv(13) == b'HTTP/1.1 200 '
        names = list(thread_names(proxy.pid).values())
        own = [name for name in names
               if name in ('http-poll', 'weir-worker', 'http-open', 'weir-store')]
        assert 'http-poll' in own and 'weir-worker' in own and len(own) <= 8, names
        # GLib keeps threads of pools that have nothing to do, of all pools together.
        idle = names.count('pool-rtsp-proxy')
        assert idle <= 8, names
        assert len(names) - idle <= len(before) + 2, (before, names)


@test
def a_title_that_is_not_read_has_no_thread_for_its_bytes():
    with Stored() as proxy, Watch(proxy, '/films/a.mp4') as reader:
        assert reader.request('PAUSE', proxy.url('/films/a.mp4'))[0] == 200
        wait_until(lambda: 'title-bytes' not in thread_names(proxy.pid).values(), 20,
                   'the thread that gave the bytes has ended')
        assert reader.request('PLAY', proxy.url('/films/a.mp4'), {'Range': 'npt=3-'})[0] == 200
        reader.frames.clear()
        reader.take()


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


BIG = some_bytes(30 << 20)


def add_big(proxy):
    """Adds BIG as big.bin, with blocks of 1 MB."""
    path = os.path.join(proxy.folder.name, 'big.bin')
    with open(path, 'wb') as file:
        file.write(BIG)
    call('add', proxy.store, path, '--rate', '8M')


def read_some(proxy, dice):
    first = dice.randrange(len(BIG) - 100000)
    got = proxy.fetch('/films/big.bin', {'Range': f'bytes={first}-{first + 99999}'})
    assert got == (206, BIG[first:first + 100000]), (first, got[0])


def add_disk(proxy):
    path = os.path.join(proxy.folder.name, 'disk4')
    os.makedirs(path, exist_ok=True)
    call('add-disk', proxy.store, path)


@test
def a_store_is_balanced_while_it_is_served():
    """blocks move to a disk that is added while readers go on, and the log has two lines of it"""
    dice = random.Random(4)
    with Stored(add_big) as proxy:
        read_some(proxy, dice)
        add_disk(proxy)
        end = time.monotonic() + 60
        while not any('; ' in line and ' copies were moved' in line for line in proxy.lines):
            read_some(proxy, dice)
            assert time.monotonic() < end
        lines = [line for line in proxy.lines if ' store /' in line]
        assert len(lines) == 2, lines
        assert lines[0].endswith(': is being balanced, as its disks have changed'), lines
        moved = int(re.search(r': balanced; (\d+) copies were moved$', lines[1])[1])
        disks = {disk['disk']: disk for disk in proxy.get('/v1/mounts/films')['disks']}
        assert disks[4]['moved-here'] >= 5, disks
        for figure in 'moved-here', 'moved-away':
            assert moved == sum(disk[figure] for disk in disks.values()), (moved, disks)
        assert not any(disk['errors'] for disk in disks.values()), disks
        found = told('verify', proxy.store)
        assert not found['problems'] and not found['leftovers'], found


@test
def a_proxy_that_is_killed_while_it_balances_loses_nothing():
    """kill -9 between the moves leaves every block whole, and the next proxy goes on"""
    dice = random.Random(time.time_ns())
    with Stored(add_big) as first:
        mount = {'upstream': f'store://{first.store}/'}
        first.stop()
        for round_ in range(4):
            if round_ % 2:
                call('remove-disk', first.store, os.path.join(first.folder.name, 'disk4'))
            else:
                add_disk(first)
            with TitleProxy(mount) as proxy:
                read_some(proxy, dice)
                proxy.wait_for_line(' is being balanced')
                time.sleep(dice.uniform(0, 1))
                proxy.kill()
            found = told('verify', first.store)
            assert not found['problems'] and not found['bad-copies'], found
            with TitleProxy(mount) as proxy:
                read_some(proxy, dice)
                end = time.monotonic() + 60
                while os.path.exists(os.path.join(first.store, 'unbalanced')):
                    read_some(proxy, dice)
                    assert time.monotonic() < end
        call('repair', first.store)
        found = told('verify', first.store)
        assert not found['problems'] and not found['leftovers'], found


@test
def who_is_refused_learns_why():
    with Stored(top={'limits': {'line-rate': 3}}) as proxy, Rtsp(proxy.port) as first, \
            Rtsp(proxy.port) as second:
        assert first.request('DESCRIBE', proxy.url('/films/a.mp4'))[0] == 200
        status, _, body = second.request('DESCRIBE', proxy.url('/films/a.mp4'))
        used = r'limits.line-rate: (1.\d) of 3.0 Mb/s are in use, and this one needs \1'
        assert status == 453 and re.search(used, body.decode()), (status, body)
        proxy.wait_for_line('refused: /films/a.mp4: the line can carry no more .*' + used)
        status, body = proxy.fetch('/films/a.mp4')
        assert status == 503 and re.search(used, body.decode()), (status, body)
        proxy.wait_for_line('refused: /films/a.mp4: the line .*', start=len(proxy.lines) - 1)


@test
def the_memory_for_blocks_is_bounded_by_the_mount():
    with Stored(cache={'bytes': '1M'}) as proxy:
        for _ in range(2):
            assert proxy.fetch('/films/a.mp4') == (200, clip())
        text = proxy.get('/metrics').decode()
        assert sum(map(int, re.findall(r'^weir_store_disk_reads_total\S* (\d+)$', text, re.M))) > 5
        assert proxy.get('/v1/mounts/films')['config']['cache'] == {'bytes': '1024K'}


def lose_block(choose, title='a.mp4'):
    """Returns a function for Stored(before=…) that removes all copies of a block of a title: of the
    one whose number `choose` returns for the number of blocks."""
    def lose(proxy):
        with open(os.path.join(proxy.store, 'titles', title + '.index'), 'rb') as file:
            folder = file.read(26)[10:].hex()
        copies = [path for disk in proxy.disks for path in blocks_of(disk) if f'/blocks/{folder}/' in path]
        last = max(int(os.path.basename(path), 16) for path in copies)
        for path in copies:
            if int(os.path.basename(path), 16) == choose(last + 1):
                os.remove(path)
    return lose


@test
def a_lost_block_ends_the_stream_there_with_one_line():
    expected = pictures(CLIP)
    for isolate in 'no', 'yes':
        with Stored(lose_block(lambda n: n // 2), {'isolate': isolate}) as proxy:
            got = pictures(proxy.url('/films/a.mp4'), '-rtsp_transport', 'tcp')
            assert got == expected[:len(got)] and 20 < len(got) < PICTURES - 20, len(got)
            proxy.wait_for_line("/films/a.mp4: block 2 of title 'a.mp4' cannot be read")
            told = [line for line in proxy.lines if '/films/a.mp4: block' in line]
            assert len(told) == 1, told
            proxy.wait_for_line(r"^[\d-]+ [\d:.]+ store \S+: block 2 of title 'a.mp4' cannot be read")
            assert not any('WARNING' in line for line in proxy.lines), proxy.lines


@test
def a_title_that_is_removed_while_it_plays_is_not_called_lost():
    request = b'GET /films/a.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n'
    with Stored() as proxy, socket.create_connection(('127.0.0.1', proxy.web_port), timeout=20) as reader:
        reader.sendall(request)
        assert reader.recv(1 << 16).startswith(b'HTTP/1.1 200 ')
        call('remove', proxy.store, 'a.mp4')
        while reader.recv(1 << 16):
            pass
        proxy.wait_for_line("reader \\S+ out: /films/a.mp4: title 'a.mp4' was removed from the store")
        assert not any('block' in line for line in proxy.lines), proxy.lines


@test
def a_lost_last_block_does_not_hinder_the_start_of_a_title_that_can_do_without():
    def lose(proxy):
        for name, *words in ('front.mp4', '-movflags', 'faststart'), ('a.mkv',):
            path = os.path.join(proxy.folder.name, name)
            ffmpeg('-i', CLIP, '-c', 'copy', *words, path)
            proxy.add(path)
        for name in 'front.mp4', 'a.mkv':
            lose_block(lambda n: n - 1, name)(proxy)

    with Stored(lose) as proxy, Rtsp(proxy.port) as rtsp:
        for name in 'front.mp4', 'a.mkv':
            assert rtsp.request('DESCRIBE', proxy.url(f'/films/{name}'))[0] == 200, name


@test
def a_title_whose_beginning_or_tables_are_lost_is_answered_with_500():
    for choose in (lambda n: 0), (lambda n: n - 1):
        with Stored(lose_block(choose)) as proxy, Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url('/films/a.mp4'))[0] == 500
            proxy.wait_for_line(r"refused: /films/a.mp4: cannot be played: block \d of title 'a.mp4'")


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
        newer = os.path.join(directory, 'newer')
        os.mkdir(newer)
        with open(os.path.join(newer, 'store.yaml'), 'w', encoding='utf-8') as file:
            file.write('version: 9\n')
        for uri, said in ((f'store://{directory}/', f'{directory} is not a store: '),
                          ('store://host/x', 'the URI has the host host; write store:///DIR/'),
                          (f'store://{directory}/none/', 'none/ is not a store: '),
                          (f'store://{newer}/', 'store.yaml:1:10: version 9 of the store is newer')):
            done = subprocess.run([program(), '--mount', f'/films={uri}', '--check-config'],
                                  capture_output=True, text=True, timeout=20 * SLOWER, check=False)
            assert done.returncode != 0 and said in done.stderr, done.stderr


@test
def a_relative_path_of_a_store_is_explained():
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f'{directory}/disk')
        call('init', f'{directory}/my store', '--disks', f'{directory}/disk', '--policy', 'random')
        done = subprocess.run([program(), '--mount', '/films=store://my%20store/', '--check-config'],
                              capture_output=True, text=True, timeout=20 * SLOWER, check=False, cwd=directory)
        assert done.returncode == 2, done
        assert (f'the path of a block store must be absolute; write store://{os.path.realpath(directory)}'
                '/my%20store/ for store://my%20store/') in done.stderr, done.stderr


@test
def a_store_has_memory_for_its_blocks_and_no_window():
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f'{directory}/disk')
        call('init', f'{directory}/store', '--disks', f'{directory}/disk', '--policy', 'random')
        for cache, said in (('{bytes: 3G}', None), ('{time: 60s}', 'for a block store, expected '),
                            (f'{{bytes: 1G, spill: {directory}}}', 'for a block store, expected ')):
            config = f'mounts: {{/films: {{upstream: store://{directory}/store/, cache: {cache}}}}}\n'
            done = subprocess.run([program(), '--check-config', '--config', '/dev/stdin'],
                                  input=config, capture_output=True, text=True, timeout=20 * SLOWER,
                                  check=False)
            assert done.returncode == (2 if said else 0) and (said or '') in done.stderr, done


if __name__ == '__main__':
    run()
