# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how long a reader that joins at any moment waits for its first picture.

Another reader joins first and stays for longer than a group of pictures, so that the bench
measures a running stream, not the start of one.

rtsp-load alone is not enough: a player may drop the packets that arrive before the answer to PLAY,
and then decode only from the next keyframe. So the bench also starts ffmpeg a few times, one
process after the other.
"""

import random
import shutil
import statistics
import sys
import time

from load import Load, figure, set_up
from report import Column
from proc import Proc
from servers import GOP_SECONDS, Origin, servers

NAME = 'join'
TITLE = f'From PLAY to the first decodable frame, keyframes every {GOP_SECONDS} s'
CASE, WHO, YARDSTICK = 'transport', 'server', 'stock gst-rtsp-server'
LOG = False
COLUMNS = (
    Column('p50', 'first frame p50 ms', spread=True),
    Column('p90', 'p90 ms'),
    Column('p99', 'p99 ms'),
    Column('max', 'max ms'),
    Column('packet', 'first packet p50 ms', '{:.1f}'),
    Column('signal', 'DESCRIBE to PLAY p50 ms', '{:.1f}'),
    Column('ffmpeg', 'ffmpeg, start to picture p50 ms'),
    Column('ffmpeg_max', 'max ms'),
)

RATE = 40  # arrivals per second, Poisson: dozens in each part of the group of pictures


# ffmpeg probes as little as possible and keeps the probed packets; with -fflags nobuffer it would
# drop the first keyframe itself. The rig lets its ports through.
FFMPEG = ('ffmpeg', '-nostdin', '-v', 'error', '-allowed_media_types', 'video',
          '-analyzeduration', 1, '-probesize', 32, '-min_port', 10000, '-max_port', 15000)
START_MOST = 10  # seconds


def start_ffmpeg(rig, url, transport):
    """Returns the milliseconds from ffmpeg's start to its first decoded picture."""
    begun = time.monotonic()
    with Proc(*rig.readers, *FFMPEG, '-rtsp_transport', transport, '-i', url, '-an', '-frames:v', 1,
              '-f', 'framecrc', '-') as player:
        player.wait_for_line(r'^0, ', START_MOST)
        return 1000 * (time.monotonic() - begun)


def start_ffmpegs(rig, url, transport, starts, seed):
    """Starts ffmpeg `starts` times, each at a random moment of a group of pictures."""
    if not shutil.which('ffmpeg'):
        print('join: ffmpeg is not on the PATH; its columns stay empty', file=sys.stderr)
        return {}
    moment, times = random.Random(seed), []
    for _ in range(starts):
        time.sleep(moment.uniform(0, GOP_SECONDS))
        times.append(start_ffmpeg(rig, url, transport))
    return {'ffmpeg': statistics.median(times), 'ffmpeg_max': max(times)}


def one(rig, server_type, transport, readers, starts, seed):
    rig.drop_all_but(readers)
    lasts = readers / RATE + GOP_SECONDS + 2
    stays = lasts + GOP_SECONDS + 5 + starts * (GOP_SECONDS + START_MOST)
    with Origin(rig, 1) as origin, server_type(rig, {'s': origin.url}) as server, \
            Load(rig, '--transport', 'tcp', '--duration', stays, server.url('s')):
        time.sleep(GOP_SECONDS + 1)
        with Load(rig, '--readers', readers, '--transport', transport,
                  '--arrivals', f'poisson:{RATE}', '--seed', seed,
                  '--duration', lasts, server.url('s')) as load:
            result = load.result(readers / RATE + 60)
        ffmpeg = start_ffmpegs(rig, server.url('s'), transport, starts, seed)
    return {
        'p50': figure(result, 'first_frame_ms', 'p50'),
        'p90': figure(result, 'first_frame_ms', 'p90'),
        'p99': figure(result, 'first_frame_ms', 'p99'),
        'max': figure(result, 'first_frame_ms', 'max'),
        'packet': figure(result, 'first_packet_ms', 'p50'),
        'signal': set_up(result),
        **ffmpeg,
    }


def run(rig, quick):
    repeats, readers, starts = (1, 240, 10) if quick else (3, 480, 20)
    for transport in 'udp', 'tcp':
        for seed in range(1, repeats + 1):
            for server_type in servers():
                yield (transport.upper(), server_type.name,
                       one(rig, server_type, transport, readers, starts, seed))
