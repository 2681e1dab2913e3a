# SPDX-License-Identifier: LGPL-2.1-or-later
"""weir-store, and block stores in temporary folders."""

import contextlib
import json
import os
import random
import subprocess
import tempfile

from proxy import CLIP
from tap import SLOWER, Skip


def program():
    path = os.environ.get('WEIR_STORE_PROGRAM')
    if not path:
        raise Skip('this build has no store')
    return path


def call(*words, status=0, **more):
    """Runs weir-store. Returns both outputs."""
    done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True, timeout=120 * SLOWER,
                          check=False, **more)
    assert done.returncode == status, (words, done)
    return done.stdout, done.stderr


def told(*words, status=0):
    """Returns what weir-store --json prints."""
    return json.loads(call(*words, '--json', status=status)[0])


def fails(*words, line, status=1):
    """Checks that weir-store fails with one line on standard error, with this text."""
    out, err = call(*words, status=status)
    lines = [each for each in err.splitlines() if not each.startswith('weir-store: warning: ')]
    assert len(lines) == 1 and lines[0].startswith('weir-store: ') and line in lines[0], (out, err)


class Store:
    """A store with disks that are folders of one folder."""

    def __init__(self, top, disks=4, policy='rda', slice_='500ms'):
        self.top = top
        self.dir = os.path.join(top, 'store')
        self.disks = [self.folder(f'disk{i}') for i in range(disks)]
        call('init', self.dir, '--disks', ','.join(self.disks), '--policy', policy,
             '--slice', slice_)

    def folder(self, name):
        path = os.path.join(self.top, name)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, name, data):
        path = os.path.join(self.folder('files'), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(data)
        return path

    def add(self, name, data, *more):
        """Adds a title with these bytes, at 1 Mb/s: a block has 65536 bytes."""
        call('add', self.dir, self.file('data', data), '--name', name, '--rate', '1M', *more)

    def title(self, name):
        return told('show', self.dir, name)

    def path(self, name, block, copy):
        """Returns the path of a copy of a block."""
        number = self.title(name)['blocks'][block]['disks'][copy]
        disk = {each['number']: each['path'] for each in told('show', self.dir)['disks']}[number]
        found = [path for path in files_below(os.path.join(disk, 'blocks'))
                 if path.endswith(f'{block:08x}') and self.is_of(path, name, block)]
        assert len(found) == 1, found
        return found[0]

    def is_of(self, path, name, block):
        """Tells whether a block's folder is that of the title: its index has the folder's name."""
        with open(os.path.join(self.dir, 'titles', name + '.index'), 'rb') as file:
            return file.read(26)[10:].hex() == path.split('/')[-2]

    def read(self, name, copy=0):
        """Returns the bytes of a title, of the first or the last copies of its blocks."""
        title = self.title(name)
        disks = {each['number']: each['path'] for each in told('show', self.dir)['disks']}
        with open(os.path.join(self.dir, 'titles', name + '.index'), 'rb') as file:
            folder = file.read(26)[10:].hex()
        data = b''
        for i, block in enumerate(title['blocks']):
            disk = disks[block['disks'][min(copy, len(block['disks']) - 1)]]
            with open(os.path.join(disk, 'blocks', folder, f'{i:08x}'), 'rb') as file:
                data += file.read()
        return data

    def read_good(self, name):
        """Returns the bytes of a title, of each block the first copy that is there."""
        title = self.title(name)
        disks = {each['number']: each['path'] for each in told('show', self.dir)['disks']}
        with open(os.path.join(self.dir, 'titles', name + '.index'), 'rb') as file:
            folder = file.read(26)[10:].hex()
        data = b''
        for i, block in enumerate(title['blocks']):
            paths = [os.path.join(disks[n], 'blocks', folder, f'{i:08x}') for n in block['disks']]
            with open(next(path for path in paths if os.path.exists(path)), 'rb') as file:
                data += file.read()
        return data

    def blocks(self):
        """Returns the paths of all files of blocks on the disks."""
        return [path for disk in self.disks for path in blocks_of(disk)]

    def is_clean(self):
        """Checks that verify finds nothing."""
        found = told('verify', self.dir)
        assert not found['problems'] and not found['leftovers'], found
        return found


@contextlib.contextmanager
def store(**more):
    with tempfile.TemporaryDirectory(prefix='weir-store-') as top:
        yield Store(top, **more)


def in_namespace(script, *words):
    """Runs a shell script in a mount namespace, where it may mount."""
    for unshare in ['unshare', '-m'], ['unshare', '-Urm']:
        if subprocess.run([*unshare, 'sh', '-c', 'mount -t tmpfs none /mnt'],
                          capture_output=True).returncode == 0:
            return subprocess.run([*unshare, 'sh', '-c', script, 'sh', *words], timeout=60 * SLOWER,
                                  capture_output=True, text=True)
    raise Skip('cannot mount in a namespace')


def blocks_of(disk):
    """Returns the paths of the files of blocks on a disk, without the copies of the indexes."""
    return [path for path in files_below(os.path.join(disk, 'blocks')) if os.path.basename(path) != 'index']


def files_below(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def some_bytes(length, seed=1):
    return random.Random(seed).randbytes(length)


def clip():
    with open(CLIP, 'rb') as file:
        return file.read()
