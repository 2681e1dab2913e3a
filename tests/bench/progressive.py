# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what HTTP readers of stored titles cost the proxy, beside nginx with sendfile. Both send
from the page cache, at the rate of the title. Then many readers of titles of a block store, whose
threads must be as few."""

import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from proc import Proc
from report import Column
from servers import BUILD, Usage, raise_file_limit, start_proxy

NAME = 'progressive'
TITLE = 'HTTP readers of 6 Mb/s from the page cache, or of 1 Mb/s from a block store, at the rate of the title'
CASE, WHO, YARDSTICK = 'readers', 'server', 'nginx'
LOG = False
MOST_DELIVERED = 130  # %, because each reader gets a slice at once
COLUMNS = (
    Column('cpu', 'CPU % per Gb/s', '{:.1f}', spread=True),
    Column('all', 'CPU % in all'),
    Column('delivered', 'delivered %'),
    Column('threads', 'threads'),
    Column('memory', 'KiB a reader', '{:.1f}'),
)

READERS = 500
FEW = 100
RATE = 6000000  # bits a second
SLICE = 5  # s; each reader gets two at once, one of them as a buffer
WARM = 3  # s, for that
SECONDS = 20
# Of the readers of a block store:
STORE_READERS, STORE_RATE, STORE_WARM, STORE_TITLES, STORE_DISKS = 5000, 1000000, 15, 20, 4
THREADS_MOST = 8  # beyond those at rest
PORT = 18888
READER = pathlib.Path(__file__).with_name('progressive_readers.py')


def write_film(path, seconds, rate=RATE):
    """Writes an MP4 header that gives the duration, and zeros at the rate."""
    size = rate * seconds // 8
    with open(path, 'wb') as file:
        file.write(struct.pack('>I4s4s', 12, b'ftyp', b'isom'))
        file.write(struct.pack('>I4sI4s12xII', 36, b'moov', 28, b'mvhd', 1000, 1000 * seconds))
        file.write(struct.pack('>I4s', 0, b'mdat'))
        file.write(bytes(size - file.tell()))


def proxy(folder):
    return start_proxy(folder, {
        'listen': '127.0.0.1:0', 'http': {'listen': f'127.0.0.1:{PORT}'},
        'limits': {'connections': 100000},
        'mounts': {'/films': {'upstream': f'file://{folder}/films/'}}})


def make_store(folder, rate, *words):
    """Makes a block store of the films in the folder, each block on two of its disks."""
    def tool(*words):
        subprocess.run([BUILD / 'apps/weir-store/weir-store', *words], check=True,
                       capture_output=True)

    store, films = (os.path.join(folder, name) for name in ('store', 'films'))
    disks = [os.path.join(folder, f'disk{n}') for n in range(STORE_DISKS)]
    for disk in disks:
        os.mkdir(disk)
    tool('init', store, '--disks', ','.join(disks), '--policy', 'rda', *words)
    tool('add', store, '--rate', str(rate), films)
    return store


def block_store(folder):
    """Starts a proxy that serves the films from a block store."""
    return start_proxy(folder, {
        'listen': '127.0.0.1:0', 'http': {'listen': f'127.0.0.1:{PORT}'},
        'mounts': {'/films': {'upstream': f'store://{make_store(folder, STORE_RATE)}/'}}})


def nginx(folder):
    path = os.path.join(folder, 'nginx.conf')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'''daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{ worker_connections 20000; }}
http {{
  access_log off; sendfile on; tcp_nopush on; default_type video/mp4;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{PORT}; location / {{ root {folder};
    limit_rate {RATE // 8}; limit_rate_after {RATE // 8 * 2 * SLICE}; }} }}
}}
''')
    return Proc('nginx', '-c', path, '-p', folder)


def wait_for_port(server):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', PORT), 1):
            return
        assert server.running(), server.output()
        time.sleep(0.05)


def one(start, readers, rate=RATE, titles=1, warm=WARM):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.mkdir(os.path.join(folder, 'films'))
        for n in range(titles):
            write_film(os.path.join(folder, 'films', f'{n}.mp4'), SECONDS + warm + 4 * SLICE, rate)
        server = stack.enter_context(start(folder))
        wait_for_port(server)
        before = Usage.of(server.pid)
        paths = ','.join(f'/films/{n}.mp4' for n in range(titles))
        client = stack.enter_context(Proc(sys.executable, READER, '127.0.0.1', PORT, paths, readers, warm, SECONDS))
        client.wait_for_line('^BEGIN', timeout=60)
        begin = Usage.of(server.pid)
        got = int(client.wait_for_line(r'^BYTES (\d+)', timeout=SECONDS + 60)[1])
        end = Usage.of(server.pid)
    assert titles == 1 or end.threads <= before.threads + THREADS_MOST, (before, end)
    seconds = end.at - begin.at
    cpu, bits = 100 * (end.cpu - begin.cpu) / seconds, got * 8 / seconds
    return {'cpu': cpu / (bits / 1e9), 'all': cpu, 'delivered': 100 * bits / (readers * rate),
            'threads': end.threads, 'memory': (end.rss - before.rss) / 1024 / readers}


def run(_rig, quick):
    servers = [('rtsp-proxy', proxy)] + ([('nginx', nginx)] if shutil.which('nginx') else [])
    for readers in (FEW, READERS):
        for _ in range(1 if quick else 3):
            for name, start in servers:
                yield str(readers), name, one(start, readers)
    if quick:
        return
    limit = raise_file_limit()
    if limit < STORE_READERS + 200:
        print(f'progressive: only {limit} files may be open (ulimit -n), so there are no '
              f'{STORE_READERS} readers', file=sys.stderr)
        return
    yield f'{STORE_READERS}, block store', 'rtsp-proxy', one(
        block_store, STORE_READERS, STORE_RATE, STORE_TITLES, STORE_WARM)
