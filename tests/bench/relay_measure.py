# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures a server that relays many streams, each to one reader or to none."""

import os
import time
from typing import NamedTuple

from relay_ends import Camera, Readers
from report import Column
from servers import Upstream, Usage, Weir

COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('memory', 'MB'),
    Column('threads', 'threads'),
    Column('files', 'open files'),
    Column('connected', 'connected'),
    Column('lost', 'lost'),
    Column('overflows', 'lost upstream'),
    Column('delivered', 'delivered in time %', '{:.2f}'),
    Column('delay_p50', 'delay p50 ms', '{:.2f}'),
    Column('delay_p99', 'p99 ms', '{:.1f}'),
    Column('total', 'CPU %, whatever is lost', '{:.1f}'),
    Column('origin', 'origin CPU %'),
    Column('readers', 'readers CPU %'),
)

SETTLE = 2
PATIENCE = 60  # seconds until all upstreams play, without readers
LEAST, MOST = 99, 101  # % of the packets sent


class Case(NamedTuple):
    """What the origin sends, and to whom. `how` are words of relay_origin.c."""

    streams: int
    note: str = ''
    shape: str = 'camera'
    how: tuple = ()
    tcp: bool = False
    read: bool = True  # by one reader each

    @property
    def name(self):
        return f'{self.streams}, {self.note}' if self.note else str(self.streams)

    @property
    def tracks(self):
        return 2 if 'sound' in self.how else 1

    @property
    def upstream(self):
        return Upstream(tcp=self.tcp, always=not self.read, sound=self.tracks == 2)

    @property
    def rate(self):
        """How many readers start in a second."""
        return 50 if self.streams <= 300 else 100


def figures(rig, processes, wait):
    """Returns the CPU time of the processes {name: process} while `wait` runs, and what the server
    then holds. The server is the first process."""
    overflows = rig.overflows()
    before = {name: Usage.of(process.pid) for name, process in processes.items()}
    wait()
    after = {name: Usage.of(process.pid) for name, process in processes.items()}
    values = {name: 100 * (after[name].cpu - before[name].cpu) / (after[name].at - before[name].at)
              for name in processes}
    server = next(iter(processes))
    return values | {'memory': after[server].rss / 2**20, 'threads': after[server].threads,
                     'files': len(os.listdir(f'/proc/{processes[server].pid}/fd')),
                     'overflows': rig.overflows() - overflows}


def measure_read(rig, case, server, mounts, origin, window):
    with Readers(rig, server, mounts, case.tracks, case.rate, SETTLE, window) as readers:
        readers.wait_to_measure()
        values = figures(rig, {'total': server, 'origin': origin, 'readers': readers},
                         readers.wait_until_done)
        result = readers.result()
    sent = origin.sent(result['from'], result['until'])
    values |= sent | {name: result[name] for name in (
        'connected', 'silent', 'foreign', 'unread', 'lost', 'reordered', 'duplicates', 'received', 'failures',
        'delay_p50', 'delay_p99', 'delay_max', 'packet_gaps', 'frame_gaps', 'buffer_ms')}
    values['delivered'] = 100 * result['received'] / sent['packets'] if sent['packets'] else None
    return values


def measure_unread(rig, case, server, origin, window):
    connected = origin.wait_for_sessions(case.streams, PATIENCE)
    time.sleep(SETTLE)
    begin = max(origin.slots()) + 1
    values = figures(rig, {'total': server, 'origin': origin}, lambda: time.sleep(window))
    return values | origin.sent(begin, max(origin.slots())) | {'connected': connected}


def measure(rig, server_type, case, window):
    mounts = Camera.mounts(rig, case.streams)
    with Camera(rig, case.shape, *case.how) as origin, \
            server_type(rig, mounts, case.upstream) as server:
        if case.read:
            values = measure_read(rig, case, server, mounts, origin, window)
        else:
            values = measure_unread(rig, case, server, origin, window)
        assert server.running(), f'{server.name} has ended'
    check(case, server_type, values)
    if good(values, case.streams):
        values['cpu'] = values['total']
    return values


def check(case, server_type, values):
    """Fails if the readers did not measure the server."""
    who = f'{case.name}, {server_type.name}'
    assert not values.get('foreign'), \
        f'{who}: {values["foreign"]} packets came to readers of other streams'
    assert not values.get('unread'), \
        f'{who}: the readers are too slow, and lost {values["unread"]} packets themselves'


def good(values, streams):
    """Returns whether everything was delivered. Otherwise the cost of the streams is unknown."""
    return (values['connected'] == streams and values['overflows'] == 0 == values.get('lost', 0)
            and values.get('delivered', 100) >= LEAST)


class Relay:
    """A table of cases. A server gets a case if it can read upstreams so, and if it has not lost
    anything in a case of fewer streams."""

    CASE, WHO, YARDSTICK = 'streams', 'server', 'mediamtx'
    LOG = False
    COLUMNS = COLUMNS
    MOST_DELIVERED = MOST

    def __init__(self, name, title, cases, server_types):
        """`cases` and `server_types` are functions of `quick`."""
        self.NAME, self.TITLE = name, title
        self._cases, self._server_types = cases, server_types

    def run(self, rig, quick):
        repeats, window = (1, 4) if quick else (3, 10)
        lost = []
        enough = {}  # the streams that were too many for a server
        rig.let_all_through()
        for case in self._cases(quick):
            for _ in range(repeats):
                for server_type in self._server_types():
                    if (case.streams > enough.get(server_type, case.streams)
                            or not server_type.can(case.upstream)):
                        continue
                    try:
                        values = measure(rig, server_type, case, window)
                    except AssertionError as error:
                        if issubclass(server_type, Weir):
                            raise
                        print(f'skipped: {case.name}, {server_type.name}: {error}')
                        enough[server_type] = case.streams
                        continue
                    if values.get('received') == 0 and not issubclass(server_type, Weir):
                        print(f'skipped: {case.name}, {server_type.name}: it delivered nothing')
                        enough[server_type] = case.streams
                        continue
                    if 'cpu' not in values and server_type is Weir:
                        lost.append(f'{case.name}: {values["connected"]} connected, '
                                    f'{values.get("lost", 0)} lost, {values["overflows"]} lost '
                                    f'upstream, {values.get("delivered", 100):.2f} % delivered in '
                                    'time')
                    elif 'cpu' not in values:
                        enough[server_type] = case.streams
                    yield case.name, server_type.name, values
        assert not lost, f'{Weir.name} did not deliver everything: {"; ".join(lost)}'
