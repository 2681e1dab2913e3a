# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the streams that a storage server sustains from one disk with a model of that number.

    N = D * t_b * r_d / (t_a * r_d + r_c * t_b)

with D = 1 (Y. R. Choe, "Design and Implementation of a Resource-Efficient Storage Server for VoD",
Purdue University, 2007). t_a and r_d are measured on the same disk in the same run. The bench finds
the largest number of streams without a late block by trial.

The disks are the machine's own, the same one throttled by the kernel (which has no access time),
and a simulated one with an arm (vod_bench adds the times).
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
from typing import NamedTuple

from report import Column
from rig import FIRST_PORT
from servers import BUILD, CACHE, PLUGINS
from tap import Skip

NAME = 'vod'
TITLE = 'streams that one disk sustains, compared with a model'
CASE, WHO, YARDSTICK = 'rate, block', 'disk', None
LOG = False
COLUMNS = (
    Column('ratio', "ratio to model", '{:.2f}'),
    Column('streams', 'streams'),
    Column('model', 'streams by model', '{:.1f}'),
    Column('access', 't_a ms', '{:.2f}'),
    Column('rate', 'r_d MB/s'),
    Column('cpu', 'CPU %'),
    Column('read', 'MB/s read'),
    Column('sent', 'MB/s sent'),
    Column('behind', 'late blocks at +10 %'),
    Column('late', 'late sends at +10 %'),
)

PAGE = 4096  # reads that bypass the page cache are multiples of this
RATES = (1, 6, 12, 25)
DISK_RATE = 80_000_000  # bytes per second, of the throttled disk and the disk with an arm
ARM_US = 10_000
FILE_GB, FREE_PART = 4, 4  # at most this size, and at most 1/4 of the free space
MEMORY_BLOCKS = 4  # per stream: in its source, its pacer and its sink
FIRST_BITS = 1e9  # per second, most of the first trial: the CPU's limit is not known yet
FIRST_PART = 0.96  # of the model's number, for the first trial
READ_SECONDS = 0.6  # for each block size, when the disk is measured
STEP = 1.06
TRIES = 8
THROTTLES = pathlib.Path('/sys/fs/cgroup/blkio')


def make_file(gigabytes):
    """Makes an unnamed file, which leaves nothing behind, and writes it out to the disk."""
    most = shutil.disk_usage(CACHE).free // FREE_PART
    size = min(gigabytes << 30, most >> 24 << 24)
    if size < gigabytes << 30:
        print(f'vod: only {size >> 20} MB of disk space for the streams')
    if size < 256 << 20:
        raise Skip('not enough space on the disk')
    file = tempfile.TemporaryFile(dir=CACHE)
    chunk = os.urandom(16 << 20)
    for _ in range(size >> 24):
        file.write(chunk)
    file.flush()
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


class Disk(NamedTuple):
    """A way to read the file: the words before the command, and vod_bench's ARM argument."""

    name: str
    enter: tuple = ()
    arm: str = 'none'


def disk_number():
    """Returns major:minor of the whole disk that holds the files, or None if it is not a disk."""
    number = CACHE.stat().st_dev
    path = pathlib.Path(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}').resolve()
    if (path / 'partition').exists():
        path = path.parent
    return (path / 'dev').read_text(encoding='utf-8').strip() if path.exists() else None


@contextlib.contextmanager
def throttled():
    """Yields the disk with a rate limit of the kernel, or None. Removes the limit afterwards."""
    group = THROTTLES / f'weir-vod-{os.getpid()}'
    try:
        for old in THROTTLES.glob('weir-vod-*'):  # left by a bench that was killed
            if not pathlib.Path('/proc', old.name.rpartition('-')[2]).exists():
                old.rmdir()
        group.mkdir()
    except OSError as error:
        print(f'vod: no throttled disk: {error}')
        yield None
        return
    try:
        (group / 'blkio.throttle.read_bps_device').write_text(f'{disk_number()} {DISK_RATE}')
        enter = ('sh', '-c', f'echo $$ > {group}/cgroup.procs && exec "$@"', 'sh')
        yield Disk(f'throttled to {DISK_RATE // 10**6} MB/s', enter)
    except OSError as error:
        print(f'vod: no throttled disk: {error}')
        yield None
    finally:
        group.rmdir()


def bench(rig, disk, file, mode, *arguments):
    """Runs vod_bench on the file that this process holds open. Returns its lines as {name:
    value}."""
    done = subprocess.run(
        [*disk.enter, *rig.server, BUILD / 'tests/bench/vod_bench', mode,
         f'/proc/{os.getpid()}/fd/{file.fileno()}', disk.arm, *map(str, arguments)],
        env={**os.environ, **PLUGINS}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def block_of(megabits, seconds):
    return round(megabits * 1e6 / 8 * seconds / PAGE) * PAGE


def measure_disk(rig, disk, file, sizes, seconds):
    """Returns t_a in s and r_d in bytes/s: the line through the read times that has the least
    squares of relative errors."""
    times = bench(rig, disk, file, 'reads', seconds, *sizes)
    points = [(float(size), time, 1 / time**2) for size, time in times.items()]
    n = sum(w for _, _, w in points)
    x = sum(w * size for size, _, w in points) / n
    y = sum(w * time for _, time, w in points) / n
    slope = (sum(w * (size - x) * (time - y) for size, time, w in points)
             / sum(w * (size - x)**2 for size, _, w in points))
    if y > slope * x:
        return y - slope * x, 1 / slope
    return 0, (sum(w * size**2 for size, _, w in points)
               / sum(w * size * time for size, time, w in points))


class Trials:
    """Finds how many streams of one rate a disk sustains."""

    def __init__(self, rig, disk, file, megabits, plan):
        self._all = rig, disk, file
        self.bits, self.block = round(megabits * 1e6), block_of(megabits, plan.seconds)
        self._plan = plan
        self.best, self._good, self._bad = None, 0, None

    def run(self, streams, stop):
        rig, disk, file = self._all
        return bench(rig, disk, file, 'streams', self.bits, self.block, streams, self._plan.blocks,
                     'stop' if stop else 'go', rig.readers_address, FIRST_PORT)

    def _try(self, streams):
        """Tries a number twice: other work on the machine may cause one failure."""
        for _ in range(2):
            result = self.run(streams, True)
            if result['behind'] == result['dropped'] == 0:
                self.best, self._good = result, streams
                return
        self._bad = streams

    def _next(self, model):
        if self._good and self._bad:
            return (self._good + self._bad) // 2
        if self._bad:
            return min(int(self._bad / STEP), self._bad - 1)
        # Far below the model, the next trial takes as many streams as there is CPU time for.
        more = max(STEP, 0.5 * 100 * os.cpu_count() / self.best['cpu'])
        return max(min(int(self._good * more), int(model * STEP ** (self._good >= int(model)))),
                   int(self._good * STEP), self._good + 1)

    def most(self, model):
        available = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGESIZE')
        limit = available // 2 // (MEMORY_BLOCKS * self.block)
        streams = max(1, min(int(FIRST_PART * model), int(FIRST_BITS / self.bits)))
        for _ in range(TRIES):
            self._try(min(streams, limit))
            if self._good == limit or self._bad == 1:
                break
            if self._bad and self._bad - self._good <= max(1, self._plan.near * self._good):
                break
            streams = self._next(model)
        return self._good


def measure(rig, disk, file, line, megabits, plan):
    access, rate = line
    trials = Trials(rig, disk, file, megabits, plan)
    lasts = trials.block * 8 / trials.bits
    model = lasts * rate / (access * rate + trials.block)
    streams = trials.most(model)
    result = {'streams': streams, 'model': model, 'ratio': streams / model, 'access': 1000 * access,
              'rate': rate / 1e6}
    if streams:
        more = trials.run(max(streams + 1, round(streams * 1.1)), False)
        result.update(cpu=trials.best['cpu'], read=trials.best['read'] / 1e6,
                      sent=trials.best['sent'] / 1e6, behind=more['behind'],
                      late=more['late'])
    return result


class Plan(NamedTuple):
    rates: tuple  # Mb/s
    seconds: float  # a block
    blocks: int  # measured, of each stream
    near: float  # the search stops within this part of the best number


def run_disk(rig, disk, file, plan):
    sizes = sorted(block_of(megabits, plan.seconds) for megabits in RATES)
    line = measure_disk(rig, disk, file, sizes, READ_SECONDS * max(1, plan.seconds))
    for megabits in plan.rates:
        yield f'{megabits} Mb/s, {plan.seconds:g} s', disk.name, measure(
            rig, disk, file, line, megabits, plan)


def run(rig, quick):
    if disk_number() is None:
        raise Skip('build/bench is not on a disk')
    rig.drop_all_but(0)
    arm = Disk(f'{DISK_RATE // 10**6} MB/s, an arm of {ARM_US // 1000} ms', (),
               f'{ARM_US},{DISK_RATE}')
    own = Disk("the machine's own")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(make_file(FILE_GB // 2 if quick else FILE_GB))
        if not rig.real:  # without a receiver a send fails
            reader = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            reader.bind((rig.readers_address, FIRST_PORT))
        slow = stack.enter_context(throttled())
        if quick:
            plans = ((slow, Plan(RATES, 0.5, 3, 0.07)), (arm, Plan((1, 25), 0.5, 3, 0.07)),
                     (own, Plan((6,), 0.5, 3, 0.25)))
        else:
            plans = ((slow, Plan(RATES, 1, 6, 0.04)), (arm, Plan(RATES, 1, 6, 0.04)),
                     (arm, Plan(RATES, 5, 2, 0.04)), (own, Plan(RATES, 1, 6, 0.1)))
        for disk, plan in plans:
            if disk:
                yield from run_disk(rig, disk, file, plan)
