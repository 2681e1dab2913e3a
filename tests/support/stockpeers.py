# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtorrent, by its Python module, as a reader of .torrent files and as a peer."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from proc import Proc, free_port
from tap import SLOWER, Skip

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torrent_peer.py')


# Prints what libtorrent reads in a file.
DESCRIBE = '''
import json, sys
import libtorrent
info = libtorrent.torrent_info(sys.argv[1])
print(json.dumps({'name': info.name(), 'bytes': info.total_size(), 'files': info.num_files(),
                  'piece-length': info.piece_length(), 'pieces': info.num_pieces(),
                  'hashes': [info.hash_for_piece(i).hex() for i in range(info.num_pieces())],
                  'info-hash': str(info.info_hash()), 'private': info.priv(),
                  'trackers': [[each.url, each.tier] for each in info.trackers()],
                  'seeds': [seed['url'] for seed in info.web_seeds()]}))
'''


def python():
    """Returns a Python that has libtorrent."""
    for found in (sys.executable, '/usr/bin/python3'):
        probe = subprocess.run([found, '-c', 'import libtorrent'], capture_output=True, check=False)
        if probe.returncode == 0:
            return found
    raise Skip('the Python module of libtorrent is missing (python3-libtorrent)')


def describe(path):
    done = subprocess.run([python(), '-c', DESCRIBE, path], capture_output=True, text=True,
                          check=True, timeout=30 * SLOWER)
    return json.loads(done.stdout)


class Peer(Proc):
    """A peer that has the files of a folder, or gets them. `peers` are addresses with ports."""

    def __init__(self, torrent, folder, *peers):
        super().__init__(python(), PEER, torrent, folder, *peers)
        self.port = int(self.wait_for_line(r'^port (\d+)$', timeout=20)[1])

    def sent(self):
        """Returns the bytes of pieces that it has sent."""
        return max((int(line.split()[1]) for line in self.lines if line.startswith('up ')), default=0)


class Tracker(Proc):
    """opentracker, for the torrents with these info hashes."""

    def __init__(self, *hashes):
        path = shutil.which('opentracker')
        if not path:
            raise Skip('opentracker is not installed')
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        with open(os.path.join(self.folder.name, 'hashes'), 'w', encoding='utf-8') as file:
            file.writelines(each + '\n' for each in hashes)
        for _ in range(5):
            self.port = free_port()
            super().__init__(path, '-i', '127.0.0.1', '-p', self.port, '-d', self.folder.name,
                             '-w', 'hashes')
            if self._listens():
                break
        else:
            raise AssertionError('opentracker found no port')
        self.url = f'http://127.0.0.1:{self.port}/announce'

    def _listens(self):
        """Waits until it listens. Returns whether it does: another program may have got its port."""
        while self.running():
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return True
            time.sleep(0.02)
        return False
