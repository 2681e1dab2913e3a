# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the paper's class queues are for: readers of two mounts with different priorities, while
rtsp-proxy gets less of a processor than it needs for all."""

import contextlib
import time

from configured import Configured
from load import Load, figure
from processor_group import ProcessorGroup
from report import Column
from rig import FIRST_PORT, LAST_PORT
from servers import Origin
from tap import Skip

MEGABITS = 1
PROBES = 10            # readers of each mount who are looked at
PORTS = 2 * (PROBES + 1)  # of them, and of the origin's reader beside them
MOUNTS = {'first': 0, 'last': 7}  # and their priorities
SETTLE, LOOK = 4, 3    # s in which all readers come, and in which it is seen what all take
OVER = 2               # s in which the queues fill


class Grouped(Configured):
    group = None

    def words(self, mounts):
        return [*self.group.words, *super().words(mounts)]


class Priorities:
    NAME = 'omss-priority'
    TITLE = f'Readers of {MEGABITS} Mb/s of two priorities, when the proxy gets a part of the CPU time that all take'
    CASE, WHO, YARDSTICK, LOG = '% of the CPU time', 'priority', None, False
    COLUMNS = (Column('delivered', '% of packets delivered', '{:.1f}'),
               Column('delay', 'delay of those p99 ms'), Column('cpu', 'CPU % of the proxy', '{:.1f}'))

    @staticmethod
    def run(rig, quick):
        if not rig.real:
            raise Skip('packets of other readers are dropped by the rig')
        for percent in (150, 60) if quick else (150, 90, 75, 60, 45, 30):
            found = overload(rig, percent / 100, 300, 8 if quick else 30)
            for mount, priority in MOUNTS.items():
                yield f'{percent}', f'{priority}', found[mount]


def overload(rig, part, readers, seconds):
    """Lets the proxy have `part` of what it takes with so many readers of each mount. Returns what
    those see who are looked at."""
    rig.drop_all_but(len(MOUNTS) * PORTS // 2)
    all_seconds = SETTLE + LOOK + OVER + seconds + 1
    with ProcessorGroup() as group, Origin(rig, MEGABITS) as origin, contextlib.ExitStack() as stack:
        Grouped.group = group
        server = stack.enter_context(Grouped(rig, {
            f'/{mount}': {'upstream': origin.url, 'priority': priority} for mount, priority in MOUNTS.items()}))
        probes = {}
        for n, mount in enumerate(MOUNTS):
            first = FIRST_PORT + n * PORTS
            probes[mount] = stack.enter_context(Load(
                rig, '--readers', PROBES, '--tracks', 'video', '--duration', all_seconds, '--against', origin.url,
                server.url(mount), ports=(first, first + PORTS - 1)))
        whole = stack.enter_context(Load(rig, '--readers', 1, '--tracks', 'video', '--duration', all_seconds,
                                         origin.url, ports=(LAST_PORT + 1, LAST_PORT + 100)))
        stack.enter_context(Load(
            rig, '--mute', '--readers', len(MOUNTS) * (readers - PROBES), '--tracks', 'video', '--duration',
            all_seconds, '--arrivals', f'uniform:{2 * readers * len(MOUNTS) / SETTLE}', *map(server.url, MOUNTS),
            ports=(FIRST_PORT + len(MOUNTS) * PORTS, LAST_PORT)))
        time.sleep(SETTLE)
        before = server.usage()
        time.sleep(LOOK)
        after = server.usage()
        group.limit(part * (after.cpu - before.cpu) / (after.at - before.at))
        time.sleep(OVER)
        before = server.usage()
        time.sleep(seconds)
        after = server.usage()
        group.limit(1)
        due = packets_from(whole.result(60), SETTLE + LOOK + OVER, seconds)
        results = {mount: load.result(60) for mount, load in probes.items()}
    for mount, result in results.items():
        assert result['connected'] == PROBES, f'{mount}: {result["connected"]} of {PROBES} readers connected'
    cpu = 100 * (after.cpu - before.cpu) / (after.at - before.at)
    return {mount: {
        'delivered': 100 * packets_from(result, SETTLE + LOOK + OVER, seconds) / PROBES / due, 'cpu': cpu,
        'delay': figure(result, 'added_delay_ms', 'p99'),
    } for mount, result in results.items()}


def packets_from(result, start, seconds):
    """Returns how many packets came in the `seconds` after `start`."""
    counts = {round(point['at_s']): point['packets'] for point in result['series']}
    return counts[start + seconds] - counts[start]
