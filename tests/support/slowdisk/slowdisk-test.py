#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the imitated disk as a file system. When requests finish is tested by model-test.c."""

import contextlib
import errno
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from slowdisk import SlowDisk, block_device, block_folder
from tap import run, test

MIB = 1 << 20
BLOCK = 15 * MIB // 4  # a slice of 5 s at 6 Mb/s


@contextlib.contextmanager
def a_disk(**factors):
    with tempfile.TemporaryDirectory() as folder, SlowDisk(folder, **factors) as disk:
        yield disk


@contextlib.contextmanager
def opened(path, flags):
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def counted(disk, before, *names):
    now = disk.stats()
    return tuple(now[name] - before[name] for name in names)


def fails(number, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        assert error.errno == number, error
        return
    raise AssertionError(f'no error {errno.errorcode[number]}')


def until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, 'timed out'
        time.sleep(0.01)


def mounted(path):
    with open('/proc/self/mounts', encoding='utf-8') as mounts:
        return any(line.split()[1] == str(path) for line in mounts)


@test
def files_and_folders_are_those_of_the_backing_folder():
    with a_disk() as disk:
        inside = disk.path / 'blocks' / '1'
        inside.mkdir(parents=True)
        data = os.urandom(3 * MIB + 7)
        (inside / 'new').write_bytes(data)
        os.rename(inside / 'new', inside / '0')
        with opened(inside / '0', os.O_RDONLY) as file, opened(inside, os.O_RDONLY) as folder:
            os.fsync(file)
            os.fsync(folder)
        os.link(inside / '0', inside / '1')
        assert (inside / '1').read_bytes() == data
        assert sorted(os.listdir(inside)) == ['0', '1']
        assert (disk.backing / 'blocks' / '1' / '0').read_bytes() == data
        os.truncate(inside / '0', 10)
        assert (inside / '0').stat().st_size == 10
        (inside / '0').unlink()
        (inside / '1').unlink()
        inside.rmdir()
        assert os.listdir(disk.path / 'blocks') == []


@test
def many_files_are_listed():
    with a_disk() as disk:
        names = [f'{i:05}' for i in range(3000)]
        for name in names:
            (disk.path / name).touch()
        assert sorted(os.listdir(disk.path)) == names


@test
def zeros_and_reserved_space_take_no_memory():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(bytes(4 * MIB))
        assert (disk.path / 'a').read_bytes() == bytes(4 * MIB)
        with opened(disk.path / 'a', os.O_WRONLY) as file:
            os.posix_fallocate(file, 0, 5 * MIB)
        assert (disk.path / 'a').stat().st_size == 5 * MIB
        assert (disk.backing / 'a').stat().st_blocks == 0


@test
def each_large_read_past_the_page_cache_pays_one_access():
    with a_disk() as disk:
        (disk.path / 'title').write_bytes(bytes(3 * BLOCK))
        disk.set(hang=1)
        with opened(disk.path / 'title', os.O_RDONLY | os.O_DIRECT) as file:
            readers = [threading.Thread(target=os.preadv, args=(file, [mmap.mmap(-1, BLOCK)], at))
                       for at in (2 * BLOCK, 0)]
            for pieces, reader in enumerate(readers, 1):
                reader.start()
                until(lambda: disk.stats()['queue'] == pieces * -(-BLOCK // MIB))
            before = disk.stats()
            disk.set(hang=0)
            for reader in readers:
                reader.join(20)
            assert counted(disk, before, 'accesses', 'bytes') == (2, 2 * BLOCK)


@test
def a_read_through_a_plain_descriptor_comes_from_the_disk_each_time():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(os.urandom(MIB))
        before = disk.stats()
        for _ in range(3):
            (disk.path / 'a').read_bytes()
        assert counted(disk, before, 'bytes') == (3 * MIB,)


@test
def a_read_takes_no_less_than_its_time():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(bytes(MIB))
        disk.set(access_us=50000, rate=10 * MIB)
        since = time.monotonic()
        (disk.path / 'a').read_bytes()
        assert time.monotonic() - since >= 0.15


@test
def factors_are_read_back_and_checked():
    with a_disk(access_us=5, rate=10**9) as disk:
        disk.set(stutter=40, stutter_share=50)
        assert (disk.get('access_us'), disk.get('rate'), disk.get('stutter')) == (5, 10**9, 40)
        fails(errno.EINVAL, lambda: disk.set(error=101))
        fails(errno.EINVAL, lambda: disk.set(hang='yes'))
        fails(errno.EINVAL, lambda: disk.set(rate=-1))
        fails(errno.ENODATA, lambda: disk.set(colour=1))
        assert 'user.slowdisk.hang' in os.listxattr(disk.path)


@test
def reads_and_writes_fail_with_eio():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'old')
        disk.set(error=100)
        fails(errno.EIO, (disk.path / 'a').read_bytes)
        with opened(disk.path / 'a', os.O_WRONLY) as file:
            fails(errno.EIO, os.write, file, b'new')
            fails(errno.EIO, os.fsync, file)
        disk.set(error=0)
        assert (disk.path / 'a').read_bytes() == b'old'


@test
def one_request_of_four_fails():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'x' * 4096)
        disk.set(error=25)
        failed = 0
        with opened(disk.path / 'a', os.O_RDONLY) as file:
            for _ in range(40):
                try:
                    os.pread(file, 4096, 0)
                except OSError:
                    failed += 1
        assert failed == 10, failed


@test
def a_full_disk_takes_nothing_and_gives_its_files():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'old')
        disk.set(full=1)
        fails(errno.ENOSPC, (disk.path / 'b').write_bytes, b'new')
        fails(errno.ENOSPC, (disk.path / 'c').mkdir)
        with opened(disk.path / 'a', os.O_WRONLY) as file:
            fails(errno.ENOSPC, os.write, file, b'new')
            fails(errno.ENOSPC, os.posix_fallocate, file, 0, MIB)
        assert os.statvfs(disk.path).f_bavail == 0
        assert (disk.path / 'a').read_bytes() == b'old'
        (disk.path / 'a').unlink()


@test
def a_hanging_disk_goes_on_when_it_is_released():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'hello')
        disk.set(hang=1)
        got = []
        reader = threading.Thread(target=lambda: got.append((disk.path / 'a').read_bytes()))
        reader.start()
        until(lambda: disk.stats()['queue'] > 0)
        assert (disk.path / 'a').stat().st_size == 5
        assert not got
        disk.set(hang=0)
        reader.join(20)
        assert got == [b'hello'], got


@test
def a_reader_of_a_hanging_disk_can_be_killed():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'hello')
        disk.set(hang=1)
        with subprocess.Popen(['cat', disk.path / 'a']) as reader:
            until(lambda: disk.stats()['queue'] > 0)
            reader.kill()
            assert reader.wait(20) == -signal.SIGKILL
        assert disk.stats()['queue'] == 0


@test
def a_reader_of_a_hanging_disk_gets_an_error_when_the_disk_is_gone():
    with a_disk() as disk:
        (disk.path / 'a').write_bytes(b'hello')
        disk.set(hang=1)
        errors = []

        def read():
            try:
                (disk.path / 'a').read_bytes()
            except OSError as error:
                errors.append(error.errno)

        reader = threading.Thread(target=read)
        reader.start()
        until(lambda: disk.stats()['queue'] > 0)
        disk.stop()
        reader.join(20)
        assert errors and errors[0] in (errno.ECONNABORTED, errno.ENOTCONN, errno.EIO), errors


@test
def nothing_stays_mounted_when_the_disk_is_killed():
    with a_disk() as disk:
        assert mounted(disk.path)
        disk.kill()
        until(lambda: not mounted(disk.path))
        assert os.listdir(disk.path) == []


@test
def the_disk_ends_with_a_test_that_is_killed():
    script = ('import sys, time; from slowdisk import SlowDisk; '
              'disk = SlowDisk(sys.argv[1]); print(disk.pid, flush=True); time.sleep(600)')
    with tempfile.TemporaryDirectory() as folder:
        with SlowDisk(folder, 'probe'):  # skips, if there can be none
            pass
        with subprocess.Popen([sys.executable, '-c', script, folder], stdout=subprocess.PIPE,
                              text=True) as killed:
            daemon = int(killed.stdout.readline())
            killed.kill()
        until(lambda: not os.path.exists(f'/proc/{daemon}'))


@test
def a_block_device_reads_through_the_disk():
    with a_disk() as disk, block_device(disk, 8 * MIB) as device:
        with open(device, 'wb') as file:
            file.seek(4 * MIB)
            file.write(b'hello'.ljust(4096))
            file.flush()
            os.fsync(file.fileno())
        before = disk.stats()
        buffer = mmap.mmap(-1, MIB)
        with opened(device, os.O_RDONLY | os.O_DIRECT) as file:
            assert os.preadv(file, [buffer], 4 * MIB) == MIB
        assert buffer[:5] == b'hello'
        assert counted(disk, before, 'bytes') == (MIB,)


@test
def a_file_system_lies_on_a_block_device():
    with tempfile.TemporaryDirectory() as folder, SlowDisk(folder) as disk:
        with block_folder(disk, 64 * MIB, f'{folder}/ext4') as files:
            data = os.urandom(MIB)
            (files / 'a').write_bytes(data)
            os.sync()
            disk.set(error=100)
            buffer = mmap.mmap(-1, MIB)
            with opened(files / 'a', os.O_RDONLY | os.O_DIRECT) as file:
                fails(errno.EIO, os.preadv, file, [buffer], 0)
                disk.set(error=0)
                assert os.preadv(file, [buffer], 0) == MIB
            assert buffer[:] == data


if __name__ == '__main__':
    run()
