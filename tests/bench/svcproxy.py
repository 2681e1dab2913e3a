# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of a proxy for scalable video: 160 readers of H.264 SVC with 3 x 3 layers."""

from many import has_kernel_path, measure
from report import Column
from rig import FIRST_PORT
from tap import Skip

NAME = 'svcproxy'
READERS = 160
PACKETS = 252  # a second, of all layers
LINE, QUEUES = 2, (256, 1024)  # of the burst experiment: times the rate of all readers, and packets


CHANGES = {'keep their layers': None, 'have changed them': 'before', 'change them every 5 s': '5000',
           'change them every 2 s': '2000'}


def serve(rig, kernel, layers, seconds, spread=0, changes=None):
    result = measure(rig, 'many_layers_bench', kernel, layers, rig.readers_address, str(FIRST_PORT),
                     str(READERS), str(seconds), str(spread), *([changes] if changes else ()))
    return {**result, 'rate': result['bits'] / READERS / 1e3}


class Layers:
    NAME = 'svcproxy-layers'
    TITLE = f'{READERS} readers of H.264 SVC, which all choose the same layers'
    CASE, WHO, YARDSTICK, LOG = 'spatial.temporal layers', 'way', None, False
    COLUMNS = (Column('rate', 'kb/s a reader'), Column('cpu', 'CPU %', '{:.1f}'),
               Column('ns', 'ns/packet'))
    PICTURES = 'cpu',

    @staticmethod
    def run(rig, quick):
        rig.drop_all_but(0)
        ways = ('off', 'on') if rig.real and has_kernel_path(rig) else ('off',)
        for spatial in range(3):
            for temporal in range(0, 3, 2 if quick else 1):
                for way in ways:
                    layers = f'{spatial}.{temporal}'
                    yield layers, f'kernel={way}', serve(rig, way, layers, 3 if quick else 10)


class Adapting:
    """Readers who change their layers beside readers who do not."""

    NAME = 'svcproxy-adapting'
    TITLE = f'{READERS} readers of H.264 SVC, who keep their layers or change them'
    CASE, WHO, YARDSTICK, LOG = 'layers, way', 'readers', 'keep their layers', False
    COLUMNS = (Column('ns', 'ns/packet', spread=True), Column('cpu', 'CPU %', '{:.1f}'),
               Column('cloned', '% of messages by clones'), Column('rate', 'kb/s a reader'))

    @staticmethod
    def run(rig, quick):
        rig.drop_all_but(0)
        ways = ('off', 'on') if rig.real and has_kernel_path(rig) else ('off',)
        for _ in range(1 if quick else 3):
            for layers, name in ('9', 'nine sets'), ('2.2', 'all'):
                for way in ways:
                    for readers, changes in CHANGES.items():
                        if layers == '2.2' and changes and changes != 'before':
                            continue  # readers who change their layers do not have all
                        result = serve(rig, way, layers, 5 if quick else 10, changes=changes)
                        assert result['dropped'] == 0, f'{name}, kernel={way}, {readers}: {result}'
                        yield f'{name}, kernel={way}', readers, result


class Bursts:
    """What the thesis left for later: loss by bursts, and how spreading them helps."""

    NAME = 'svcproxy-bursts'
    TITLE = f'{READERS} readers of all layers behind a switch, which forwards {LINE} times their rate'
    CASE, WHO, YARDSTICK, LOG = 'queue, packets', 'spread', '0 ms', False
    COLUMNS = (Column('lost', '% of bytes lost', '{:.1f}'), Column('rate', 'kb/s sent to a reader'),
               Column('cpu', 'CPU %', '{:.1f}'))

    @staticmethod
    def run(rig, quick):
        if not rig.real:
            raise Skip('svcproxy-bursts needs the rig')
        for queue in QUEUES:
            for spread in (0, 30) if quick else (0, 5, 10, 20, 30):
                with rig.switch(LINE * PACKETS * READERS, queue):
                    result = serve(rig, 'off', 'all', 4 if quick else 10, spread)
                    arrived, lost = rig.rtp('arrived'), rig.rtp('lost')
                yield str(queue), f'{spread} ms', {
                    **result, 'lost': 100 * lost / (lost + arrived)}


PARTS = Layers, Adapting, Bursts
