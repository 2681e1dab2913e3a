# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtorrent, by its Python module, as a reader of .torrent files and as a peer."""

import json
import subprocess
import sys

from tap import Skip


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
                          check=True, timeout=30)
    return json.loads(done.stdout)
