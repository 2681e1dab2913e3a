# SPDX-License-Identifier: LGPL-2.1-or-later
"""More experiments of a proxy for scalable video: layers over time, CPU time and context switches by
readers, and losses in user space and in the kernel."""

import subprocess

from adapt import FULL, crowd
from many import environment, has_kernel_path, measure
from report import Column
from rig import FIRST_PORT
from servers import BUILD
from svcproxy import LINE, PACKETS, READERS
from tap import Skip

NAME = 'svc_more'
QUEUE = 256  # packets of the switch
FIT = 60     # readers of all layers
STEP = 0.2   # s of a period of measuring


def serve(rig, kernel, readers, seconds, spread=0):
    return measure(rig, 'many_layers_bench', kernel, 'all', rig.readers_address, str(FIRST_PORT),
                   str(readers), str(seconds), str(spread))


def kernels(rig):
    return ('off', 'on') if rig.real and has_kernel_path(rig) else ('off',)


class Part:
    CASE, YARDSTICK, LOG = 'readers', None, False
    LINES = True


class Rates(Part):
    """Figures 2.6 and 5.1."""

    NAME = 'svcproxy-rates'
    TITLE = 'H.264 SVC with 3 x 3 layers: what each spatial layer has in 200 ms, and in all'
    CASE, WHO = 's', 'layers'
    COLUMNS = Column('rate', 'kb/s'), Column('average', 'moving average kb/s')
    SIMULATED = True  # the stream's own time

    @staticmethod
    def run(_rig, quick):
        done = subprocess.run([BUILD / 'tests/bench/layer_rates_bench', '8' if quick else '24'],
                              env=environment(), capture_output=True, text=True, check=True)
        yield from Rates.points(done.stdout)

    @staticmethod
    def points(text):
        found = {}  # s: {spatial layer: (kb/s, average)}
        for line in text.splitlines():
            ms, layer, count, average = line.split()
            point = found.setdefault(int(ms) // 200 / 5, {})  # a period ends with the picture after it
            before = point.get(layer[0], (0, 0))
            point[layer[0]] = (before[0] + int(count) * 8e-3 / STEP, before[1] + int(average) / 1e3)
        assert len(found) > 1, 'no layer has a rate'
        del found[min(found)]  # the first period has a picture more
        for at, point in found.items():
            total = [sum(values) for values in zip(*point.values())]
            for name, (rate, average) in [*sorted(point.items()), ('all', total)]:
                yield f'{at:g}', name if name == 'all' else f'spatial {name}', {
                    'rate': rate, 'average': average}


class Readers(Part):
    """Figures 6.1 and 6.2, and table 6.1."""

    NAME = 'svcproxy-readers'
    TITLE = 'CPU time of fanoutsink by readers of all layers of H.264 SVC'
    WHO = 'way'
    COLUMNS = (Column('cpu', 'CPU %', '{:.2f}'), Column('switches', 'context switches/s'),
               Column('ns', 'ns/packet'))
    COUNTS = (10, 30, 60, 90, 120)

    @classmethod
    def run(cls, rig, quick):
        rig.drop_all_but(0)
        for readers in (10, 90, 120) if quick else cls.COUNTS:
            for kernel in kernels(rig):
                yield str(readers), f'kernel={kernel}', serve(rig, kernel, readers, 4 if quick else 10)


class Losses(Part):
    """Figures 6.3 and 6.4, and whether spreading helps both."""

    NAME = 'svcproxy-losses'
    TITLE = f'Loss behind a switch with a queue of {QUEUE} packets, which forwards {LINE} times the rate ' \
        f'of {READERS} readers'
    WHO = 'way'
    COLUMNS = Column('lost', '% of bytes lost', '{:.1f}'), Column('cpu', 'CPU %', '{:.1f}')

    @staticmethod
    def run(rig, quick):
        if not rig.real:
            raise Skip('svcproxy-losses needs the rig')
        for readers in (40, 160) if quick else (20, 40, 80, 120, 160):
            for kernel in kernels(rig):
                for spread in 0, 30:
                    with rig.switch(LINE * PACKETS * READERS, QUEUE):
                        result = serve(rig, kernel, readers, 4 if quick else 10, spread)
                        arrived, lost = rig.rtp('arrived'), rig.rtp('lost')
                    assert arrived + lost > 0, 'no packet came to the switch'
                    yield str(readers), f'kernel={kernel}, {spread} ms', {
                        **result, 'lost': 100 * lost / (lost + arrived)}


class Delivered(Part):
    """Figures 6.5 and 6.6: readers who adapt on a line for some of them."""

    NAME = 'svcproxy-delivered'
    TITLE = f'What each reader is sent on a line that carries all layers of {FIT} of them'
    WHO = 'adapt'
    COLUMNS = (Column('each', 'kb/s a reader'), Column('used', 'sent, % of the line'),
               Column('lost', 'lost %', '{:.1f}'), Column('spread', 'spatial layers between readers'))
    PICTURES = 'used',

    @staticmethod
    def run(rig, quick):
        if not rig.real:
            raise Skip('a narrow line needs the rig')
        for readers in (40, 160) if quick else (20, 40, 60, 80, 100, 120, 140, 160):
            for policy in ('bandwidth',) if quick else ('fixed', 'bandwidth', 'aimd'):
                yield str(readers), policy, crowd(rig, policy, readers, FIT * FULL)


PARTS = Rates, Readers, Losses, Delivered
