# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what it costs to parse MPEG-TS in worker processes.

Proxies with and without workers get the same streams at once. A reader compares when the same
packets arrive from two of them.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import time

from proc import Proc
from report import Column
from servers import ROOT, Usage, Weir, clip_of

NAME = 'isolate'
TITLE = 'MPEG-TS of 4 Mb/s, parsed in the proxy and in worker processes'
CASE, WHO, YARDSTICK = 'mounts', 'proxy', 'isolate: no'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('delay50', 'added delay p50 ms', '{:.2f}'),
    Column('delay99', 'p99 ms', '{:.2f}'),
    Column('memory', 'MB', '{:.0f}'),
    Column('processes', 'processes'),
)

MEGABITS = 4
FIRST_PORT = 42000
# Name: port, and keys of the file.
PROXIES = {
    'isolate: no': (8554, {'isolate': 'no'}),
    'one worker for all': (8556, {'isolate': 'auto', 'workers': 1}),
    'a worker each': (8558, {'isolate': 'auto', 'workers': 1000}),
}
SETTLE = 4


def children_of(pid):
    return [int(word) for path in pathlib.Path(f'/proc/{pid}/task').glob('*/children')
            for word in path.read_text(encoding='ascii').split()]


class Isolating(Weir):
    keys = {'on-demand': False}

    def __init__(self, rig, mounts, name):
        self.name = name
        self._port, keys = PROXIES[name]
        self.whole = {**keys, 'listen': f'{rig.server_address}:{self._port}'}
        super().__init__(rig, mounts)

    def url(self, path):
        return f'rtsp://{self.address}:{self._port}/{path}'

    def usages(self):
        return [Usage.of(pid) for pid in (self.pid, *children_of(self.pid))]


def output(ports):
    return '|'.join(f'[f=mpegts]udp://127.0.0.1:{port}?pkt_size=1316' for port in ports)


def delays(rig, first, second, seconds):
    """Returns how much later packets of `second` arrive than the same packets of `first`."""
    done = subprocess.run(
        [*rig.server, sys.executable, ROOT / 'tests/bench/delay.py', '--readers', '1', '--over',
         '1', '--duration', str(seconds), first, second],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result['matched'] > 50 * seconds, result
    return result


def one(rig, number, seconds, turn):
    """Measures all proxies. In every other turn, they get the packets in the other order."""
    clip = clip_of(MEGABITS)
    order = sorted(PROXIES, reverse=turn % 2 == 0)
    ports = {name: [FIRST_PORT + 2 * (n * len(order) + order.index(name)) for n in range(number)]
             for name in order}
    with contextlib.ExitStack() as stack:
        proxies = {name: stack.enter_context(Isolating(
            rig, {f'cam{n}': f'udp://127.0.0.1:{port}' for n, port in enumerate(ports[name])},
            name)) for name in order}
        sender = stack.enter_context(Proc(
            *rig.server, 'ffmpeg', '-nostdin', '-loglevel', 'error', '-re', '-stream_loop', '-1',
            '-i', clip, '-map', '0:v', '-c', 'copy', '-f', 'tee',
            output(sorted(sum(ports.values(), [])))))
        for proxy in proxies.values():
            for n in range(number):
                proxy.wait_for_line(rf' mount /cam{n} up', timeout=30)
        time.sleep(SETTLE)
        before = {name: proxy.usages() for name, proxy in proxies.items()}
        first, *others = (proxies[name].url('cam0') for name in PROXIES)
        delay = [{}] + [delays(rig, first, other, seconds) for other in others]
        after = {name: proxy.usages() for name, proxy in proxies.items()}
        assert sender.running(), sender.output()
    for name, late in zip(PROXIES, delay):
        was, now = before[name], after[name]
        assert len(was) == len(now), (was, now)
        took = sum(each.cpu for each in now) - sum(each.cpu for each in was)
        yield name, {
            'cpu': 100 * took / (now[0].at - was[0].at),
            'memory': sum(each.rss for each in now) / 2**20, 'processes': len(now),
            **({'delay50': late['p50'], 'delay99': late['p99']} if late else {})}


def run(rig, quick):
    for number in (8,) if quick else (1, 8, 32):
        for turn in range(2 if quick else 4):
            for name, values in one(rig, number, 10, turn):
                yield str(number), name, values
