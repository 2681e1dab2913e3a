# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets one disk fail, be gone, hang or become slow under the load that the proxy admits at most."""

import time

from report import Column
from store_disks import Scale, model, store
from store_policies import DISKS, MEGABITS
from store_work import even, uniform

NAME = 'store-failure'
TITLE = 'Streams that stop when one of 8 disks fails under 90 % of the admitted load'
CASE, WHO, YARDSTICK = 'the disk', 'placement', None
LOG = False
COLUMNS = (
    Column('streams', 'streams', '{:.0f}'),
    Column('stopped', 'streams that stop', '{:.0f}'),
    Column('longest', 'longest s', '{:.2f}'),
    Column('second', '% second choices', '{:.0f}'),
    Column('repaired', 'blocks written anew', '{:.0f}'),
)
POLICIES = ('rda', 'naive', 'raid0')
GONE = 'answers EIO, then is gone'
FAULTS = {'answers EIO': {'error': 100}, GONE: {'error': 100}, 'hangs': {'hang': 1}, 'is 4 times slower': {'stutter': 300}}
ADMITTED, LOAD = 0.9, 0.9  # parts of the model, and of that
TIMES_FASTER = 20
FAULT_AFTER = 12  # slices; all streams play then, of raid0, too
SLICES, QUICK_SLICES = 60, 20
# Blocks of a disk that is gone are written anew after a minute, at most so many bytes in a second;
# neither is scaled. More slices of a shorter time would be more files than a disk may have open.
GONE_TIMES_FASTER, GONE_SLICES, REPAIR_RATE = 5, 150, 8 << 20


def fail(disk, fault, goes):
    disk.set(**fault)
    if goes:
        time.sleep(1)
        last = disk.stats()
        disk.stop()
        disk.stats = lambda: last  # its folder has none


def measure(scale, policy, fault, slices, goes=False):
    streams = int(LOAD * ADMITTED * model(scale, DISKS, MEGABITS))
    with store(scale, DISKS, policy, MEGABITS, slices, even(policy, DISKS, streams)) as filled:
        disk = filled.disks[0]
        result = filled.trial(uniform(streams, scale.slice), slices, stop=False,
                              fault=(FAULT_AFTER * scale.slice, lambda: fail(disk, fault, goes)))
        if not goes:
            disk.set(**dict.fromkeys(fault, 0))  # a disk that hangs cannot be unmounted
        repaired = result['repaired'] * filled.block
    stopped = result['stopped']
    # Without a second copy, the titles of the disk cannot go on.
    assert policy == 'rda' or 'stutter' in fault or stopped >= streams / DISKS / 2, \
        f'{policy}: {stopped:.0f} of {streams} streams stop, without a disk'
    assert repaired <= REPAIR_RATE * result['seconds'] + filled.block, f'{repaired} bytes written anew'
    return {'streams': streams, 'stopped': stopped, 'longest': scale.time * result['longest'],
            'second': 100 * result['second'] / result['blocks'], 'repaired': result['repaired']}


def run(_rig, quick):
    for name, fault in FAULTS.items():
        goes = name == GONE
        scale = Scale(GONE_TIMES_FASTER if goes and not quick else TIMES_FASTER)
        for policy in POLICIES[:1] if goes else POLICIES:
            slices = QUICK_SLICES if quick else GONE_SLICES if goes else SLICES
            yield name, policy, measure(scale, policy, fault, slices, goes)
