# SPDX-License-Identifier: LGPL-2.1-or-later
"""Disks that hinder each other on one bus (figure 3.2 of the dissertation): with 4 and with 6 disks at
work, each transfers less. The imitated disks have the rates that were measured there."""

from store_disks import ACCESS, RATE, Scale, model
from store_model import COLUMNS, SLICES, TIMES_FASTER, calibrate, calibrated, run_points

NAME = 'store-contention'
TITLE = 'Streams from disks that hinder each other, by the model and measured'
CASE, WHO, YARDSTICK, LOG = 'Mb/s, disks', 'streams', None, False
RATES = {4: 431e6, 6: 458e6}  # bits a second of a disk, when so many work
POINTS, QUICK = [(megabits, disks) for megabits in (6, 12, 18, 25) for disks in RATES], [(25, 4), (25, 6)]

__all__ = 'NAME', 'TITLE', 'CASE', 'WHO', 'YARDSTICK', 'LOG', 'COLUMNS', 'run'


def run(_rig, quick):
    alone = Scale(TIMES_FASTER, ACCESS, RATE)
    for rate in RATES.values():
        scale = Scale(TIMES_FASTER, ACCESS, rate)
        calibrated[scale] = calibrate(scale)
    for megabits, disks in QUICK if quick else POINTS:
        case, together = f'{megabits}, {disks}', Scale(TIMES_FASTER, ACCESS, RATES[disks])
        yield case, 'model, each disk alone', {'streams': model(alone, disks, megabits)}
        yield case, 'model', {'streams': model(together, disks, megabits)}
        yield from run_points(together, [(megabits, disks)], SLICES, 'measured')
