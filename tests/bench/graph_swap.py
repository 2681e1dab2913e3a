# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes pipelines and upstreams under readers of three kinds."""

import re
import signal
import sys
import time

from configured import Configured
from load import JsonProc, Load
from proc import Proc
from report import Column
from servers import Origin

NAME = 'graph-swap'
TITLE = 'Effect on readers of alternate changes of the pipeline and the upstream'
CASE, WHO, YARDSTICK = 'changes', 'readers', None
LOG = False
COLUMNS = (
    Column('disconnected', 'disconnected'),
    Column('gaps', 'sequence gaps'),
    Column('errors', 'decode errors'),
    Column('renumbered', 'SSRC changed, timestamps back'),
    Column('silence', 'longest silence ms'),
    Column('p50', 'in force after ms p50'),
    Column('max', 'ms max'),
)

GOP = 1
PACE = 2.1  # seconds between changes, at least; with keyframes each second they drift through the GOP
SETTLE = 5
ENOUGH = 0.8  # of the frames that are due: ffmpeg takes some seconds to begin
LOADS, PLAYERS, GO = 40, 5, 5
TRANSCODE = {'transcode': {'size': '640x360', 'rate': '600k'}}


class Player(Proc):
    """An ffmpeg process that decodes a stream."""

    def __init__(self, rig, url, transport):
        super().__init__(*rig.readers, 'ffmpeg', '-nostdin', '-v', 'error', '-nostats',
                         '-progress', '-', '-rtsp_transport', transport, '-i', url,
                         '-f', 'null', '-')
        self._begin = time.monotonic()

    def end(self):
        """Ends ffmpeg. Returns whether it showed pictures all the time, and the errors that it
        printed."""
        lasted = time.monotonic() - self._begin
        running = self.running()
        if running:
            self.signal(signal.SIGINT)
            self.wait()
        facts = [line.partition('=') for line in self.lines if re.match(r'\w+=', line)]
        frames = max((int(value) for key, _, value in facts if key == 'frame'), default=0)
        errors = [line for line in self.lines
                  if not re.match(r'\w+=', line) and 'Exiting normally' not in line]
        return running and frames > ENOUGH * 25 * lasted, errors


class GoReaders(JsonProc):
    def __init__(self, rig, url, duration):
        super().__init__(*rig.readers, Origin.program(), 'read', '--readers', GO,
                         '--transport', 'tcp', '--tolerate-gaps', '--duration', duration,
                         '--json', url)


def changes(origins):
    """Yields the keys to change, without end: the pipeline and the upstream in turn."""
    a, b = (origin.url for origin in origins)
    while True:
        yield {'pipeline': ['pull', TRANSCODE]}
        yield {'upstream': b}
        yield {'pipeline': ['pull']}
        yield {'upstream': a}


def change_all(server, origins, number):
    """Makes `number` changes. Returns the milliseconds that each took."""
    took = []
    for _, keys in zip(range(number), changes(origins)):
        next_at = time.monotonic() + PACE
        took.append(1e3 * server.change('/cam', keys))
        time.sleep(max(0, next_at - time.monotonic()))
    return sorted(took)


def of_load(result):
    return {'disconnected': result['readers'] - result['connected'] + sum(result['errors'].values()),
            'gaps': result['lost'], 'silence': result['frame_gap_ms']['max']}


def of_go(result):
    total = result['totals']
    return {'disconnected': GO - total['statuses'].get('ok', 0), 'gaps': total['lost'],
            'errors': total['decode_errors'], 'silence': total['max_gap_ms'],
            'renumbered': total['ssrc_changes'] + total['ts_backward']}


def of_players(ends):
    for line in sum((errors for _, errors in ends), []):
        print(f'ffmpeg said: {line}', file=sys.stderr)
    return {'disconnected': sum(not stayed for stayed, _ in ends),
            'errors': sum(len(errors) for _, errors in ends)}


def run(rig, quick):
    number = 20 if quick else 100
    duration = number * PACE + 2 * SETTLE
    rig.drop_all_but(LOADS, let_through=('1-65535',))  # players take any ports
    with Origin(rig, 1, GOP) as a, Origin(rig, 1, GOP, second=True) as b, \
            Configured(rig, {'/cam': {'upstream': a.url}}) as server:
        url = server.url('cam')
        with Load(rig, '--readers', LOADS, '--transport', 'mixed', '--duration', duration,
                  url) as load, GoReaders(rig, url, duration) as go:
            players = [Player(rig, url, transport)
                       for transport in ('tcp', 'udp', 'tcp', 'udp', 'tcp')]
            time.sleep(SETTLE)
            took = change_all(server, (a, b), number)
            ends = [player.end() for player in players]
            load, go = load.result(duration), go.result(duration)
    case = str(number)
    yield case, f'{LOADS} of rtsp-load, UDP and TCP', of_load(load) | {
        'p50': took[len(took) // 2], 'max': took[-1]}
    yield case, f'{GO} of gortsplib, TCP', of_go(go)
    yield case, f'{PLAYERS} of ffmpeg, UDP and TCP', of_players(ends)
