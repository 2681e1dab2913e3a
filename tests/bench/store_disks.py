# SPDX-License-Identifier: LGPL-2.1-or-later
"""A block store on imitated disks, and the largest number of streams that it gives.

The disks are those of Y. R. Choe, "Design and Implementation of a Resource-Efficient Storage Server
for VoD" (Purdue University, 2007), chapter 4: an access takes 17 ms, and 525 Mb are transferred in
a second. Time can be scaled: slices and accesses that take a tenth of the time, with blocks of a
tenth of the size, give the same number of streams in a tenth of the time.
"""

import concurrent.futures
import contextlib
import mmap
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import time
from typing import NamedTuple

from servers import BUILD
from slowdisk import SlowDisk, block_folder
from tap import Skip

ACCESS = 0.017  # s, t_a
RATE = 525e6    # bits/s, r_d
SLICE = 5       # s, t_b
MEMORY = 4e9    # bytes of the dissertation's server, which kept files in its page cache
MOST_STREAMS = 1.03  # of the model; more than that is an error of the bench
NEAR = 0.01
READERS = 8     # of the calibration, so that one read always waits
READ_SECONDS, READS = 1, 64  # at least, for each size
CALIBRATION = (1 << 18, 1 << 20, 15 << 18)  # bytes
MEGABIT = 1e6


class Scale(NamedTuple):
    """The disks and slices of a run. `time` says how many times faster than the dissertation's."""

    time: float
    full_access: float = ACCESS
    rate: float = RATE

    @property
    def access(self):
        return self.full_access / self.time

    @property
    def slice(self):
        return SLICE / self.time

    @property
    def memory(self):
        return int(MEMORY / self.time)

    def block(self, megabits):
        return int(megabits * MEGABIT / 8 * self.slice)


def model(scale, disks, megabits, access=None, rate=None):
    """N = D t_b r_d / (t_a r_d + r_c t_b), not rounded."""
    access = scale.access if access is None else access
    rate = scale.rate if rate is None else rate
    return disks * scale.slice * rate / (access * rate + megabits * MEGABIT * scale.slice)


os.environ.setdefault('WEIR_SLOWDISK', str(BUILD / 'tests/support/slowdisk/slowdisk'))


def check(streams, expected):
    """Refuses more streams of distinct titles than the disks can give."""
    assert streams <= MOST_STREAMS * expected + 1, \
        f'{streams} streams, where the model allows {expected:.1f}'


def program(name):
    path = BUILD / 'tests/bench' / name
    if not path.exists():
        raise Skip('this build has no store')
    return path


@contextlib.contextmanager
def folder():
    """Yields a folder in memory, if there is one: the machine's disk would slow the imitated
    ones."""
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix='weir-store-', dir=memory) as path:
        yield pathlib.Path(path)


def times(scale):
    return {'access_us': round(scale.access * 1e6), 'rate': round(scale.rate / 8)}


class BlockDisk:
    """A file system on a block device on an imitated disk."""

    def __init__(self, disk, path):
        self.path, self.set, self.stats = path, disk.set, disk.stats


@contextlib.contextmanager
def disks_in(path, n, device_bytes=None):
    """Yields imitated disks that take no time yet. With `device_bytes` each is a file system on a
    block device of that size."""
    with contextlib.ExitStack() as stack:
        disks = [stack.enter_context(SlowDisk(path, f'disk{i}')) for i in range(n)]
        if device_bytes:
            disks = [BlockDisk(disk, stack.enter_context(
                block_folder(disk, device_bytes, path / f'files{i}')))
                for i, disk in enumerate(disks)]
        yield disks


def _read(file, size, ends):
    buffer = mmap.mmap(-1, size)
    with contextlib.suppress(PermissionError):  # as the disk and the store
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    limit = time.monotonic() + READ_SECONDS
    while time.monotonic() < limit or len(ends) < READS:
        os.preadv(file, [buffer], random.randrange(1 << 10) << 22)
        ends.append(time.monotonic())


def read_time(disk, size):
    """Returns the time in s that the disk takes for a read of `size` bytes, when others wait."""
    path = disk.path / 'calibration'
    with open(path, 'wb') as file:
        file.truncate(1 << 33)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    ends = []
    try:
        with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
            for done in [pool.submit(_read, descriptor, size, ends) for _ in range(READERS)]:
                done.result()
    finally:
        os.close(descriptor)
        path.unlink()
    ends.sort()
    # Without the end, when none waits.
    return (ends[-READERS] - ends[0]) / (len(ends) - READERS)


class Store:
    """A filled store. `titles` yields (name, first disk or first disk of a pair)."""

    def __init__(self, path, disks, scale, policy, megabits, blocks, titles, written=False):
        self.path, self.disks, self.scale = path / 'store', disks, scale
        self.block = scale.block(megabits)
        lines = ''.join(f'{name} {first}\n' for name, first in titles)
        done = subprocess.run(
            [program('store_fill'), self.path, policy, str(round(scale.slice * 1000)),
             str(self.block), str(blocks), 'bytes' if written else 'holes',
             *(disk.path for disk in disks)],
            input=lines, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if written:
            os.sync()
        for disk in disks:
            disk.set(**times(scale))

    def _bytes_read(self):
        return sum(disk.stats()['bytes'] for disk in self.disks)

    def trial(self, streams, slices, stop=True, memory=0, fault=None):
        """Plays the streams (start in s, title). Returns store_bench's figures. `fault` is (s after
        the start, function)."""
        with contextlib.ExitStack() as stack:
            if fault:
                timer = threading.Timer(*fault)
                stack.callback(timer.cancel)
                timer.start()
            return self._trial(streams, slices, stop, memory)

    def _trial(self, streams, slices, stop, memory):
        lines = ''.join(f'{1000 * start:.3f} {title}\n' for start, title in streams)
        before = self._bytes_read()
        done = subprocess.run(
            [program('store_bench'), self.path, str(memory), str(slices), 'stop' if stop else 'go'],
            input=lines, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr or f'store_bench ended with {done.returncode}'
        result = {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}
        result['read'] = self._bytes_read() - before
        # A block that comes from neither a disk nor memory does not exist.
        assert result['read'] >= result['bytes'] - result['hits'] * self.block, \
            f'{result["bytes"]:.0f} bytes were delivered, {result["read"]:.0f} were read'
        return result


@contextlib.contextmanager
def store(scale, n_disks, policy, megabits, blocks, titles, on_devices=False):
    """Yields a store on imitated disks, or on file systems on block devices on them."""
    space = None
    if on_devices:
        space = 64 << 20 | int(1.2 * len(titles) * blocks * scale.block(megabits)) >> 20 << 20
    with folder() as path, disks_in(path, n_disks, space) as disks:
        yield Store(path, disks, scale, policy, megabits, blocks, titles, on_devices)


def largest(trial, expected, most=None, near=NEAR):
    """Returns the largest number of streams without a stoppage, and the figures of that run.

    `trial(n)` plays n streams. A number is tried twice, as other work on the machine may cause one
    failure. The search begins at `expected`, goes to `most` at most, and ends when the number is
    known to the part `near` of it.
    """
    good, best, bad = 0, None, None if most is None else most + 1
    n, step = max(1, int(expected)), near
    while bad is None or bad - good > max(1, near * good):
        result = trial(n)
        if result['stoppages']:
            result = trial(n)
        if result['stoppages']:
            bad = n
        else:
            good, best = n, result
        if good and bad:
            n = (good + bad) // 2
        else:
            n = int(good * (1 + step)) + 1 if good else min(int(bad * (1 - step)), bad - 1)
            step *= 2
        if n == 0:
            break
        n = min(n, most or n)
    return good, best
