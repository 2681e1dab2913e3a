# SPDX-License-Identifier: LGPL-2.1-or-later
"""More experiments of "One-to-Many Streaming Splicing": copied and shared payload, ways to send
without a copy, and the largest number of readers, also on a small machine."""

from omss import measure, ways
from omss_priority import Priorities
from processor_group import ProcessorGroup
from report import Column
from search import most

NAME = 'omss_more'
READERS, RATE = 800, 50  # packets a second to each
SHARED = ('zerocopy', 'splice', 'sendfile')  # of omss_daemon.h
LEAST = 99        # % of what is due that must be sent
SMALL = 0.05      # of a processor


def if_sent(values):
    """Leaves out the cost where not all was sent: it is that of something else."""
    return values if values['delivered'] >= LEAST - 2 else {'delivered': values['delivered']}


class Part:
    CASE, WHO, LOG = 'readers', 'way', False
    COLUMNS = (Column('ns', 'ns/packet'), Column('cpu', 'CPU %', '{:.1f}'),
               Column('delivered', 'sent, % of what is due'),
               Column('copied', '% copied all the same', '{:.0f}'))


class Copies(Part):
    """Figure 7: the same loop with a copy for each reader, and without one."""

    NAME = 'omss-copies'
    TITLE = f'{RATE} packets a second to {READERS} readers, copied to each and sent without a copy'
    CASE, YARDSTICK = 'bytes of payload', 'connected'

    @staticmethod
    def run(rig, quick):
        for transport in 'udp', 'tcp':
            for payload in (100, 200, 1400) if quick else (50, 100, 200, 400, 700, 1000, 1400):
                for way in ('connected', *SHARED):
                    yield f'{payload} {transport.upper()}', way, if_sent(measure(
                        rig, way, transport, READERS, payload, 3 if quick else 10, payload * 8e-3 * RATE))


class Tcp(Part):
    """Figure 6b, by what Linux has today in the place of the paper's sendpage."""

    NAME = 'omss-tcp'
    TITLE = 'One stream of 256 kb/s in packets of 1400 bytes over TCP, sent without a copy'
    YARDSTICK = 'daemon'

    @staticmethod
    def run(rig, quick):
        for readers in (1000, 4000) if quick else (500, 1000, 2000, 4000):
            for way in ('daemon', 'engine', *SHARED):
                yield f'{readers} TCP', way, if_sent(
                    measure(rig, way, 'tcp', readers, 1400, 3 if quick else 10))


def largest(rig, way, transport, start, limit, quick, enter=()):
    def trial(readers):
        values = measure(rig, way, transport, readers, 1400, 3 if quick else 10, enter=enter)
        return values if values['delivered'] >= LEAST else None

    readers, values, tried = most(trial, start, limit, 1.5 if quick else 1.1)
    return {'most': readers, 'cpu': values and values['cpu'], 'tried': tried}


class Capacity(Part):
    """Figures 6a and 6b up to the end."""

    NAME = 'omss-capacity'
    TITLE = 'The most readers of a stream of 256 kb/s who are sent 99 % of what is due'
    CASE, YARDSTICK = 'transport', None
    COLUMNS = Column('most', 'readers'), Column('cpu', 'CPU %'), Column('tried', 'too many')
    LIMITS = {'udp': 40000, 'tcp': 12000}  # ports; what the bench's own readers can take

    @classmethod
    def run(cls, rig, quick):
        for transport, limit in cls.LIMITS.items():
            for way in ways():
                if way != 'ingress' and not (way == 'kernel' and transport == 'tcp'):
                    yield transport.upper(), way, largest(rig, way, transport, 4000, limit, quick)


class Small(Part):
    """Figure 6c: what a slow machine carries."""

    NAME = 'omss-small'
    TITLE = f'The most readers of the same stream with {100 * SMALL:.0f} % of a processor'
    CASE, YARDSTICK = 'transport', None
    COLUMNS = Capacity.COLUMNS

    @staticmethod
    def run(rig, quick):
        with ProcessorGroup() as group:
            group.limit(SMALL)
            for transport in 'tcp', 'udp':
                for way in ways():
                    if way != 'ingress' and not (way == 'kernel' and transport == 'tcp'):
                        yield transport.upper(), way, largest(rig, way, transport, 400, 4000, quick, group.words)


PARTS = Copies, Tcp, Capacity, Small, Priorities
