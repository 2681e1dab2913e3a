# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays each file of a folder, which WEIR_FILES names, as a title over RTSP and as a clip over HLS.

A file shall play within a second, or be refused with a status and a reason within a second. Over HLS, a
playlist comes with the first segment: a second of the clip later. Names the files that do neither.
"""

import http.client
import os
import re
import sys
import tempfile
import time
import urllib.parse

from proc import Rtsp
from report import Column
from servers import CACHE, start_proxy
from tap import Skip

NAME = 'files'
TITLE = 'Files of any kind: played within 1 s, or refused with a reason'
CASE, WHO, YARDSTICK = 'as', 'server', None
LOG = False
COLUMNS = (
    Column('played', 'played'),
    Column('refused', 'refused (415)'),
    Column('down', 'no media (503)'),
    Column('neither', 'neither'),
    Column('p50', 'ms p50'),
    Column('p95', 'ms p95'),
    Column('worst', 'ms at most'),
)

LIMIT, SEGMENT = 1, 1  # s
PATIENCE = 12  # s, until a file is given up
PORT, WEB_PORT = 18895, 18896


def play_rtsp(name):
    """Plays a title until its first packet. Returns the status, or 0 if no packet comes."""
    rtsp = Rtsp(PORT, timeout=PATIENCE)
    with rtsp.socket:
        url = f'rtsp://127.0.0.1:{PORT}/files/{urllib.parse.quote(name)}'
        status, _, body = rtsp.request('DESCRIBE', url)
        if status != 200:
            return status
        for track in range(body.count(b'\nm=')):
            status = rtsp.request('SETUP', f'{url}/stream={track}',
                                  {'Transport': f'RTP/AVP/TCP;unicast;interleaved={2 * track}-{2 * track + 1}'})[0]
            if status != 200:
                return status
        status = rtsp.request('PLAY', url)[0]
        while status == 200 and rtsp.frame()[0] % 2:  # RTCP
            pass
        return status


class Web:
    def __init__(self):
        self.connection = http.client.HTTPConnection('127.0.0.1', WEB_PORT, timeout=PATIENCE)

    def get(self, path):
        self.connection.request('GET', path)
        answer = self.connection.getresponse()
        return answer.status, answer.read()


def play_hls(number):
    """Plays a clip until its first part. Returns the status."""
    web, root = Web(), f'/hls/clip-{number}'
    status, body = web.get(f'{root}/index.m3u8')
    if status != 200:
        return status
    name = next(line for line in body.decode().splitlines() if line and line[0] != '#')
    folder = f'{root}/{name.rpartition("/")[0]}'
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status, body = web.get(f'{root}/{name}')
        part = re.search(r'#EXT-X-PART:.*URI="([^"]+)"', body.decode())
        if status != 200 or part:
            break
        time.sleep(0.02)
    if status != 200 or not part:
        return status if status != 200 else 0
    return web.get(f'{folder}/{part[1]}')[0]


def measure(who, files, play, limit):
    """Plays each file. Returns the values of the table, and names what is neither played nor refused."""
    times, values = [], {'played': 0, 'refused': 0, 'down': 0, 'neither': 0}
    for file, argument in files:
        begin = time.monotonic()
        try:
            status = play(argument)
        except (OSError, http.client.HTTPException, EOFError, AssertionError) as error:
            status = repr(error)
        took = time.monotonic() - begin
        kind = {200: 'played', 415: 'refused', 503: 'down'}.get(status, 'neither') if took <= limit else 'neither'
        values[kind] += 1
        times.append(1000 * took)
        if kind in ('neither', 'down'):
            print(f'  {who}: {file}: {status} after {took:.2f} s', file=sys.stderr, flush=True)
    times.sort()
    return {**values, 'p50': times[len(times) // 2], 'p95': times[len(times) * 95 // 100], 'worst': times[-1]}


def run(_rig, _quick):
    where = os.environ.get('WEIR_FILES')
    if not where:
        raise Skip('WEIR_FILES names no folder of media files')
    where = os.path.realpath(where)
    names = sorted(name for name in os.listdir(where) if name[0] != '.')
    clips = {f'/clip-{i}': {'upstream': 'file://' + urllib.parse.quote(os.path.join(where, name))}
             for i, name in enumerate(names)}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, start_proxy(folder, {
            'listen': f'127.0.0.1:{PORT}', 'http': {'listen': f'127.0.0.1:{WEB_PORT}'}, 'hls': {},
            'mounts': {'/files': {'upstream': f'file://{urllib.parse.quote(where)}/'}, **clips}}) as server:
        server.wait_for_line(r' serves rtsp:')
        yield 'titles over RTSP', 'rtsp-proxy', measure('RTSP', zip(names, names), play_rtsp, LIMIT)
        yield 'clips over HLS', 'rtsp-proxy', measure('HLS', zip(names, range(len(names))), play_hls,
                                                      LIMIT + SEGMENT)
