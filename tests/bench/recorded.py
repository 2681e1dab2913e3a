# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cameras that a server records over TCP, and that nobody reads: what they cost it."""

import os
import shutil
import tempfile
import time

from relay_measure import figures
from report import Column
from servers import CACHE, MediaMtx, Upstream, Weir, clip_of, start_proxy

NAME = 'recorded'
TITLE = 'CPU time to record cameras of 0.16 Mb/s over TCP, without readers'
CASE, WHO, YARDSTICK = 'cameras', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU %', '{:.1f}', spread=True),
    Column('memory', 'MB'),
    Column('threads', 'threads'),
    Column('files', 'open files'),
    Column('recorded', 'kb/s of each', '{:.0f}'),
)

PORT = 8600
MEGABITS = 0.1
LEAST = 0.8 # of the rate, that each camera's recording has at least
PATIENCE = 120


class Recording(Weir):
    def __init__(self, rig, mounts, folder):
        self.keys = {'record': {'folder': folder, 'part': '1s'}}
        super().__init__(rig, mounts, Upstream(tcp=True))


class RecordingMtx(MediaMtx):
    def __init__(self, rig, mounts, folder):
        self.whole = {'pathDefaults': {'record': True, 'recordPath': f'{folder}/%path/%Y-%m-%d_%H-%M-%S-%f',
                                       'recordPartDuration': '1s'}}
        super().__init__(rig, mounts, Upstream(tcp=True, always=True))


def sizes(folder):
    """Returns the bytes of each camera's files."""
    found = {}
    for where, _, names in os.walk(folder):
        if names:
            found[where] = sum(os.path.getsize(os.path.join(where, name)) for name in names)
    return found


def measure(rig, server_type, mounts, window):
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, server_type(rig, mounts, folder) as server:
        deadline = time.monotonic() + PATIENCE
        while len(sizes(folder)) < len(mounts):
            assert time.monotonic() < deadline, f'{server.name} records {len(sizes(folder))} of {len(mounts)} cameras'
            time.sleep(0.5)
        time.sleep(5)
        before = sizes(folder)
        values = figures(rig, {'cpu': server}, lambda: time.sleep(window))
        rates = [(size - before[path]) * 8 / 1000 / window for path, size in sizes(folder).items() if path in before]
    assert len(rates) == len(mounts), f'{server.name} has stopped to record some cameras'
    assert min(rates) > 1000 * MEGABITS * LEAST, f'{server.name} recorded a camera at {min(rates):.0f} kb/s'
    return values | {'recorded': sum(rates) / len(rates)}


def run(rig, quick):
    rig.let_all_through()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, \
            start_proxy(folder, {'listen': f'{rig.server_address}:{PORT}',
                                 'limits': {'connections': 2000, 'connections-per-address': 2000},
                                 'mounts': {'/cam': {'upstream': f'file://{clip_of(MEGABITS)}', 'on-demand': False}}},
                        rig.server) as origin:
        origin.wait_for_line(r' mount /cam up')
        for number in (40, 100) if quick else (40, 100, 300):
            mounts = {f'c{n}': f'rtsp://{rig.server_address}:{PORT}/cam' for n in range(number)}
            for _ in range(1 if quick else 3):
                for server_type in (Recording, *([RecordingMtx] if shutil.which('mediamtx') else [])):
                    yield str(number), server_type.name, measure(rig, server_type, mounts, 10)
