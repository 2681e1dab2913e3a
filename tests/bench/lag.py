# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how far a player lags behind the others if it joins at any moment.

Players join at different moments of the group of pictures, and each reports when it presents which
frame. A player's lag is how much later it presents a frame than the first player to present that
frame, five seconds after the last player joined.
"""

import contextlib
import json
import re
import statistics
import tempfile
import time

from proc import Proc
from report import Column
from rig import EVERYBODY
from servers import PORT, GOP_SECONDS, Origin, Stock, Weir

NAME = 'lag'
TITLE = f'Lag of a player behind the first one, keyframes every {GOP_SECONDS} s'
CASE, WHO, YARDSTICK = 'player', 'server', 'stock gst-rtsp-server'
LOG = False
COLUMNS = (
    Column('max', 'lag max ms', spread=True),
    Column('p50', 'p50 ms'),
    Column('players', 'players'),
)

PLAYERS = 5
SETTLE, WINDOW = 5, 2  # seconds from the last player's start, and seconds compared


class Delaying(Weir):
    """Behaves like servers that keep a group of pictures and leave its timestamps alone."""

    name = 'rtsp-proxy, catch-up: delay'

    def words(self, mounts):
        # JSON is YAML too.
        settings = {'listen': f'{self.address}:{PORT}', **EVERYBODY,
                    'mounts': {f'/{path}': {'upstream': url, 'catch-up': 'delay'}
                               for path, url in mounts.items()}}
        self._settings = tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8')
        json.dump(settings, self._settings)
        self._settings.flush()
        return [super().words({})[0], '--config', self._settings.name]


class Player(Proc):
    """Prints a line with a hash when it presents a frame. Proc records the time of each line."""

    def shown(self):
        """Returns {hash: time} of the frames presented so far."""
        shown = {}
        for line, at in zip(self.lines, self.times):
            found = re.search(r'\b([0-9a-f]{32})\b', line)
            if found:
                shown.setdefault(found[1], at)
        return shown


def ffmpeg(url):
    return ['ffmpeg', '-nostdin', '-loglevel', 'error', '-rtsp_transport', 'tcp', '-i', url, '-an',
            '-vf', 'realtime', '-fps_mode', 'passthrough', '-f', 'framehash', '-hash', 'md5',
            '-flush_packets', '1', '-']


def gstreamer(url):
    return ['gst-launch-1.0', '-q', 'rtspsrc', f'location={url}', 'latency=200', 'protocols=tcp',
            '!', 'rtph264depay', '!', 'h264parse', '!', 'openh264dec', '!', 'checksumsink',
            'hash=md5', 'sync=true']


def one(rig, server_type, player):
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin(rig, 1))
        server = stack.enter_context(server_type(rig, {'s': origin.url}))
        players = []
        for n in range(PLAYERS):
            players.append(stack.enter_context(Player(*rig.readers, *player(server.url('s')))))
            # Joins at a different moment of the group of pictures each time.
            time.sleep(GOP_SECONDS * (1 + 1 / PLAYERS) if n == 0 else GOP_SECONDS * (1 / PLAYERS))
        time.sleep(SETTLE)
        since = time.monotonic()
        time.sleep(WINDOW)
        shown = [each.shown() for each in players]
    first = {}
    for frames in shown:
        for frame, at in frames.items():
            first[frame] = min(at, first.get(frame, at))
    # Only recent frames count: an early frame may have been presented long before.
    late = [[at - first[frame] for frame, at in frames.items() if at >= since] for frames in shown]
    lags = [statistics.median(each) for each in late if each]
    return {'max': 1000 * max(lags), 'p50': 1000 * statistics.median(lags), 'players': len(lags)}


def run(rig, quick):
    for name, player in (('ffmpeg', ffmpeg), ('GStreamer', gstreamer)):
        for _ in range(1 if quick else 3):
            for server_type in (Weir, Delaying, Stock):
                yield name, server_type.name, one(rig, server_type, player)
