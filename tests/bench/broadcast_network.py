# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of the paper on periodic broadcast and patching (Bradshaw et al.) with rtsp-proxy,
a network that snoops IGMP, and clients that join and leave.

All times are a tenth of the paper's, but for the frames': titles of 90 s, and a first segment of
0.3, 1 and 3 s for its 3-, 10- and 30-GDB. The numbers of segments and streams are the same then.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from configured import Configured
from multicast_rig import MulticastRig
from netns import NoRig
from report import Column
from servers import BUILD, CACHE, ROOT
from tap import Skip

HERE = pathlib.Path(__file__).parent
MEGABITS, LENGTH, RATE, TITLES = 3, 90, 30, 3
GROUP, PORT = '239.78.1.0', 5004
CACHE_BYTES = '3200K'  # a tenth of the paper's 32 MB
READERS = 30
WARM_UP, MEASURED = 12, 40


def title(kilobits=1000 * MEGABITS, length=LENGTH):
    """Makes a title with a constant bit rate, once."""
    full = kilobits == 1000 * MEGABITS
    name = f'{MEGABITS}M' if full else f'{kilobits}k'
    source = ['-stream_loop', '-1', '-i', ROOT / 'tests/data/bigbuckbunny.mp4'] if full else [
        '-f', 'lavfi', '-i', f'testsrc2=s=160x90:r={RATE}']
    path = CACHE / f'broadcast-{name}-{length}.mp4'
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part, rate = path.with_suffix('.part.mp4'), f'{kilobits}k'
        subprocess.run(
            ['ffmpeg', '-nostdin', '-loglevel', 'error', '-y', *source,
             '-an', '-t', str(length), '-r', str(RATE),
             '-c:v', 'libx264', '-preset', 'veryfast', '-b:v', rate, '-minrate', rate, '-maxrate',
             rate, '-bufsize', f'{kilobits // 2}k', '-nal-hrd', 'cbr', '-bf', '0', part],
            check=True)
        part.rename(path)
    return path


@contextlib.contextmanager
def network(clients, router=False):
    try:
        with MulticastRig(clients, router) as rig:
            yield rig
    except NoRig as why:
        raise Skip(str(why)) from None


class Films(Configured):
    """A proxy that broadcasts copies of the title."""

    def __init__(self, rig, broadcast, copies=TITLES, source=None, environment=None):
        self.environment = {**Configured.environment, **(environment or {})}
        self._films = tempfile.TemporaryDirectory(dir=CACHE)
        self.names = [f'{n}.mp4' for n in range(copies)]
        for name in self.names:
            os.link(source or title(), os.path.join(self._films.name, name))
        super().__init__(rig, {'/films': {
            'upstream': f'file://{self._films.name}/',
            'broadcast': {'groups': f'{GROUP}/25', 'port': PORT, 'ttl': 4, 'iface': 'eth0',
                          'cache': CACHE_BYTES, **broadcast}}})

    def urls(self):
        return [self.url(f'films/{name}') for name in self.names]

    def figures(self):
        return self.get('/v1/mounts/films')['broadcast']


def run_in(side, script, *words):
    """Starts one of the scripts beside this one; it prints JSON."""
    return subprocess.Popen([*side, sys.executable, HERE / script, *map(str, words)],
                            stdout=subprocess.PIPE, text=True)


def result_of(process):
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, f'{process.args} failed'
    return json.loads(out)


def prepare(rig, server):
    """Asks once for each title, until all are prepared."""
    deadline = time.monotonic() + 60
    while server.figures()['titles'] < len(server.names):
        assert time.monotonic() < deadline, 'the titles are not prepared'
        result_of(run_in(rig.clients[0], 'describers.py', 20, 1, 1, *server.urls()))


def readers_of(side, count, arrive, seconds, urls):
    """Readers that come within `arrive` s."""
    return subprocess.Popen(
        [*side, BUILD / 'apps/rtsp-load/rtsp-load', '--scheme', '--json', '-n', str(count), '-d',
         str(seconds), '--arrivals', f'uniform:{count / arrive}', *urls],
        stdout=subprocess.PIPE, text=True)


def figures_of(process):
    out, _ = process.communicate(timeout=1000)
    assert process.returncode == 0, 'rtsp-load failed'
    found = json.loads(out)
    assert found['done'] == found['clients'], f'{found["done"]:.0f} readers came to the end'
    assert found['packets'] > 0, 'the readers got no packets'
    return found


def seen(found):
    """Returns the columns that the readers' figures give."""
    return {'conformance': found['conformance'], 'lost': found['lost'],
            'start': found['start_up_p50_ms'], 'start_p99': found['start_up_p99_ms'],
            'stalls': found['stalls'], 'unicast': found['unicast_share']}


class Part:
    YARDSTICK, LOG = None, False


class Service(Part):
    """Section 6.3 of the paper: 3-, 10- and 30-GDB of three titles, few and many requests."""

    NAME = 'broadcast-service'
    TITLE = f'{TITLES} titles of {LENGTH} s and {MEGABITS} Mb/s, {READERS} readers and requests ' \
        'that receive nothing'
    CASE, WHO = 'requests a minute', 'scheme'
    COLUMNS = (Column('conformance', '% of packets in time', '{:.3f}'),
               Column('start', 'start-up beyond the wait p50 ms'),
               Column('start_p99', 'p99 ms'), Column('stalls', 'stalls'),
               Column('variation', 'variation of frame gaps', '{:.4f}'),
               Column('answer', 'DESCRIBE p50 ms', '{:.1f}'),
               Column('answer_p99', 'p99 ms', '{:.1f}'),
               Column('sent', 'sent Mb/s', '{:.1f}'), Column('read', 'read Mb/s', '{:.1f}'),
               Column('cpu', 'CPU %', '{:.1f}'))
    PICTURES = 'answer', 'variation', 'read'  # the first is figure 8

    @staticmethod
    def run(_rig, quick):
        cases = [(10, 60000)] if quick else [
            (first, requests) for first in (3, 10, 30) for requests in (1, 600, 6000, 60000)]
        for first, requests in cases:
            yield f'{requests}', f'{first}-GDB', serve(first, requests)


def serve(first, requests):
    seconds = LENGTH + first + 15
    with network(3) as rig, Films(rig, {'scheme': 'gdb', 'first': f'{first * 100}ms'}) as server:
        prepare(rig, server)
        readers = readers_of(rig.clients[0], READERS, 10, seconds, server.urls())
        time.sleep(WARM_UP)
        begin, before = server.usage(), server.figures()
        gaps = run_in(rig.clients[1], 'group_gaps.py', GROUP, PORT, 1000 / RATE, MEASURED)
        asks = run_in(rig.clients[2], 'describers.py', requests / 60, MEASURED, 16, *server.urls())
        even, asked = result_of(gaps), result_of(asks)
        end, after = server.usage(), server.figures()
        found = figures_of(readers)
    took = end.at - begin.at
    assert asked['got'] == asked['asked'], f'only {asked["got"]} of {asked["asked"]} schedules'
    return {**seen(found), 'variation': even['variation'], 'answer': asked['p50'],
            'answer_p99': asked['p99'], 'cpu': 100 * (end.cpu - begin.cpu) / took,
            'sent': (after['sent-bytes'] - before['sent-bytes']) * 8e-6 / took,
            'read': (after['read-bytes'] - before['read-bytes']) * 8e-6 / took}


class Losses(Part):
    """Section 6.4.2 of the paper: a way on which up to a fifth of the packets is lost, one by
    one."""

    NAME = 'broadcast-losses'
    TITLE = f'{READERS} readers of 10-GDB and of patching behind a way that loses single packets'
    CASE, WHO = '% lost on the way', 'scheme'
    COLUMNS = (Column('unicast', '% of bytes by unicast', '{:.1f}'),
               Column('lost', 'packets lost at the decoder'),
               Column('conformance', '% of packets in time', '{:.3f}'),
               Column('stalls', 'stalls'), Column('start_p99', 'start-up beyond the wait p99 ms'))

    @staticmethod
    def run(_rig, quick):
        for percent in (20,) if quick else (1, 5, 20):
            for scheme in ({'scheme': 'gdb', 'first': '1s'}, {'scheme': 'patching'})[:1 if quick else 2]:
                yield f'{percent}', scheme['scheme'], lose(scheme, percent)


def lose(scheme, percent):
    with network(1) as rig, Films(rig, scheme) as server:
        prepare(rig, server)
        rig.lose(0, percent)
        found = figures_of(readers_of(rig.clients[0], READERS, 10, LENGTH + 15,
                                      server.urls()))
        dropped, _ = rig.counted(0)
    assert dropped > 0, 'no packet was lost on the way'
    return seen(found)


class Patched(Part):
    """Section 6.3.2 of the paper: patching of three titles over a network, few and many requests."""

    NAME = 'broadcast-patched'
    TITLE = f'Patching of {TITLES} titles of {LENGTH} s and {MEGABITS} Mb/s, readers of each for its whole length'
    CASE, WHO = 'requests a minute', 'by'
    COLUMNS = (Column('sent', 'sent Mb/s', '{:.1f}'), Column('groups', 'on groups', '{:.1f}'),
               Column('conformance', '% of packets in time', '{:.3f}'), Column('start_p99', 'start-up p99 ms'), Column('stalls', 'stalls'),
               Column('cpu', 'CPU %', '{:.1f}'))
    PAPER = {10: 20.85, 50: 55.27}  # its 1 and 5 a minute, in a tenth of the time

    @classmethod
    def run(cls, _rig, quick):
        for requests, sent in cls.PAPER.items():
            yield f'{requests}', 'paper', {'sent': sent}
            if requests == max(cls.PAPER) or not quick:
                yield f'{requests}', 'rtsp-proxy', (
                    patch(requests, LENGTH // 3, LENGTH // 2) if quick else patch(requests, 3 * LENGTH))


def patch(requests, arrive, length=LENGTH):
    """Readers come for `arrive` s, and what is sent counts from a title's length on. They come more often
    to titles of another `length`, so that as many are there at a time."""
    with network(1) as rig, Films(rig, {'scheme': 'patching'}, source=title(length=length)) as server:
        prepare(rig, server)
        readers = readers_of(rig.clients[0], requests * LENGTH * (arrive + length) // (60 * length), arrive + length,
                             arrive + 2 * length + 15, server.urls())
        time.sleep(length)
        begin, before = server.usage(), server.figures()
        time.sleep(arrive)
        end, after = server.usage(), server.figures()
        found = figures_of(readers)
    took = end.at - begin.at
    groups = (after['sent-bytes'] - before['sent-bytes']) * 8e-6 / took
    patches = found['unicast_bytes'] * 8e-6 / (arrive + length)  # which come with the readers
    return {**seen(found), 'cpu': 100 * (end.cpu - begin.cpu) / took, 'groups': groups, 'sent': groups + patches}


class Later(Part):
    """A title that lasts longer than the proxy keeps a connection without a session (60 s): what a
    client asks for later costs neither a new viewer nor the rest of the title by unicast."""

    NAME = 'broadcast-later'
    READERS, KILOBITS = 10, 200
    TITLE = f'{READERS} readers who come to one title of {KILOBITS} kb/s within 10 s, by patching'
    CASE, WHO = 'length, % lost', 'scheme'
    COLUMNS = (Column('admitted', 'viewers'), Column('sent', 'transmissions', '{:.2f}'),
               Column('unicast', '% of bytes by unicast', '{:.2f}'),
               Column('lost', 'packets lost at the decoder'), Column('stalls', 'stalls'))

    @classmethod
    def run(cls, _rig, quick):
        length = 95 if quick else 600
        for percent in 1, 20:
            yield f'{length} s, {percent} %', 'patching', cls.measure(length, percent)

    @classmethod
    def measure(cls, length, percent):
        with network(1) as rig, Films(rig, {'scheme': 'patching', 'threshold': '30s'}, 1,
                                      title(cls.KILOBITS, length)) as server:
            prepare(rig, server)
            before = server.figures()
            rig.lose(0, percent)
            found = figures_of(readers_of(rig.clients[0], cls.READERS, 10, length + 25,
                                          server.urls()))
            after = server.figures()
        each = (found['group_bytes'] + found['unicast_bytes']) / cls.READERS
        return {**seen(found), 'admitted': after['admitted'] - before['admitted'],
                'sent': (after['sent-bytes'] - before['sent-bytes']) / each}


class Router(Part):
    NAME = 'broadcast-router'
    TITLE = f'{READERS} readers of 10-GDB behind a multicast router'
    CASE, WHO = 'network', 'scheme'
    COLUMNS = (Column('conformance', '% of packets in time', '{:.3f}'),
               Column('unicast', '% of bytes by unicast', '{:.2f}'),
               Column('start_p99', 'start-up beyond the wait p99 ms'), Column('stalls', 'stalls'))

    @staticmethod
    def run(_rig, quick):
        for router in (True,) if quick else (False, True):
            with network(1, router) as rig, Films(rig, {'scheme': 'gdb', 'first': '1s'}) as server:
                prepare(rig, server)
                found = figures_of(readers_of(rig.clients[0], READERS, 10, LENGTH + 15,
                                              server.urls()))
            yield 'router' if router else 'bridge', '10-GDB', seen(found)
