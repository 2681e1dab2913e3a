# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the largest number of streams with the model, for several bit rates and numbers of
disks (figures 3.2 to 3.4 of the dissertation)."""

from report import Column
from store_disks import (CALIBRATION, Scale, check, disks_in, folder, largest, model,
                         read_time, store, times)
from store_work import even, uniform

NAME = 'store-model'
TITLE = 'Streams of one bit rate from a block store, by the model and measured'
CASE, WHO, YARDSTICK = 'Mb/s, disks', 'streams', None
LOG = True
COLUMNS = (
    Column('streams', 'streams', '{:.0f}'),
    Column('ratio', 'ratio to model', '{:.3f}'),
    Column('busy', 'MB/s from disks'),
    Column('cpu', 'CPU % of the store', '{:.0f}'),
    Column('start', 'start-up s', '{:.2f}'),
    Column('late', 'timer late ms', '{:.1f}'),
)
RATES, DISKS = (1, 6, 12, 18, 25), (1, 2, 4, 6, 8)
QUICK = ((6, 1), (25, 1), (25, 8))
SLICES = 15
TIMES_FASTER = 10
ON_DEVICES = ((6, 1), (25, 4))
FULL_SIZE = ((25, 1), (6, 2))

calibrated = {}  # Scale: t_a, r_d


def calibrate(scale):
    """Measures a disk and prints its times beside those that it is to have. Returns t_a, r_d."""
    with folder() as path, disks_in(path, 1) as (disk,):
        disk.set(**times(scale))
        sizes = [int(size / scale.time) // 4096 * 4096 for size in CALIBRATION]
        took = [read_time(disk, size) for size in sizes]
    for size, seconds in zip(sizes, took):
        print(f'  read of {size / 2**20:.2f} MiB: {1000 * seconds:.2f} ms, target '
              f'{1000 * (scale.access + size * 8 / scale.rate):.2f} ms')
    mean, middle = sum(sizes) / len(sizes), sum(took) / len(took)
    slope = (sum((size - mean) * (seconds - middle) for size, seconds in zip(sizes, took))
             / sum((size - mean) ** 2 for size in sizes))
    access, rate = middle - slope * mean, 8 / slope
    print(f'  t_a {1000 * access:.2f} ms, target {1000 * scale.access:.2f} ms; r_d '
          f'{rate / 1e6:.0f} Mb/s, target {scale.rate / 1e6:.0f} Mb/s')
    return access, rate


def figures(scale, streams, expected, result):
    check(streams, expected)
    return {'streams': streams, 'ratio': streams / expected,
            'busy': result['read'] / result['seconds'] / 1e6, 'cpu': result['cpu'],
            'start': result['start'] * scale.time, 'late': 1000 * result['late']}


def measure(scale, megabits, disks, slices, expected, on_devices=False):
    most = int(1.1 * expected) + 2
    titles = even('naive', disks, most)
    with store(scale, disks, 'naive', megabits, slices, titles, on_devices) as filled:
        # All at once: then no reader ever has more than its one slice ahead to live on.
        streams, result = largest(lambda n: filled.trial(uniform(n), slices), expected, most)
    assert result, f'not one stream of {megabits} Mb/s'
    return figures(scale, streams, expected, result)


def run_points(scale, points, slices, name, on_devices=False):
    for megabits, disks in points:
        expected = model(scale, disks, megabits, *calibrated[scale])
        yield f'{megabits}, {disks}', name, measure(
            scale, megabits, disks, slices, expected, on_devices)


def run(_rig, quick):
    points = QUICK if quick else [(rate, disks) for rate in RATES for disks in DISKS]
    scale, full = Scale(TIMES_FASTER), Scale(1)
    calibrated[scale] = calibrate(scale)
    for megabits, disks in points:
        yield f'{megabits}, {disks}', 'model', {
            'streams': model(scale, disks, megabits, *calibrated[scale])}
    yield from run_points(scale, points, SLICES, 'measured')
    if not quick:
        yield from run_points(scale, ON_DEVICES, SLICES, 'on block devices', True)
        calibrated[full] = calibrate(full)
        yield from run_points(full, FULL_SIZE, SLICES, 'at full size')
