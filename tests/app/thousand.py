# SPDX-License-Identifier: LGPL-2.1-or-later
"""The API of a proxy with 1000 mounts: what one request may cost."""

import http.client
import os
import re
import shutil

from control import CLIP_URI, Controlled, Watch
from proxy import wait_until
from tap import Skip, run, test

NOWHERE = 'rtsp://127.0.0.1:9/x'
GROWTH_KIB_MAX = 32 << 10 # of one request; the text of all metrics has 3.4 MiB

RANGES = [
    'bytes=' + ','.join(['0-'] * 1200),       # each is the whole answer
    'bytes=-99999999',                        # more than there is
    'bytes=0-0,0-0,0-0', 'bytes=5-9,0-7,3-20', 'bytes=9-5', 'bytes=1000000000-', 'bytes=-0', 'bytes=-',
    'bytes=18446744073709551615-18446744073709551615', 'bytes=-9223372036854775808',
    'bytes=99999999999999999999999-', 'bytes=0-99999999999999999999999', 'bytes=x', 'bytes=', 'bytes',
    'lines=0-1', '',
]


def resident_kib(pid, field='VmHWM'):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))


def paths(proxy):
    """Returns the path of each GET of the contract whose answer has an end."""
    operations = proxy.get('/v1/openapi.json')['paths']
    return [path.replace('{path}', 'm1').replace('{id}', '1') for path, methods in operations.items()
            if 'get' in methods and path != '/v1/events']


def ask(proxy, path, ranges, read=True):
    """Returns the status, the header Content-Range and the size of an answer, which may have no end."""
    connection = http.client.HTTPConnection('127.0.0.1', proxy.api_port, timeout=60)
    try:
        connection.request('GET', path, headers={'Range': ranges})
        answer = connection.getresponse()
        return answer.status, answer.getheader('Content-Range'), len(answer.read()) if read else None
    finally:
        connection.close()


@test
def a_request_of_1200_ranges_takes_no_memory():
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer keeps memory that was freed')
    with Controlled({f'/m{i}': {'upstream': NOWHERE} for i in range(1000)}) as proxy:
        status, _, size = ask(proxy, '/metrics', 'lines=0-1')
        assert status == 200 and size > 1 << 20, (status, size)
        before = resident_kib(proxy.pid)
        status, part, got = ask(proxy, '/metrics', RANGES[0])
        assert status == 200 and not part and abs(got - size) < size // 10, (status, part, got, size)
        grown = resident_kib(proxy.pid) - before
        print(f'# 1200 ranges of {size} bytes: {grown} KiB more memory')
        assert grown < GROWTH_KIB_MAX, grown


@test
def no_operation_but_recordings_cuts_its_answer():
    with Controlled({'/m1': {'upstream': NOWHERE}}) as proxy:
        for path in paths(proxy):
            whole = ask(proxy, path, 'lines=0-1')
            for ranges in RANGES:
                status, part, _ = ask(proxy, path, ranges)
                assert status == whole[0] and not part, (path, ranges[:40], status, part)
        status, part, _ = ask(proxy, '/v1/events', 'bytes=0-0', read=False)
        assert status == 200 and not part, (status, part)


@test
def a_picture_of_1000_mounts_is_drawn_in_parts():
    """the mounts with readers come first, and the picture says what is left out"""
    if not shutil.which('dot'):
        raise Skip('graphviz is not installed')
    down = {'upstream': NOWHERE, 'on-demand': False}
    mounts = {f'/m{i}': down for i in range(1000)}
    with Controlled({**mounts, '/zoo': {'upstream': CLIP_URI}}) as proxy, Watch(proxy, '/zoo'):
        wait_until(lambda: proxy.get('/v1/graph?mount=/zoo')['nodes'][-1]['kind'] == 'readers', 10, 'a reader')
        svg = proxy.get('/v1/graph.svg').decode()
        drawn, running = map(int, re.search(r'(\d+) of (\d+) running presentations', svg).groups())
        assert running == 1001 and 50 < drawn < 400, (drawn, running)
        assert svg.count('class="node"') <= 400 and '/zoo' in svg
        assert len(re.findall(r'>/m\d+</text>', svg)) == drawn - 1, drawn
        assert sum(node['kind'] == 'presentation' for node in proxy.get('/v1/graph')['nodes']) == 1001

        svg = proxy.get('/v1/graph.svg?mount=/m7').decode()
        assert 'running presentations' not in svg and '/m7<' in svg, svg
        assert svg.count('class="node"') == 3, svg # the upstream, pull, and the presentation
        assert proxy.get('/v1/graph.dot?mount=/zoo').count(b'label=') == 4
        assert proxy.http('GET', '/v1/graph.svg?mount=/m1001')[0] == 404
        assert proxy.http('GET', '/v1/graph.svg?mounts=/m1')[0] == 400


if __name__ == '__main__':
    run()
