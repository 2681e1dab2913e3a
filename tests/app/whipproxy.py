# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that takes publishers over WebRTC, and Pion as one."""

import hashlib
import os
import subprocess
from functools import lru_cache

from proc import Proc
from proxy import QUICK, wait_until
from tap import SLOWER
from webrtcproxy import WebrtcProxy, folder, program

LIVE = {'upstream': 'publish', **QUICK}


class Whip(WebrtcProxy):
    """A proxy to which clients publish as /live."""

    def __init__(self, live=None, **top):
        super().__init__(mounts={'/live': {**LIVE, **(live or {})}}, **top)

    def publisher(self):
        return self.get('/v1/mounts/live').get('publisher')

    def wait_for_publisher(self):
        wait_until(self.publisher, 20, 'a publisher')
        self.wait_for_line(r' mount /live up: publish, ')

    def wait_for_none(self, why):
        self.wait_for_line(rf' publisher \S+ out: /live: {why}')
        wait_until(lambda: not self.publisher(), 10, 'no publisher')


@lru_cache
def clip(picture='testsrc2=size=640x360:rate=25', sound='sine=frequency=440:sample_rate=48000', seconds=5, rate='800k'):
    """Makes H.264 and Opus of as many seconds. Returns the names of the two files."""
    base = os.path.join(folder().name, hashlib.md5(f'{picture}{sound}{seconds}{rate}'.encode()).hexdigest())
    for words in ([picture, '-c:v', 'libx264', '-profile:v', 'baseline', '-preset', 'ultrafast', '-tune', 'zerolatency',
                   '-g', '25', '-pix_fmt', 'yuv420p', '-b:v', rate, base + '.h264'],
                  [sound, '-c:a', 'libopus', '-ac', '2', '-frame_duration', '20', '-page_duration', '20000', base + '.ogg']):
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', words[0], '-t', str(seconds), *words[1:]], check=True,
                       stdin=subprocess.DEVNULL, timeout=60 * SLOWER)
    return base + '.h264', base + '.ogg'


def pion(proxy, *words, files=None, path='/live/whip'):
    """Publishes with Pion until the end of the block."""
    picture, sound = files or clip()
    return Proc(program(), 'publish', *words, *(['--sound', sound] if sound else []), picture, proxy.web + path)


def told(publisher, name):
    """What Pion says at its end."""
    return int(publisher.wait_for_line(rf'\b{name}=(\d+)', 20)[1])
