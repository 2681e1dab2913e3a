# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what RTSP readers of stored titles cost the proxy, each of a title of its own, beside
live555's media server. Both read Matroska files from the page cache and send H.264 over UDP or TCP.

The case of 500 readers is in the rig (rig.py), so that the server pays for its sending alone. Its titles
are one file with 500 names, as the page cache has no room for more.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from load import Loads
from proc import Proc
from report import Column
from rig import PROBES
from servers import BUILD, CACHE, ROOT, Usage, children_of, raise_file_limit, start_proxy

NAME = 'titles'
TITLE = 'RTSP readers of stored titles of 6 Mb/s, each of another title'
CASE, WHO, YARDSTICK = 'readers', 'server', 'live555'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU % per Gb/s', '{:.0f}', spread=True),
    Column('all', 'CPU % in all'),
    Column('delivered', 'delivered %'),
    Column('lost', 'packets lost'),
    Column('threads', 'threads'),
    Column('memory', 'MiB a reader', '{:.2f}'),
)

RATE = 6  # Mb/s
SETTLE, SECONDS = 6, 10
LENGTH, LENGTH_RIG = 30, 60  # s, of a title
PORT = 18890
LIVE555_PORT = 8554 if os.geteuid() else 554  # its own choice
MANY, FEW = 100, 30
IN_RIG, JOINING = 500, 25  # readers; those that join in a second
FILES, THREADS = 24, 3  # of a title, at most, in one process and in all
DELIVERED_LEAST = 90  # %, of the proxy; with less, it has another load than it seems


def title(length=LENGTH):
    """Makes a title of RATE Mb/s, once."""
    path = CACHE / f'title-{RATE}-{length}s.mkv'
    if not path.exists():
        part = path.with_suffix('.part.mkv')
        subprocess.run(
            ['ffmpeg', '-nostdin', '-loglevel', 'error', '-y', '-stream_loop', '-1', '-i',
             ROOT / 'tests/data/bigbuckbunny.mp4', '-an', '-t', str(length), '-c:v', 'libx264',
             '-preset', 'veryfast', '-b:v', f'{RATE}M', '-minrate', f'{RATE}M', '-maxrate',
             f'{RATE}M', '-bufsize', f'{RATE // 2}M', '-nal-hrd', 'cbr', '-g', '48', part],
            check=True)
        part.rename(path)
    return path


def proxy(folder, rig=None):
    mount = {'upstream': f'file://{folder}/titles/', 'max-titles': 4096}
    address, where = (rig.server_address, rig.server) if rig else ('127.0.0.1', ())
    server = start_proxy(folder, {'listen': f'{address}:{PORT}', 'mounts': {'/titles': mount}}, where)
    return server, f'{PORT}/titles'


def live555(folder, rig=None):
    server = Proc(*(rig.server if rig else ()), 'live555MediaServer', cwd=os.path.join(folder, 'titles'))
    return server, LIVE555_PORT


def used(pid):
    every = [Usage.of(each) for each in (pid, *children_of(pid))]
    return Usage(time.monotonic(), *(sum(each[n] for each in every) for n in (1, 2, 3)))


def load(place, readers, transport):
    urls = [f'rtsp://127.0.0.1:{place}/{n}.mkv' for n in range(readers)]
    return subprocess.Popen(
        [BUILD / 'apps/rtsp-load/rtsp-load', '--readers', str(readers), '--transport', transport,
         '--duration', str(SETTLE + SECONDS + 2), '--json', *urls],
        stdout=subprocess.PIPE, text=True)


def one(start, readers, transport):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE))
        os.mkdir(os.path.join(folder, 'titles'))
        for n in range(readers):
            shutil.copyfile(title(), os.path.join(folder, 'titles', f'{n}.mkv'))
        server, place = start(folder)
        stack.enter_context(server)
        time.sleep(2)  # live555 does not say when it listens
        assert server.running(), server.output()
        before = used(server.pid)
        client = load(place, readers, transport)
        time.sleep(SETTLE)
        begin = used(server.pid)
        time.sleep(SECONDS)
        end = used(server.pid)
        result = json.loads(client.communicate()[0])
    bits = result['bytes'] * 8 / (SETTLE + SECONDS + 2)
    cpu = 100 * (end.cpu - begin.cpu) / (end.at - begin.at)
    delivered = 100 * bits / (readers * RATE * 1e6)
    least = DELIVERED_LEAST if start == proxy else 1
    assert delivered > least, f'only {delivered:.0f} % were delivered'
    return {'cpu': cpu / (bits / 1e9), 'all': cpu, 'delivered': delivered,
            'lost': result['lost'], 'threads': end.threads,
            'memory': (end.rss - before.rss) / readers / (1 << 20)}


def one_in_rig(rig, start, readers, seconds=SECONDS):
    rig.drop_all_but(PROBES)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE))
        os.mkdir(os.path.join(folder, 'titles'))
        for n in range(readers):
            os.link(title(LENGTH_RIG), os.path.join(folder, 'titles', f'{n}.mkv'))
        server, place = start(folder, rig)
        stack.enter_context(server)
        time.sleep(2)
        assert server.running(), server.output()
        before = used(server.pid)
        joining = readers / JOINING
        urls = [f'rtsp://{rig.server_address}:{place}/{n}.mkv' for n in range(readers)]
        client = stack.enter_context(Loads(
            rig, readers, JOINING, PROBES, '--transport', 'udp', '--duration',
            joining + SETTLE + seconds + 1, *urls))
        time.sleep(joining + SETTLE)
        begin, sent = used(server.pid), rig.rtp('media', 'dropped')
        time.sleep(seconds)
        end, sent = used(server.pid), rig.rtp('media', 'dropped') - sent
        result = client.result(60)
    cpu, bits = 100 * (end.cpu - begin.cpu) / (end.at - begin.at), sent * 8 / (end.at - begin.at)
    return {'cpu': cpu / (bits / 1e9), 'all': cpu, 'delivered': 100 * bits / (readers * RATE * 1e6),
            'lost': result['lost'], 'threads': end.threads,
            'memory': (end.rss - before.rss) / readers / (1 << 20)}


def has_room(readers):
    """Tells whether the system lets the proxy open so many titles. Says so if it does not."""
    with open('/proc/sys/kernel/threads-max', encoding='utf-8') as file:
        threads = int(file.read())
    for what, has, needs in (('open files (ulimit -n)', raise_file_limit(), FILES * readers),
                             ('threads (kernel.threads-max)', threads, THREADS * readers)):
        if has < needs + 500:
            print(f'titles: {readers} titles need {needs + 500} {what}, and {has} are allowed: left '
                  'out', file=sys.stderr)
            return False
    return True


def run(rig, quick):
    servers = [('rtsp-proxy', proxy)]
    if shutil.which('live555MediaServer'):
        servers.append(('live555', live555))
    else:
        print('titles: live555MediaServer is not on the PATH', file=sys.stderr)
    for transport in 'udp', 'tcp':
        for readers in (FEW,) if quick else (FEW, MANY):
            for _ in range(1 if quick else 2):
                for name, start in servers:
                    yield f'{readers}, {transport.upper()}', name, one(start, readers, transport)
    if quick or not has_room(IN_RIG):
        return
    if not rig.real:
        print('titles: the case in the rig is left out', file=sys.stderr)
        return
    for _ in range(2):
        for name, start in servers:
            yield f'{IN_RIG}, UDP, in the rig', name, one_in_rig(rig, start, IN_RIG)
