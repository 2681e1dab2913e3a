# SPDX-License-Identifier: LGPL-2.1-or-later
"""How far behind a player stays that came at any moment.

Players come at different moments of the group of pictures, each says which frame it presents when,
and what is told is by how much each is later with the same frame than the one that is first with
it, five seconds after the last of them has come.
"""

import contextlib
import json
import re
import statistics
import tempfile
import time

from proc import Proc
from report import Column
from servers import PORT, GOP_SECONDS, Origin, Stock, Weir

NAME = 'lag'
TITLE = f'What a player lags behind another, keyframes every {GOP_SECONDS} s'
CASE, WHO, YARDSTICK = 'player', 'server', 'stock gst-rtsp-server'
LOG = False
COLUMNS = (
    Column('max', 'lag max ms', spread=True),
    Column('p50', 'p50 ms'),
    Column('players', 'players'),
)

PLAYERS = 5
SETTLE, WINDOW = 5, 2  # seconds after the last player has come, and of comparing


class Delaying(Weir):
    """As servers do that keep a group of pictures and leave its timestamps alone."""

    name = 'rtsp-proxy, catch-up: delay'

    def words(self, mounts):
        # JSON is YAML too.
        settings = {'listen': f'{self.address}:{PORT}',
                    'mounts': {f'/{path}': {'upstream': url, 'catch-up': 'delay'}
                               for path, url in mounts.items()}}
        self._settings = tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8')
        json.dump(settings, self._settings)
        self._settings.flush()
        return [super().words({})[0], '--config', self._settings.name]


class Player(Proc):
    """Prints a line with a hash for each frame, at its time. Proc notes when a line comes."""

    def shown(self):
        """{hash: when}, of the frames presented so far."""
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
            # At another moment of the group each time.
            time.sleep(GOP_SECONDS * (1 + 1 / PLAYERS) if n == 0 else GOP_SECONDS * (1 / PLAYERS))
        time.sleep(SETTLE)
        since = time.monotonic()
        time.sleep(WINDOW)
        shown = [each.shown() for each in players]
    first = {}
    for frames in shown:
        for frame, at in frames.items():
            first[frame] = min(at, first.get(frame, at))
    # Of what each presents now; another may have done so long before.
    late = [[at - first[frame] for frame, at in frames.items() if at >= since] for frames in shown]
    lags = [statistics.median(each) for each in late if each]
    return {'max': 1000 * max(lags), 'p50': 1000 * statistics.median(lags), 'players': len(lags)}


def run(rig, quick):
    for name, player in (('ffmpeg', ffmpeg), ('GStreamer', gstreamer)):
        for _ in range(1 if quick else 3):
            for server_type in (Weir, Delaying, Stock):
                yield name, server_type.name, one(rig, server_type, player)
