# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many upstreams that are down, and that come back at the same moment."""

import time

from relay_ends import Camera, Readers
from relay_measure import PATIENCE, figures
from report import Column
from servers import MediaMtx, Upstream, Weir, servers

NAME = 'relay-down'
TITLE = 'Upstreams that are down, and that come back at once'
CASE, WHO, YARDSTICK = 'upstreams', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('back', 's until all deliver', '{:.1f}', spread=True),
    Column('down', 'CPU % while down', '{:.1f}'),
    Column('memory', 'MB while down'),
    Column('threads', 'threads while down'),
)

DOWN = 20  # seconds; the waits between attempts have grown by then


def down(rig, server_type, mounts, window):
    """The cost of upstreams that refuse connections, which the server wants always."""
    with server_type(rig, mounts, Upstream(always=True)) as server:
        time.sleep(DOWN)
        values = figures(rig, {'down': server}, lambda: time.sleep(window))
    return {name: values[name] for name in ('down', 'memory', 'threads')}


def back(rig, server_type, mounts):
    """The time from the return of all upstreams until all readers have packets again."""
    with server_type(rig, mounts) as server:
        with Camera(rig) as origin, \
                Readers(rig, server, mounts, 1, 100, 0, 0) as readers:
            patience = len(mounts) / 100 + PATIENCE
            readers.wait_for_line('^ALL at_ns', timeout=patience)
            origin.kill()
            time.sleep(DOWN)
            seen = len(readers.lines)
            with Camera(rig) as origin:
                at_ns = readers.wait_for_line(r'^ALL at_ns=(\d+)', timeout=patience, start=seen)[1]
                return (int(at_ns) - origin.ready_ns) / 1e9


def run(rig, quick):
    rig.let_all_through()
    for number in (1000,) if quick else (100, 300, 1000):
        mounts = Camera.mounts(rig, number)
        for _ in range(1 if quick else 3):
            for server_type in servers():
                if server_type not in (Weir, MediaMtx):
                    continue
                values = down(rig, server_type, mounts, 5 if quick else 20)
                try:
                    values['back'] = back(rig, server_type, mounts)
                except AssertionError as error:
                    if server_type is Weir:
                        raise
                    print(f'skipped: {number}, {server_type.name}: {error}')
                yield str(number), server_type.name, values
