# SPDX-License-Identifier: LGPL-2.1-or-later
"""A block store on slow disks: who is one too many is refused, readers who share blocks cost
nothing, and a disk that fails is not noticed.

The disks are imitated (tests/support/slowdisk.py), so slow that they can give about 24 streams
each. WEIR_STORE_SECONDS sets for how long the readers read while a disk fails: from 90 s on, the
blocks of the disk must be written anew on the others.
"""

import contextlib
import os
import random
import re
import selectors
import socket
import subprocess
import tempfile
import time

from proc import Rtsp
from proxy import wait_until
from slowdisk import SlowDisk
from tap import SLOWER, Skip, run, test
from title_proxy import TitleProxy

RATE = 1 << 18  # bits/s of a title; a block has 64 KiB
SLICE = 2  # s
ACCESS_US = 80_000
DISK_RATE = 10_000_000  # bytes/s
SERVICE = ACCESS_US / 1e6 + RATE / 8 * SLICE / DISK_RATE  # s, of a block
BLOCK = RATE // 8 * SLICE  # bytes
SECONDS = int(os.environ.get('WEIR_STORE_SECONDS', '20'))
REPAIR_RATE = 8 << 20  # bytes/s


class Slow(TitleProxy):
    """A proxy that serves a store on slow disks: titles 0, 1, ... of random bytes."""

    def __init__(self, n_disks, n_titles, seconds, **limits):
        tool = os.environ.get('WEIR_STORE_PROGRAM')
        if not tool:
            raise Skip('weir-store is not built')
        with contextlib.ExitStack() as stack:
            top = stack.enter_context(tempfile.TemporaryDirectory())
            self.disks = [stack.enter_context(SlowDisk(top, f'disk{i}')) for i in range(n_disks)]
            self.data = random.Random(5).randbytes(RATE // 8 * seconds)
            titles = os.path.join(top, 'titles')
            os.mkdir(titles)
            for i in range(n_titles):
                with open(os.path.join(titles, str(i)), 'wb') as file:
                    file.write(self.data)
            self.store = os.path.join(top, 'store')
            self.run_tool(tool, 'init', self.store, '--disks',
                          ','.join(str(disk.path) for disk in self.disks), '--slice', f'{SLICE}s')
            self.run_tool(tool, 'add', self.store, titles, '--rate', str(RATE))
            for disk in self.disks:
                disk.set(access_us=ACCESS_US, rate=DISK_RATE)
            super().__init__({'upstream': f'store://{self.store}/'}, limits=limits)
            self._stack = stack.pop_all()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._stack.close()

    @staticmethod
    def run_tool(*words):
        subprocess.run(words, check=True, capture_output=True, timeout=60 * SLOWER)

    def reads(self):
        return sum(int(value) for value in
                   re.findall(r'^weir_store_disk_reads_total\{\S+ (\d+)$', self.get('/metrics').decode(), re.M))

    def count_copies(self):
        """Returns the number of copies of blocks on the disks other than disk 3."""
        return sum(len(files) for disk in self.disks if disk is not self.disks[3]
                   for _, _, files in os.walk(disk.backing / 'blocks'))

    def measure(self, readers):
        """Starts readers of the first titles, and waits until the disks are known by their work."""
        for i in range(8):
            readers.begin(i)
        wait_until(lambda: readers.read(0.1) or self.reads() >= 4 * len(self.disks), 40,
                   'the disks have been read')

    def model(self):
        """Returns how many streams the disks can give (docs/store.md)."""
        return len(self.disks) * SLICE / SERVICE


class Readers:
    """HTTP readers, which begin to play once they have a buffer of one slice. The proxy's own count
    of starvations takes them to have none, so a busy machine is enough for one."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.open = {}  # socket: bytes of the body
        self.begun = {}  # socket: when its first bytes came
        self.late = 0  # s: the longest time by which bytes came too late
        self.selector = selectors.DefaultSelector()

    def begin(self, title):
        """Returns the head of the answer, and keeps the reader if it is admitted."""
        connection = socket.create_connection(('127.0.0.1', self.proxy.web_port), timeout=20)
        connection.sendall(f'GET /films/{title} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        got = b''
        while b'\r\n\r\n' not in got:
            more = connection.recv(4096)
            assert more, got
            got += more
        head, _, body = got.partition(b'\r\n\r\n')
        if not head.startswith(b'HTTP/1.1 200 '):
            length = int(re.search(rb'(?i)content-length: (\d+)', head)[1])
            while len(body) < length:
                body += connection.recv(4096)
            connection.close()
            return head + b'\r\n\r\n' + body
        self.open[connection] = body
        self.begun[connection] = time.monotonic()
        self.selector.register(connection, selectors.EVENT_READ)
        return head

    def read(self, seconds):
        """Takes what comes in this time, and checks it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                more = key.fileobj.recv(65536)
                at = len(self.open[key.fileobj])
                self.note_late(key.fileobj)
                assert more == self.proxy.data[at:at + len(more)], 'wrong bytes'
                assert more or at == len(self.proxy.data), 'a reader was cut off'
                self.open[key.fileobj] += more
                if at + len(more) == len(self.proxy.data):
                    self.selector.unregister(key.fileobj)

    def wait_for_newest(self):
        """Reads until the reader that began last has its first bytes."""
        newest, end = list(self.open)[-1], time.monotonic() + 20
        while not self.open[newest]:
            self.read(0.05)
            assert time.monotonic() < end, 'the newest reader gets nothing'

    def note_late(self, connection):
        played = time.monotonic() - self.begun[connection] - SLICE
        self.late = max(self.late, played - len(self.open[connection]) * 8 / RATE)

    def starve(self):
        """Reports whether a reader has had nothing to play, up to now."""
        for key in list(self.selector.get_map().values()):
            self.note_late(key.fileobj)
        return self.late > 0

    def end(self, number=None):
        for connection in list(self.open)[:number]:
            with contextlib.suppress(KeyError):
                self.selector.unregister(connection)
            del self.open[connection]
            connection.close()


@contextlib.contextmanager
def served(*words, **limits):
    with Slow(*words, **limits) as proxy:
        readers = Readers(proxy)
        try:
            yield proxy, readers
        finally:
            readers.end()


def begin_until_refused(readers, first, last):
    """Starts readers of these titles, a few blocks apart. Returns the first title that is refused,
    and the refusal."""
    for title in range(first, last):
        head = readers.begin(title)
        if not head.startswith(b'HTTP/1.1 200 '):
            return title, head.decode()
        readers.read(0.05)
    raise AssertionError(f'{last} readers were admitted')


def is_refused_over_rtsp(proxy, title):
    with Rtsp(proxy.port) as rtsp:
        return rtsp.request('DESCRIBE', proxy.url(f'/films/{title}'))[0] == 453


@test(timeout=150)
def one_reader_too_many_is_refused_and_nobody_starves():
    with served(4, 110, 60) as (proxy, readers):
        proxy.measure(readers)
        n, refusal = begin_until_refused(readers, 8, 109)
        assert refusal.startswith('HTTP/1.1 503 ') and 'Retry-After: ' in refusal, refusal
        assert 'the disks can give no more streams now' in refusal, refusal
        proxy.wait_for_line(r'refused: /films/\d+: the disks can give no more streams now')

        # The title that began last gets another reader close behind, while other titles are refused.
        # The rates of the disks are measured, so there may be room for a title more by then.
        full = False
        while not full:
            readers.wait_for_newest()
            assert readers.begin(n - 1).startswith(b'HTTP/1.1 200 ')
            before, (n, _) = n, begin_until_refused(readers, n, 109)
            full = n == before and is_refused_over_rtsp(proxy, 109)
        assert 0.6 * proxy.model() <= n <= proxy.model(), (n, proxy.model())

        before = proxy.reads()
        readers.read(8)
        assert proxy.reads() - before < 1.2 * (8 / SLICE + 1) * n, (before, proxy.reads(), n)
        assert not readers.starve(), (readers.late, n)

        # Who leaves makes room.
        readers.end(3)
        wait_until(lambda: readers.read(0.1)
                   or readers.begin(109).startswith(b'HTTP/1.1 200 '), 10, 'there is room')
        readers.read(2)
        assert not readers.starve(), (readers.late, n)


@test
def the_line_bounds_readers_who_share_blocks():
    with served(2, 1, 20, **{'line-rate': 1}) as (proxy, readers):
        for _ in range(1_000_000 // RATE):
            assert readers.begin(0).startswith(b'HTTP/1.1 200 ')
        refusal = readers.begin(0)
        assert refusal.startswith(b'HTTP/1.1 503 ') and b'limits.line-rate' in refusal, refusal


@test
def a_disk_that_hangs_delays_no_admission():
    with served(2, 2, 20) as (_, readers):
        assert readers.begin(0).startswith(b'HTTP/1.1 200 ')
        readers.read(1)
        readers.proxy.disks[0].set(hang=1)
        assert readers.begin(1).startswith(b'HTTP/1.1 200 ')
        readers.read(3)
        assert all(len(body) > RATE // 8 for body in readers.open.values()), readers.open
        readers.proxy.disks[0].set(hang=0)


@test(timeout=100 + 2 * SECONDS)
def a_disk_that_fails_and_is_gone_starves_nobody():
    most = int(8 * SLICE / SERVICE)  # titles
    with served(8, most, SECONDS + 35) as (proxy, readers):
        proxy.measure(readers)
        admitted, _ = begin_until_refused(readers, 8, most)
        n = int(0.9 * admitted)
        readers.end(admitted - n)
        readers.read(3)
        proxy.disks[3].set(error=100)
        before = proxy.count_copies()
        readers.read(SECONDS / 3)
        proxy.disks[3].kill()
        readers.read(2 * SECONDS / 3)
        written = proxy.count_copies() - before
        assert not readers.starve(), readers.late
        assert len(readers.open) == n
        text = proxy.get('/metrics').decode()
        assert re.search(r'weir_store_disk_failing\{mount="/films",disk="3"\} 1\n', text), text
        assert 0 <= written * BLOCK <= REPAIR_RATE * SECONDS, written
        assert written > 0 or SECONDS < 90


if __name__ == '__main__':
    run()
