# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how soon the API answers about a day of short recordings: its lists, and stretches across
their borders."""

import contextlib
import json
import random
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from datetime import datetime, timezone

from report import Column
from servers import BUILD, CACHE, Usage, start_proxy

NAME = 'recordings'
TITLE = 'The first byte of an answer about a day of recordings'
CASE, WHO, YARDSTICK = 'request', 'segments', None
LOG = False
COLUMNS = (
    Column('p50', 'ms p50', '{:.1f}'),
    Column('p99', 'ms p99', '{:.1f}'),
    Column('worst', 'ms at most', '{:.1f}'),
    Column('cpu', 'CPU ms a request', '{:.1f}'),
    Column('requests', 'requests'),
    Column('start', 's until the proxy knows all', '{:.1f}'),
)

DAY = 86400
START = 1763856000  # 23 November 2025
PORT = 19554
READY = 600  # s


def text(seconds):
    return datetime.fromtimestamp(START + seconds, timezone.utc).isoformat()


def path(name, **query):
    return f'/v1/recordings{name}?' + urllib.parse.urlencode({'path': '/cam', **query})


def first_byte(target, headers=()):
    """Sends a request over a new connection. Returns the ms until its answer begins, and the
    answer's status."""
    begin = time.perf_counter()
    with socket.create_connection(('127.0.0.1', PORT), 30) as connection:
        lines = f'GET {target} HTTP/1.1', 'Host: 127.0.0.1', 'Connection: close', *headers
        connection.sendall('\r\n'.join((*lines, '', '')).encode())
        answer = connection.recv(65536)
        took = time.perf_counter() - begin
    return 1000 * took, int(answer.split()[1])


def size_of(target):
    request = urllib.request.Request(f'http://127.0.0.1:{PORT}{target}', method='HEAD')
    with urllib.request.urlopen(request) as answer:
        return int(answer.headers['Content-Length'])


def cases(chance):
    """Yields the name of each kind of request, and a function that makes one: its path, its headers
    and the status of its answer."""
    whole = path('/get', start=text(0), duration='24h')
    size = size_of(whole)

    def moment(before):
        return text(chance.uniform(0, DAY - before))

    def part():
        first = chance.randrange(size)
        return whole, [f'Range: bytes={first}-{min(first + 999999, size - 1)}'], 206

    yield 'list, 100', lambda: (path('', **{'from': moment(1000)}), (), 200)
    yield 'list, 1000', lambda: (path('', **{'from': moment(10000)}, limit=1000), (), 200)
    yield 'a minute', lambda: (path('/get', start=moment(60), duration='60s'), (), 200)
    yield 'an hour', lambda: (path('/get', start=moment(3600), duration='1h'), (), 200)
    yield 'the day', lambda: (whole, (), 200)
    yield '1 MB of the day', part


def fill(folder, segment):
    subprocess.run([BUILD / 'tests/bench/recordings_fill', folder, '/cam', str(START),
                    str(DAY // segment), str(segment)], check=True)


def wait_until_known(server, segments):
    begin = time.monotonic()
    while time.monotonic() < begin + READY:
        with contextlib.suppress(OSError), \
                urllib.request.urlopen(f'http://127.0.0.1:{PORT}/v1/mounts/cam') as answer:
            if json.load(answer).get('recording', {}).get('segments') == segments:
                return time.monotonic() - begin
        assert server.running(), server.output()
        time.sleep(0.02)
    raise AssertionError(f'the proxy does not know {segments} segments within {READY} s')


def measure(server, requests, make):
    took, before = [], Usage.of(server.pid)
    for _ in range(requests):
        target, headers, expected = make()
        ms, status = first_byte(target, headers)
        assert status == expected, (target, headers, status)
        took.append(ms)
    cpu = Usage.of(server.pid).cpu - before.cpu
    return {'p50': statistics.median(took), 'p99': statistics.quantiles(took, n=100)[98],
            'worst': max(took), 'cpu': 1000 * cpu / requests, 'requests': requests}


def run(_rig, quick):
    for segment in (10,) if quick else (60, 10, 1):
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fill(folder, segment)
            # The upstream is never there: what is recorded stays as it is.
            mount = {'upstream': 'rtsp://127.0.0.1:1/', 'record': {'folder': folder, 'segment': f'{segment}s'}}
            with start_proxy(folder, {'listen': '127.0.0.1:0', 'api': f'127.0.0.1:{PORT}',
                                      'mounts': {'/cam': mount}}) as server:
                start = wait_until_known(server, DAY // segment)
                for name, make in cases(random.Random(1)):
                    yield name, f'{DAY // segment} of {segment} s', {
                        **measure(server, 100 if quick else 500, make), 'start': start}
