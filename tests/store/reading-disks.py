# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles that are read from imitated disks: disks that refuse O_DIRECT, fail, and are gone."""

import os
import pathlib
import random
import signal
import subprocess
import tempfile

from sanitized import environment
from slowdisk import SlowDisk
from tap import run, test

BYTES = 3_000_000
N_DISKS = 3


class Store:
    """A store on imitated disks with the title a."""

    def __init__(self, **factors):
        self.folder = tempfile.TemporaryDirectory()
        top = pathlib.Path(self.folder.name)
        self.disks = [SlowDisk(top, f'disk{i}', **factors) for i in range(N_DISKS)]
        self.path = top / 'store'
        self.file = top / 'a'
        self.file.write_bytes(random.Random(1).randbytes(BYTES))
        self.tool('init', '--policy', 'rda', '--slice', '1s',
                  '--disks', ','.join(str(disk.path) for disk in self.disks))
        self.tool('add', self.file, '--rate', '2M')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for disk in self.disks:
            disk.stop()
        self.folder.cleanup()

    def tool(self, command, *words):
        program = os.environ['WEIR_STORE_PROGRAM']
        done = subprocess.run([program, command, self.path, *words], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    def read(self):
        """Starts to read the title through its disks."""
        self.copy = pathlib.Path(self.folder.name, 'copy')
        return subprocess.Popen(
            ['gst-launch-1.0', '-q', 'blockstoresrc', f'location={self.path}', 'title=a', '!',
             'filesink', f'location={self.copy}'], env=environment(), stderr=subprocess.PIPE,
            text=True)

    def check(self, reading):
        """Waits for the end, and compares the bytes."""
        _, told = reading.communicate(timeout=60)
        assert reading.returncode == 0, told
        assert self.copy.read_bytes() == self.file.read_bytes(), told
        return told


@test
def disks_that_refuse_o_direct_are_read():
    """a title is read from disks whose file system refuses O_DIRECT with EINVAL"""
    with Store(refuse_direct=1) as store:
        try:
            os.close(os.open(next(store.disks[0].path.glob('blocks/*/*')),
                             os.O_RDONLY | os.O_DIRECT))
            raise AssertionError('the disk does not refuse O_DIRECT')
        except OSError:
            pass
        before = [disk.stats()['bytes'] for disk in store.disks]
        told = store.check(store.read())
        assert 'disk' not in told, told
        read = [disk.stats()['bytes'] - bytes for disk, bytes in zip(store.disks, before)]
        assert BYTES <= sum(read) < 2 * BYTES, read


@test
def a_disk_whose_file_system_dies_is_made_up_for():
    """a title is read while a disk's file system is killed under its reads"""
    with Store() as store:
        store.disks[0].set(hang=1)
        reading = store.read()
        while store.disks[0].stats()['queue'] == 0:
            assert reading.poll() is None, 'read without the first disk'
        store.disks[0].kill()
        store.check(reading)


@test
def a_reader_ends_while_a_disk_hangs():
    """a process that reads from a disk that hangs ends on SIGINT, and can be killed"""
    for number in signal.SIGINT, signal.SIGKILL:
        with Store() as store:
            for disk in store.disks:
                disk.set(hang=1)
            reading = store.read()
            while not any(disk.stats()['queue'] for disk in store.disks):
                assert reading.poll() is None, 'read without disks'
            reading.send_signal(number)
            try:
                reading.wait(timeout=20)
            finally:
                for disk in store.disks:
                    disk.set(hang=0)
                reading.kill()


if __name__ == '__main__':
    run()
