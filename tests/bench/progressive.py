# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what HTTP readers of stored titles cost the proxy, beside nginx with sendfile. Both send
from the page cache, at the rate of the title."""

import contextlib
import os
import pathlib
import shutil
import socket
import struct
import sys
import tempfile
import time

from proc import Proc
from report import Column
from servers import Usage, start_proxy

NAME = 'progressive'
TITLE = 'HTTP readers of 6 Mb/s, from the page cache, at the rate of the title'
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
SLICE = 5  # s; each reader gets one at once, as a buffer
WARM = 3  # s, for that
SECONDS = 20
PORT = 18888
READER = pathlib.Path(__file__).with_name('progressive_readers.py')


def write_film(path, seconds):
    """Writes an MP4 header that gives the duration, and zeros at the rate."""
    size = RATE * seconds // 8
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
    limit_rate {RATE // 8}; limit_rate_after {RATE // 8 * SLICE}; }} }}
}}
''')
    return Proc('nginx', '-c', path, '-p', folder)


def wait_for_port(server):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', PORT), 1):
            return
        assert server.running(), server.output()
        time.sleep(0.05)


def one(start, readers):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.mkdir(os.path.join(folder, 'films'))
        write_film(os.path.join(folder, 'films', 'a.mp4'), SECONDS + WARM + 4 * SLICE)
        server = stack.enter_context(start(folder))
        wait_for_port(server)
        before = Usage.of(server.pid)
        client = stack.enter_context(Proc(sys.executable, READER, '127.0.0.1', PORT, '/films/a.mp4', readers, WARM, SECONDS))
        client.wait_for_line('^BEGIN', timeout=60)
        begin = Usage.of(server.pid)
        got = int(client.wait_for_line(r'^BYTES (\d+)', timeout=SECONDS + 60)[1])
        end = Usage.of(server.pid)
    seconds = end.at - begin.at
    cpu, bits = 100 * (end.cpu - begin.cpu) / seconds, got * 8 / seconds
    return {'cpu': cpu / (bits / 1e9), 'all': cpu, 'delivered': 100 * bits / (readers * RATE),
            'threads': end.threads, 'memory': (end.rss - before.rss) / 1024 / readers}


def run(_rig, quick):
    servers = [('rtsp-proxy', proxy)] + ([('nginx', nginx)] if shutil.which('nginx') else [])
    for readers in (FEW, READERS):
        for _ in range(1 if quick else 3):
            for name, start in servers:
                yield str(readers), name, one(start, readers)
