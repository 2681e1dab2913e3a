# SPDX-License-Identifier: LGPL-2.1-or-later
"""Experiments of the AMPS testbed (UMass 2004-08): a proxy of many streams, each with a reader."""

import functools
import os
import time

import amps_dispatchers
import amps_functions
from load import Load, figure, set_up
from pace import many
from relay_ends import Camera, Readers
from relay_measure import Case, check, figures, good, measure
from report import Column
from search import most
from servers import FILES, Weir
from tap import Skip

NAME = 'amps'
# Packets a second of each video, and the most streams of it that the testbed's proxy relayed.
VIDEOS = {'V10': (10, 2060), 'V100': (10, 1580), 'V300': (30, 710), 'V1024': (120, 280)}
FILES_OF_STREAM = 9  # of rtsp-proxy


class Testbed(Weir):
    """Ends an upstream session with its reader, as the testbed did."""

    keys = {'linger': '0s'}


@functools.cache
def relayed(rig, video, streams, window):
    """Returns what it takes to relay this number of streams of a video, spread over their time."""
    return measure(rig, Weir, Case(streams, video, video, ('spread',)), window)


class Part:
    WHO, YARDSTICK, LOG = 'video', None, False
    LINES = True


class Streams(Part):
    """Figure 9 (a)."""

    NAME = 'amps-streams'
    TITLE = 'CPU time of rtsp-proxy by streams, each with an upstream and a reader of its own'
    CASE = 'streams'
    COLUMNS = (Column('cpu', 'CPU % of one processor', '{:.1f}'), Column('lost', 'lost'),
               Column('memory', 'MB'), Column('delay_p99', 'delay p99 ms', '{:.1f}'))

    @classmethod
    def run(cls, rig, quick):
        rig.let_all_through()
        parts = (0.25, 0.5, 1) if quick else (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)
        for video, (packets, paper) in VIDEOS.items():
            for part in parts:
                streams = round(paper * part)
                values = relayed(rig, video, streams, 4 if quick else 10)
                assert 'cpu' in values, f'{streams} of {video}: not all was delivered: {values}'
                yield cls.case(streams, packets), video, values

    @staticmethod
    def case(streams, _packets):
        return str(streams)


class Packets(Streams):
    """Figure 9 (b), from the same runs."""

    NAME = 'amps-packets'
    TITLE = 'CPU time of rtsp-proxy by packets a second, from the same runs'
    CASE = 'packets a second'

    @staticmethod
    def case(streams, packets):
        return str(streams * packets)


class Maximum(Part):
    """Table 2: more streams of a video until not all is delivered."""

    NAME = 'amps-maximum'
    TITLE = 'The most streams of a video that rtsp-proxy delivers, beside their origin and readers'
    CASE, WHO, LINES = 'video', 'by', False
    COLUMNS = (Column('streams', 'streams'), Column('cpu', 'CPU % of rtsp-proxy'),
               Column('both', 'CPU % of origin and readers'), Column('tried', 'too many'))

    @staticmethod
    def run(rig, quick):
        rig.let_all_through()
        for video, (_, paper) in VIDEOS.items():
            yield video, 'AMPS', {'streams': paper}
            yield video, 'rtsp-proxy', most_of(rig, video, paper, 1.5 if quick else 1.1)


def most_of(rig, video, start, near):
    """Returns the figures of the largest number that is delivered, to a factor of `near`."""
    def trial(streams):
        case = Case(streams, video, video, ('spread',))
        try:
            values = measure(rig, Weir, case, 4)
        except AssertionError as why:  # the readers are too slow, for one
            print(f'  {streams} of {video}: {why}')
            return None
        return values if good(values, streams) else None

    streams, values, tried = most(trial, start, (FILES - 200) // FILES_OF_STREAM, near)
    assert streams, f'rtsp-proxy relays not one stream of {video}'
    return {'streams': streams, 'cpu': values['total'], 'both': values['origin'] + values['readers'],
            'tried': tried}


# ---- an origin that answers late ----

RATE, SESSION = 20, 10  # sessions a second, and their seconds
DELAYS = (20, 60, 120, 200, 300)  # ms


def threads_of(process):
    return len(os.listdir(f'/proc/{process.pid}/task'))


@functools.cache
def late(rig, delay, seconds):
    """Returns what clients see of an origin that answers each request `delay` ms late, how many
    threads the proxy has, and how many sessions wait for the origin at a time."""
    rig.drop_all_but(0)
    sessions = RATE * seconds
    with Camera(rig, 'V10', 'spread', f'late={delay}') as origin, \
            Testbed(rig, Camera.mounts(rig, sessions)) as server, \
            Load(rig, '--mute', '--readers', sessions, '--arrivals', f'poisson:{RATE}',
                 '--session', SESSION, '--duration', seconds,
                 *(server.url(f's{n}') for n in range(sessions))) as load:
        time.sleep(2)
        before, threads, first = server.usage(), [], max(origin.slots())
        while server.usage().at - before.at < seconds - 3:
            threads.append(threads_of(server))
            time.sleep(0.05)
        after, last = server.usage(), max(origin.slots())
        result = load.result(SESSION + 60)
        waiting = [values['waiting'] for slot, values in origin.slots().items() if first < slot < last]
    refused = sum(result['refused'].values()) + sum(result['errors'].values())
    assert result['connected'] > 0.5 * sessions, f'only {result["connected"]} of {sessions} connected'
    assert delay < 100 or max(waiting) > 1, 'the origin did not answer late'
    return {'threads': max(threads), 'waiting': sum(waiting) / len(waiting), 'most': max(waiting),
            'set_up': set_up(result), 'p99': set_up(result, 'p99'), 'refused': refused,
            'cpu': 100 * (after.cpu - before.cpu) / (after.at - before.at), 'all': waiting}


class Threads:
    """Figure 6: what the testbed's thread for each request becomes."""

    NAME = 'amps-threads'
    TITLE = f'{RATE} clients a second, whose upstreams answer each request late'
    CASE, WHO, YARDSTICK, LOG = 'ms late', 'of', None, False
    COLUMNS = (Column('threads', 'threads'), Column('waiting', 'requests that wait, mean', '{:.1f}'),
               Column('most', 'at most'), Column('set_up', 'set-up p50 ms'), Column('p99', 'p99 ms, summed'),
               Column('refused', 'refused'), Column('cpu', 'CPU %', '{:.1f}'))

    @staticmethod
    def run(rig, quick):
        for delay in DELAYS:
            yield str(delay), 'rtsp-proxy', late(rig, delay, 12 if quick else 40)


class Waiting(Part):
    """The curves of figure 6: of the requests that wait, each of which held a thread there."""

    NAME = 'amps-waiting'
    TITLE = f'Requests that wait for a late origin, {RATE} clients a second'
    CASE, WHO = 'more requests than this wait', 'late'
    COLUMNS = (Column('part', '% of the time', '{:.1f}'),)

    @staticmethod
    def run(rig, quick):
        for delay in DELAYS:
            waiting = late(rig, delay, 12 if quick else 40)['all']
            for number in range(0, 51, 2):
                part = 100 * sum(n > number for n in waiting) / len(waiting)
                yield str(number), f'{delay} ms', {'part': part}


# ---- gaps ----

PROBES, STARTERS = 20, 10
SESSIONS = 600  # at a time


@functools.cache
def gaps(rig, arrivals, session):
    """Returns the gaps that PROBES readers see while 600 others come and go."""
    if not rig.real:
        raise Skip('packets of other readers are dropped by the rig')
    rig.drop_all_but(PROBES + STARTERS)
    fixed, window = PROBES + STARTERS, 15
    others = arrivals * (session + window + 12)
    own = (20000 + 2 * PROBES, 20000 + 2 * fixed - 1)
    with Camera(rig, 'V300', 'spread') as origin, \
            Testbed(rig, Camera.mounts(rig, fixed + others)) as server:
        urls = [server.url(f's{n}') for n in range(fixed, fixed + others)]
        with Load(rig, '--mute', '--readers', others, '--arrivals', f'poisson:{arrivals}',
                  '--session', session, '--duration', session + window + 12, *urls,
                  ports=(20000 + 2 * fixed, 59999)) as load:
            time.sleep(session)
            with Load(rig, '--readers', STARTERS, '--arrivals', 'uniform:1', '--duration', STARTERS + 4,
                      *(server.url(f's{n}') for n in range(PROBES, fixed)), ports=own) as starters, \
                    Readers(rig, server, [f's{n}' for n in range(PROBES)], 1, PROBES, 1, window) as probes:
                probes.wait_to_measure()
                values = figures(rig, {'total': server, 'origin': origin}, probes.wait_until_done)
                seen, started = probes.result(), starters.result(60)
                playing = max(slot['sessions'] for slot in list(origin.slots().values())[-20:])
            load.result(120)
    check(Case(SESSIONS), Weir, seen)
    assert seen['lost'] == 0, f'{seen["lost"]} packets were lost'
    assert playing > SESSIONS / 2, f'only {playing} sessions played'
    return {**values, **seen, 'playing': playing, 'start': figure(started, 'first_packet_ms', 'p50')}


def parameters(quick):
    """Returns arrivals a second and seconds of a session: as many at a time, in a shorter time."""
    return (20, SESSIONS // 20) if quick else (5, SESSIONS // 5)


def mean_of(counts):
    return sum((int(ms) + 0.5) * n for ms, n in counts.items()) / sum(counts.values())


class Gaps:
    """Section 4.5."""

    NAME = 'amps-gaps'
    TITLE = f'What a client sees among {SESSIONS} sessions of V300, which come and go'
    CASE, WHO, YARDSTICK, LOG = 'clients', 'of', None, False
    COLUMNS = (Column('frame', 'frame gap, mean ms', '{:.1f}'), Column('longest', 'longest ms'),
               Column('buffer', 'buffer that is enough, ms', '{:.1f}'),
               Column('start', 'first packet p50 ms', '{:.1f}'), Column('playing', 'sessions'),
               Column('lost', 'lost'), Column('total', 'CPU %', '{:.1f}'))

    @staticmethod
    def run(rig, quick):
        arrivals, session = parameters(quick)
        values = gaps(rig, arrivals, session)
        frames = values['frame_gaps']
        yield f'{arrivals}/s x {session} s', 'rtsp-proxy', {
            **values, 'frame': mean_of(frames), 'longest': max(map(int, frames)) + 1,
            'buffer': values['buffer_ms']}


class Histogram(Part):
    """Figure 10."""

    NAME = 'amps-histogram'
    TITLE = f'Gaps of packets and frames that a client sees among {SESSIONS} sessions of V300'
    CASE, WHO = 'ms', 'gaps of'
    COLUMNS = (Column('part', '% of the gaps', '{:.2f}'),)

    @staticmethod
    def run(rig, quick):
        values = gaps(rig, *parameters(quick))
        for name in 'packets', 'frames':
            counts = {int(ms): n for ms, n in values[f'{name[:-1]}_gaps'].items()}
            for ms in range(0, max(counts) + 2):
                yield str(ms), name, {'part': 100 * counts.get(ms, 0) / sum(counts.values())}


class Rounds(Part):
    """Figure 8, with pacers of streams of 1 Mb/s."""

    NAME = 'amps-rounds'
    TITLE = 'CPU time of ratepacers of 1 Mb/s, by how they wake'
    CASE, WHO = 'streams', 'rounds'
    COLUMNS = (Column('cpu', 'CPU %', '{:.1f}'), Column('late', 'late p99.9 ms', '{:.1f}'),
               Column('threads', 'threads'))
    WAYS = {'none: each packet at its time': '', 'of 15 ms': 'rounds=15000000',
            'of 33 ms, in two micro-rounds': 'rounds=33000000 microrounds=2'}

    @classmethod
    def run(cls, rig, quick):
        for streams in (500, 2000) if quick else (250, 500, 1000, 1500, 2000):
            for way, properties in cls.WAYS.items():
                values = many(rig, streams, 4 if quick else 10, properties)
                yield str(streams), way, values


PARTS = Streams, Packets, Threads, Waiting, Gaps, Histogram, Maximum, Rounds, amps_functions,\
    amps_dispatchers.Dispatchers
