# SPDX-License-Identifier: LGPL-2.1-or-later
"""The dissertation's other disks (figure 3.3): an access takes 16 ms, 446 Mb are transferred in a
second, and the machine's lines carry 1.85 Gb/s."""

from report import Column
from store_disks import MEGABIT, Scale, model
from store_model import COLUMNS, SLICES, TIMES_FASTER, calibrate, calibrated, run_points

NAME = 'store-sata300'
TITLE = 'Streams from disks of 16 ms and 446 Mb/s, by the model and measured'
CASE, WHO, YARDSTICK, LOG = 'Mb/s, disks', 'streams', None, False
ACCESS, RATE, LINE = 0.016, 446e6, 1.85e9
RATES, DISKS = (6, 12, 18, 25), (1, 2, 4, 6, 8)
QUICK = ((6, 1), (6, 8), (25, 8))
PAPER = {(6, 8): 290, (25, 8): 74}

__all__ = 'NAME', 'TITLE', 'CASE', 'WHO', 'YARDSTICK', 'LOG', 'COLUMNS', 'run'


def run(_rig, quick):
    scale = Scale(TIMES_FASTER, ACCESS, RATE)
    points = QUICK if quick else [(rate, disks) for rate in RATES for disks in DISKS]
    calibrated[scale] = calibrate(scale)
    for megabits, disks in points:
        case, streams = f'{megabits}, {disks}', model(scale, disks, megabits)
        if (megabits, disks) in PAPER:
            yield case, 'dissertation', {'streams': PAPER[megabits, disks]}
        yield case, 'model', {'streams': streams}
        yield case, 'model with the line', {'streams': min(streams, LINE / (megabits * MEGABIT))}
    yield from run_points(scale, points, SLICES, 'measured')


class Sizing:
    """The model's term for striping, and its solution for the number of disks."""

    NAME = 'store-sizing'
    TITLE = 'Streams of 8 disks by the model, when each block is striped over several disks'
    CASE, WHO, YARDSTICK, LOG = 'disks of a block', 'streams', None, False
    COLUMNS = Column('streams', 'streams'), Column('disks', 'disks for 1000 streams')
    SIMULATED = True

    @staticmethod
    def run(_rig, _quick):
        scale = Scale(1)
        for stripes in 1, 2, 4, 8:
            for megabits in 1, 6, 25:
                # An access on each of the disks, which transfer at the same time.
                streams = model(scale, 8, megabits, scale.access * stripes)
                yield str(stripes), f'{megabits} Mb/s', {
                    'streams': int(streams), 'disks': -(-1000 * 8 // streams)}
