# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what players of Low-Latency HLS cost a server, and how late parts come."""

import time

from load import JsonProc
from report import Column
from servers import BUILD, MediaMtx, Origin, Upstream, Weir

NAME = 'hls'
TITLE = 'Low-Latency HLS of 4 Mb/s, parts of 200 ms'
CASE, WHO, YARDSTICK = 'players', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('each', 'CPU % per Gb/s'),
    Column('delivered', 'delivered %'),
    Column('p50', 'latency p50 ms'),
    Column('p99', 'p99 ms'),
    Column('stalls', 'stalls a player', '{:.1f}'),
    Column('failed', 'failed'),
    Column('memory', 'MiB'),
)

MEGABITS = 4
PORT = 18888
SECONDS = 20  # that are measured
READY = 20    # s, in which a server must have its first parts


class Hls(Weir):
    whole = {'http': {'listen': f'0.0.0.0:{PORT}'}}

    def url(self, path):
        return f'http://{self.address}:{PORT}/hls/{path}/index.m3u8'


class HlsMediaMtx(MediaMtx):
    whole = {'hls': True, 'hlsAddress': f':{PORT}', 'hlsVariant': 'lowLatency', 'hlsAlwaysRemux': True,
             'hlsSegmentDuration': '1s', 'hlsPartDuration': '200ms', 'hlsSegmentCount': 7}

    def url(self, path):
        return f'http://{self.address}:{PORT}/{path}/index.m3u8'


class Players(JsonProc):
    def __init__(self, rig, url, players, seconds):
        super().__init__(*rig.readers, BUILD / 'apps/rtsp-load/rtsp-load', '--hls', '--json', '--readers',
                         players, '--duration', seconds, '--arrivals', f'uniform:{max(players // 4, 1)}', url)


def wait_for_parts(rig, server):
    end = time.monotonic() + READY
    while True:
        with Players(rig, server.url('s'), 1, 2) as player:
            if player.wait(20) == 0:
                return
        assert time.monotonic() < end, f'{server.name} has no parts within {READY} s'


def one(rig, server_type, players, seconds):
    rig.drop_all_but(0)
    with Origin(rig, MEGABITS) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server:
        wait_for_parts(rig, server)
        warm = 8  # s: players arrive, and play
        with Players(rig, server.url('s'), players, warm + seconds + 1) as load:
            time.sleep(warm)
            before = server.usage()
            time.sleep(seconds)
            after = server.usage()
            result = load.result(60)
    cpu = 100 * (after.cpu - before.cpu) / (after.at - before.at)
    # The players take 4 s to arrive, so they play for 2 s less than the run, on average.
    megabits = 8e-6 * result['bytes'] / (warm + seconds - 1)
    return {'cpu': cpu, 'each': cpu / (megabits / 1000), 'delivered': 100 * megabits / (MEGABITS * players),
            'p50': result['latency_p50_ms'], 'p99': result['latency_p99_ms'],
            'stalls': result['stalls'] / players, 'failed': result['failed'],
            'memory': after.rss / 1048576}


def run(rig, quick):
    for players in (100,) if quick else (100, 300, 1000):
        for _ in range(1 if quick else 3):
            for server_type in (Hls, HlsMediaMtx):
                if server_type.there():
                    yield str(players), server_type.name, one(rig, server_type, players, SECONDS // 2 if quick else SECONDS)
