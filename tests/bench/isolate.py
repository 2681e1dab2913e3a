# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what it costs to parse MPEG-TS, and to run stages, in worker processes.

Proxies with and without workers get the same streams at once. A reader compares when the same
packets arrive from two of them.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from proc import Proc
from report import Column
from servers import ROOT, Usage, Weir, children_of, clip_of

NAME = 'isolate'
TITLE = 'MPEG-TS of 4 Mb/s and stages, in the proxy and in worker processes'
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
# A cheap stage that is not Weir's own, so that it runs in a worker.
REPACK = """---
summary: takes H.264 out of RTP and puts it back
media: video
takes: rtp
gives: rtp
codec: H264
---
rtph264depay ! h264parse ! rtph264pay config-interval=-1 aggregate-mode=zero-latency timestamp-offset=0
"""


class Case(NamedTuple):
    label: str
    mounts: int
    url: str
    output: str  # of ffmpeg
    keys: dict  # of each mount
    matches: bool  # the proxies send equal packets


def of_ts(mounts):
    return Case(str(mounts), mounts, 'udp://127.0.0.1:{}', 'f=mpegts]udp://127.0.0.1:{}?pkt_size=1316',
                {}, True)


def of_stage(name, stage, matches):
    return Case(f'1, {name}', 1, 'rtp://127.0.0.1:{}?encoding-name=H264&payload=96',
                'f=rtp]rtp://127.0.0.1:{}?pkt_size=1200', {'pipeline': ['pull', stage]}, matches)


STAGES = (
    of_stage('repacked', 'repack', True),
    of_stage('transcoded', {'transcode': {'size': '320x180', 'rate': '300k'}}, False),
)


class Isolating(Weir):
    def __init__(self, rig, mounts, name, keys, stages):
        self.name = name
        self.keys = {'on-demand': False, **keys}
        self._port, whole = PROXIES[name]
        self.whole = {**whole, 'stages': stages, 'listen': f'{rig.server_address}:{self._port}'}
        super().__init__(rig, mounts)

    def url(self, path):
        return f'rtsp://{self.address}:{self._port}/{path}'

    def usages(self):
        return [Usage.of(pid) for pid in (self.pid, *children_of(self.pid))]


def output(case, ports):
    return '|'.join('[' + case.output.format(port) for port in ports)


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


def one(rig, case, seconds, turn, stages):
    """Measures all proxies. In every other turn, they get the packets in the other order."""
    clip = clip_of(MEGABITS)
    order = sorted(PROXIES, reverse=turn % 2 == 0)
    ports = {name: [FIRST_PORT + 2 * (n * len(order) + order.index(name))
                    for n in range(case.mounts)] for name in order}
    with contextlib.ExitStack() as stack:
        proxies = {name: stack.enter_context(Isolating(
            rig, {f'cam{n}': case.url.format(port) for n, port in enumerate(ports[name])},
            name, case.keys, stages)) for name in order}
        sender = stack.enter_context(Proc(
            *rig.server, 'ffmpeg', '-nostdin', '-loglevel', 'error', '-re', '-stream_loop', '-1',
            '-i', clip, '-map', '0:v', '-c', 'copy', '-bsf:v', 'h264_mp4toannexb', '-f', 'tee',
            output(case, sorted(sum(ports.values(), [])))))
        for proxy in proxies.values():
            for n in range(case.mounts):
                proxy.wait_for_line(rf' mount /cam{n} up', timeout=30)
        time.sleep(SETTLE)
        before = {name: proxy.usages() for name, proxy in proxies.items()}
        first, *others = (proxies[name].url('cam0') for name in PROXIES)
        if case.matches:
            delay = [{}] + [delays(rig, first, other, seconds) for other in others]
        else:
            delay = [{}] * len(proxies)
            time.sleep(seconds)
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
    streams = [of_ts(number) for number in ((8,) if quick else (1, 8, 32))]
    with tempfile.TemporaryDirectory() as stages:
        pathlib.Path(stages, 'repack.launch').write_text(REPACK, encoding='utf-8')
        for case in (*streams, *STAGES):
            for turn in range(2 if quick else 4):
                for name, values in one(rig, case, 10, turn, stages):
                    # A single stage needs one worker at most.
                    if case.mounts > 1 or name != 'a worker each' or case in streams:
                        yield case.label, name, values
