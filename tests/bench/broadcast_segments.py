# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which segments of a broadcast title lose packets, where all packets of a frame come at once and a
queue on the way is too short for them (table 5 of the paper). See broadcast_network.py."""

import time

from broadcast_network import Films, Part, network, prepare, result_of, run_in, title
from report import Column

LENGTH, KILOBITS, FIRST, CYCLE = 45, 6000, '500ms', 32  # 10-GDB, in a twentieth of the time
LINE, QUEUE = '200mbit', 110_000  # bytes; a frame of all segments has 175,000


class Segments(Part):
    NAME = 'broadcast-segments'
    TITLE = 'Packets lost of each segment of 10-GDB in a queue that is too short for a frame of all (table 5)'
    CASE, WHO = 'segment', 'by'
    COLUMNS = Column('lost', '% of packets lost', '{:.1f}'), Column('sent', 'packets')
    PAPER = 5.6, 8.4, 13.3, 15.1, 17.7, 22, 23.4

    @classmethod
    def run(cls, _rig, quick):
        found = cls.measure((1 if quick else 5) * CYCLE)
        assert len(found) == len(cls.PAPER), f'{len(found)} segments'
        for number, (paper, counted) in enumerate(zip(cls.PAPER, found), 1):
            packets = counted['came'] + counted['lost']
            yield f'{number}', 'paper', {'lost': paper}
            yield f'{number}', 'rtsp-proxy', {'lost': 100 * counted['lost'] / packets, 'sent': packets}
        came, lost = (sum(counted[name] for counted in found) for name in ('came', 'lost'))
        yield 'all', 'paper', {'lost': 21.1}
        yield 'all', 'rtsp-proxy', {'lost': 100 * lost / (came + lost), 'sent': came + lost}

    @staticmethod
    def measure(seconds):
        with network(2) as rig, Films(rig, {'scheme': 'gdb', 'first': FIRST}, 1,
                                      title(KILOBITS, LENGTH)) as server:
            prepare(rig, server)
            rig.narrow(0, LINE, QUEUE)
            asks = run_in(rig.clients[1], 'describers.py', 2, CYCLE + 2 + seconds, 1, *server.urls())
            time.sleep(CYCLE + 1)  # all segments have begun
            found = result_of(run_in(rig.clients[0], 'group_losses.py', *server.urls(), seconds))
            result_of(asks)  # till now, the groups have clients
        return found
