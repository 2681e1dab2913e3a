# SPDX-License-Identifier: LGPL-2.1-or-later
"""Imitated disks: a file system with the access time and the rate of a disk (slowdisk/slowdisk.c).

    with SlowDisk(folder, 'a', access_us=17000, rate=65_625_000) as disk:
        (disk.path / 'file').write_bytes(b'hello')
        disk.set(error=100)
        print(disk.stats()['errors'])

As root, this process gets mount points of its own, so that none outlives it and its children.
Make the first disk in the main thread.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess

from proc import Proc
from tap import Skip

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
PREFIX = 'user.slowdisk.'

_libc = ctypes.CDLL(None, use_errno=True)
_own_mounts = False


def _take_own_mounts():
    global _own_mounts
    if not _own_mounts and os.geteuid() == 0 and _libc.unshare(CLONE_NEWNS) == 0:
        _libc.mount(b'none', b'/', None, MS_REC | MS_PRIVATE, None)
    _own_mounts = True


def program():
    """Returns the path of the program. Skips the test if there can be no imitated disks."""
    path = os.environ.get('WEIR_SLOWDISK')
    if not path:
        raise Skip('built without libfuse3')
    if not os.access('/dev/fuse', os.R_OK | os.W_OK):
        raise Skip('/dev/fuse is missing or not accessible')
    if not shutil.which('fusermount3'):
        raise Skip('fusermount3 is not installed')
    return path


class SlowDisk:
    """An imitated disk, mounted at folder/name. Its files lie in `backing`, by default
    folder/name.files.

    Factors (slowdisk/model.h): access_us, rate (bytes/s; 0: no times), stutter (% of useless data),
    stutter_share (% of requests), error (%), load (% of the time), hang (0 or 1), full (0 or 1),
    refuse_direct (0 or 1).
    """

    def __init__(self, folder, name='disk', backing=None, **factors):
        _take_own_mounts()
        self.path = pathlib.Path(folder, name)
        self.backing = pathlib.Path(backing or f'{self.path}.files')
        self.path.mkdir(exist_ok=True)
        self.backing.mkdir(exist_ok=True)
        self._daemon = Proc(program(), self.backing, self.path,
                            *(f'{key.replace("_", "-")}={value}' for key, value in factors.items()))
        try:
            self._daemon.wait_for_line('is mounted')
        except AssertionError:
            self._daemon.stop()
            reason = self._daemon.output().strip().splitlines()
            raise Skip(f'no FUSE file system: {reason[-1] if reason else "no reason"}') from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self._daemon.pid

    def set(self, **factors):
        for key, value in factors.items():
            os.setxattr(self.path, PREFIX + key.replace('_', '-'), str(value).encode())

    def get(self, factor):
        return int(os.getxattr(self.path, PREFIX + factor.replace('_', '-')))

    def stats(self):
        """Returns the counters (struct disk_stats), with _ in their names."""
        lines = os.getxattr(self.path, PREFIX + 'stats').decode().splitlines()
        return {name.replace('-', '_'): int(value) for name, value in map(str.split, lines)}

    def stop(self):
        """The disk is gone: its mount point is an empty folder again."""
        self._daemon.stop()

    def kill(self):
        """Ends the disk without a chance to clean up."""
        self._daemon.kill()


def _root_run(*words):
    environment = {**os.environ, 'PATH': os.environ['PATH'] + ':/sbin:/usr/sbin'}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, env=environment)
    if done.returncode:
        raise Skip(f'{words[0]}: {done.stderr.strip() or done.returncode}')
    return done.stdout.strip()


@contextlib.contextmanager
def block_device(disk, size):
    """Yields the path of a block device of `size` bytes on an imitated disk: a loop device over a
    file on it. Skips without root or loop devices."""
    if os.geteuid() != 0:
        raise Skip('a loop device takes root')
    image = disk.path / 'image'
    with open(image, 'wb') as file:
        file.truncate(size)
    device = _root_run('losetup', '--find', '--show', '--direct-io=on', image)
    held = os.open(device, os.O_RDONLY)
    try:
        # The kernel detaches a device in use when its last user has closed it, however that ends.
        _root_run('losetup', '--detach', device)
        yield pathlib.Path(device)
    finally:
        os.close(held)


@contextlib.contextmanager
def block_folder(disk, size, folder):
    """Mounts an ext4 file system on a block device on an imitated disk. Yields its folder."""
    with block_device(disk, size) as device:
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        _root_run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,nodiscard', '-O', '^has_journal',
                  '-m', '0', device)
        _root_run('mount', '-o', 'noatime', device, folder)
        try:
            yield folder
        finally:
            _root_run('umount', folder)
