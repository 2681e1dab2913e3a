# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many members of a cluster, by simulation: how deep the trees of streams are, what members write,
and when all is quiet again after a tenth of the members have died."""

import subprocess

from report import Column
from servers import BUILD

NAME = 'cluster'
TITLE = 'A million readers of 1000 streams: what all members are told of changes'
CASE, WHO, YARDSTICK, LOG = 'members', 'stay of a reader', None, True
SIMULATED = True
READERS, STREAMS = 1_000_000, 1000
# Bytes in which etcd's JSON gateway tells one member of a change of a stream, and of the entry of a
# member, which writes that each 30 s.
STREAM_EVENT, ENTRY_EVENT, ENTRY_S = 363, 700, 30
COLUMNS = (
    Column('told', 'Mb/s of changes, to all members', '{:.3g}'),
    Column('depth', 'depth'),
    Column('fan_out', 'fan-out'),
    Column('children', 'most children'),
    Column('writes', 'changes a second', '{:.0f}'),
    Column('after_depth', 'depth after deaths'),
    Column('after_children', 'most children'),
    Column('meanwhile', 'for a moment'),
    Column('after_writes', 'changes'),
    Column('after_told', 'MB to all members', '{:.3g}'),
    Column('quiet_s', 's to the last move', '{:.1f}'),
)
DEPTH_MAX = 4


def simulate(members, stay_s, seconds):
    done = subprocess.run(
        [BUILD / 'tests/bench/cluster_bench',
         *map(str, (members, READERS, STREAMS, stay_s, seconds, 1))],
        capture_output=True, text=True, check=True)
    found = dict(zip(('depth', 'fan_out', 'children', 'writes', 'after_depth', 'after_children',
                      'meanwhile', 'after_writes', 'quiet_s', 'unplaced'), map(float, done.stdout.split())))
    for when in '', 'after_':
        assert found[f'{when}depth'] <= DEPTH_MAX, f'{members} members: a tree of depth {found[f"{when}depth"]:.0f}'
        assert found[f'{when}children'] <= found['fan_out'], f'{members} members: one has too many children'
    assert found.pop('unplaced') == 0, f'{members} members: some readers have no place'
    found['told'] = (found['writes'] * STREAM_EVENT + members / ENTRY_S * ENTRY_EVENT) * members * 8 / 1e6
    found['writes'] += members / ENTRY_S
    found['after_told'] = found['after_writes'] * members * STREAM_EVENT / 1e6
    return found


def run(_rig, quick):
    for members in 10, 100, 1000, 10_000:
        for minutes in (10,) if quick else (1, 10, 60):
            yield f'{members}', f'{minutes} min', simulate(members, 60 * minutes, 20 if quick else 60)
