# SPDX-License-Identifier: LGPL-2.1-or-later
"""How long a reader that comes at any moment waits for its first picture.

One reader has been there before the others for longer than a group of pictures: what is measured is
a stream that runs, not one that starts.
"""

import time

from load import Load, figure, set_up
from report import Column
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
)

RATE = 40  # arrivals a second, Poisson: dozens in each part of the group of pictures


def one(rig, server_type, transport, readers, seed):
    rig.drop_all_but(readers)
    lasts = readers / RATE + GOP_SECONDS + 2
    with Origin(rig, 1) as origin, server_type(rig, {'s': origin.url}) as server, \
            Load(rig, '--transport', 'tcp', '--duration', lasts + GOP_SECONDS + 5, server.url('s')):
        time.sleep(GOP_SECONDS + 1)
        with Load(rig, '--readers', readers, '--transport', transport,
                  '--arrivals', f'poisson:{RATE}', '--seed', seed,
                  '--duration', lasts, server.url('s')) as load:
            result = load.result(readers / RATE + 60)
    return {
        'p50': figure(result, 'first_frame_ms', 'p50'),
        'p90': figure(result, 'first_frame_ms', 'p90'),
        'p99': figure(result, 'first_frame_ms', 'p99'),
        'max': figure(result, 'first_frame_ms', 'max'),
        'packet': figure(result, 'first_packet_ms', 'p50'),
        'signal': set_up(result),
    }


def run(rig, quick):
    repeats, readers = (1, 240) if quick else (3, 480)
    for transport in 'udp', 'tcp':
        for seed in range(1, repeats + 1):
            for server_type in servers():
                yield (transport.upper(), server_type.name,
                       one(rig, server_type, transport, readers, seed))
