# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fuzzes the running proxy with sequences of messages, made from recorded sessions of clients.

A sequence that causes a new transition between two answers is kept, and changed further: so the
fuzzer finds its way into the states of a session. Others send changed messages to the listeners of
HTTP, the API, RTMP, SRT and TLS. Meanwhile readers play without packet loss and new clients are
answered. `./dev fuzz proxy SECONDS` runs it with AddressSanitizer and UBSan;
WEIR_SEED repeats a run, apart from the order of its threads.
"""

import collections
import os
import random
import re
import socket
import struct
import tempfile
import threading
import time

import strangers
from control import CLIP_URI, Controlled
from good import PATIENCE, Good, play_on
from multicast import enter_network
from proc import Rtsp
from scripted import Server
from secured import make_certificate
from spoil import HEADERS, other_lines, spoilt
from srtraw import RawCaller
from tap import run, test

SECONDS = float(os.environ.get('WEIR_STATEFUL_SECONDS', '15'))
SESSIONS = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'fuzz', 'sessions')
WORKERS = 12
MESSAGES_MAX = 30
KEPT_MAX = 2000
QUICK = {'linger': '200ms', 'connect-timeout': '1s', 'read-timeout': '2s', 'start-timeout': '2s'}
PATHS = '/good', '/cam', '/cache', '/clip', '/none', '/cast', '/films/bigbuckbunny.mp4'
URLS = b'*', b'', b'/', b'rtsp://', b'rtsp://127.0.0.1', b'rtsp://[', b'none', b'http://127.0.0.1/'
LISTENERS = {strangers.Web: r' titles http://[\d.]+:(\d+)', strangers.Tls: r' serves rtsps://[\d.]+:(\d+)',
             strangers.Rtmp: r' publishers at rtmp://[\d.]+:(\d+)', strangers.Srt: r' publishers at srt://[\d.]+:(\d+)'}
HAS_NETWORK = enter_network()  # before the first socket


def messages_of(data):
    """Splits what a client sent into requests and interleaved frames."""
    found = []
    while data:
        if data[:1] == b'$':
            size = 4 + struct.unpack_from('>H', data, 2)[0]
        else:
            head = data.find(b'\r\n\r\n')
            length = re.search(rb'(?i)content-length: *(\d+)', data[:head])
            size = len(data) if head < 0 else head + 4 + int(length[1] if length else 0)
        found.append(data[:size])
        data = data[size:]
    return found


def recorded():
    sequences = []
    for name in sorted(os.listdir(SESSIONS)):
        with open(os.path.join(SESSIONS, name), 'rb') as file:
            sequences.append(messages_of(file.read()))
    return sequences


def junk(chance):
    """Returns an interleaved frame whose length may be wrong."""
    data = chance.choice((chance.randbytes(chance.randrange(60)), b'\x81\xc9\0\x07' + bytes(28),
                          b'\x81\xce\0\x02' + bytes(8), b'\x81\xcb\0\x01' + bytes(4)))
    size = len(data) if chance.random() < 0.7 else chance.randrange(65536)
    return struct.pack('>cBH', b'$', chance.choice((0, 1, 2, 3, 255)), size) + data


def changed(sequence, corpus, chance):
    """Returns a copy with messages removed, repeated, moved, taken from another one, or spoilt."""
    messages = list(sequence)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(messages)) if messages else 0
        what = chance.randrange(9)
        if what == 0 and len(messages) > 1:
            del messages[at]
        elif what == 1 and messages:
            messages.insert(at, messages[chance.randrange(len(messages))])
        elif what == 2 and messages:
            messages.append(messages.pop(at))
        elif what == 3:
            other = chance.choice(corpus)
            first = chance.randrange(len(other))
            messages[at:at] = other[first:first + chance.randrange(1, 5)]
        elif what == 4:
            messages.insert(at, junk(chance))
        elif what == 5 and messages:
            messages[at] = spoilt(messages[at], chance)
        elif what == 6 and messages:
            messages[at] = re.sub(rb'^(\w+) \S+ ', lambda found: b'%s %s ' % (
                found[1], chance.choice(URLS)), messages[at])
        elif messages:
            head, end, body = messages[at].partition(b'\r\n\r\n')
            lines = other_lines(head.decode('latin-1'), HEADERS, chance).encode('latin-1')
            messages[at] = lines + end + body
    return messages[:MESSAGES_MAX] or list(sequence)


class Player(threading.Thread):
    """Plays sequences until the end. Shares the corpus and the transitions with the others."""

    def __init__(self, proxy, shared, chance, address):
        super().__init__(daemon=True)
        self.proxy, self.shared, self.chance, self.address = proxy, shared, chance, address
        self.times, self.sent, self.last, self.failed = 0, 0, collections.deque(maxlen=4), None

    def _concrete(self, message, path, session):
        """Puts this run's path, session and ports into a recorded message."""
        message = message.replace(b'127.0.0.1:8554/clip', b'127.0.0.1:%d%s' % (
            self.proxy.port, path.encode()))
        if session:
            message = re.sub(rb'(?m)^Session: [0-9a-f]{32}', b'Session: ' + session, message)
        port = self.chance.randrange(20000, 60000) & ~1
        return re.sub(rb'client_port=\d+-\d+', b'client_port=%d-%d' % (port, port + 1), message)

    def _hear(self, connection, message):
        """Returns the status and the session of the next answers; '' after the end."""
        connection.settimeout(0.01 if message.startswith(b'$') else 0.1)
        try:
            data = connection.recv(65536)
        except TimeoutError:
            return 'none', None
        statuses = re.findall(rb'RTSP/1\.[01] (\d+)', data)
        session = re.search(rb'(?m)^Session: ?([^;\r]+)', data)
        return (statuses[-1].decode() if statuses else 'data' if data else '',
                session[1] if session else None)

    def _play(self, sequence):
        path, session, trace = self.chance.choice(PATHS), None, ['begin']
        with socket.create_connection(('127.0.0.1', self.proxy.port), 5,
                                      (self.address, 0)) as connection:
            for message in sequence:
                data = self._concrete(message, path, session)
                connection.sendall(data)
                self.sent += 1
                status, found = self._hear(connection, message)
                session = found or session
                trace.append(message.split(b' ', 1)[0][:12].decode('latin-1') + status)
                if not status:
                    break
        return trace

    def run(self):
        while not self.proxy.over.is_set():
            sequence = changed(self.shared.pick(self.chance), self.shared.corpus, self.chance)
            self.last.append(sequence)
            try:
                self.shared.note(sequence, self._play(sequence))
            except OSError:
                pass  # the proxy may refuse or close at any time
            except Exception as error:  # pylint: disable=broad-except
                self.failed = repr(error)
                return
            self.times += 1


class Shared:
    """The sequences that caused a new transition."""

    def __init__(self, corpus):
        self.corpus, self.transitions, self.lock = corpus, set(), threading.Lock()

    def pick(self, chance):
        # New sequences are picked more often.
        at = max(chance.randrange(len(self.corpus)), chance.randrange(len(self.corpus)))
        return self.corpus[at]

    def note(self, sequence, trace):
        # Of a method that a sequence made up only the answer counts.
        trace = [step if re.match(r'[A-Z_]+(\d+|none|data)?$|begin', step) else '?' + step[-3:]
                 for step in trace]
        with self.lock:
            new = set(zip(trace, trace[1:])) - self.transitions
            self.transitions |= new
            if new and len(self.corpus) < KEPT_MAX:
                self.corpus.append(sequence)


def broadcasts():
    """Returns the mounts that send on multicast groups."""
    if not HAS_NETWORK:
        return {}
    cast = {'iface': 'lo', 'ttl': 0}
    return {'/cast': {'upstream': CLIP_URI, 'on-demand': False,
                      'broadcast': {'groups': '239.7.9.1', **cast}},
            '/films': {'upstream': os.path.dirname(CLIP_URI) + '/',
                       'broadcast': {'groups': '239.7.9.16/28', 'first': '1s', **cast}}}


class Open(Controlled):
    """A proxy with all listeners. `.strangers` sends changed messages to those beside RTSP."""

    def __init__(self, mounts, folder, seed):
        pair = os.path.join(folder, 'proxy.pem')
        make_certificate(pair)
        anywhere = {'listen': '127.0.0.1:0'}
        super().__init__(mounts, http=anywhere, rtmp=anywhere, srt=anywhere,
                         tls={'listen': '127.0.0.1:0', 'certificate': pair})
        self.over = threading.Event()
        ports = {kind: int(self.wait_for_line(line)[1]) for kind, line in LISTENERS.items()}
        ports[strangers.Api] = self.api_port
        self.srt_port = ports[strangers.Srt]
        self.strangers = [
            kind(self, port, random.Random(seed - n), f'127.2.{n}.1')
            for n, (kind, port) in enumerate(sorted(ports.items(), key=lambda each: each[1]))]


def seconds_to_answer(proxy):
    start = time.monotonic()
    with Rtsp(proxy.port, timeout=PATIENCE) as rtsp:
        assert rtsp.request('OPTIONS', '*')[0] == 200
    return time.monotonic() - start


def fail(players, why):
    for player in players:
        for sequence in getattr(player, 'last', ()):
            print(f'# {sequence!r}'[:4000])
    raise AssertionError(why)


def watch(proxy, goods, players):
    """Watches until the time is over. Returns the longest time to an answer."""
    worst, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        if not proxy.running():
            fail(players, f'the proxy has ended: {proxy.output()[-6000:]}')
        try:
            worst = max(worst, seconds_to_answer(proxy))
        except (OSError, AssertionError) as error:
            fail(players, f'a new client is not answered: {error!r}')
        wrong = [each.wrong for each in goods if each.wrong]
        wrong += [each.failed for each in players if each.failed]
        if wrong:
            fail(players, f'failed: {wrong}')
        time.sleep(0.2)
    return worst


@test(timeout=int(SECONDS) + 200)
def changed_sessions_harm_no_other_client():
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}', flush=True)
    threading.excepthook = lambda _args: None  # errors in the scripted servers do not count
    shared = Shared(recorded())
    with Server(play_on) as good, Server(play_on) as cam, tempfile.TemporaryDirectory() as folder:
        mounts = {'/good': {'upstream': good.url, 'transport': 'tcp', **QUICK},
                  '/cam': {'upstream': cam.url, 'transport': 'tcp', **QUICK},
                  '/cache': {'upstream': cam.url, 'cache': {'time': '2s', 'bytes': '4M'}, **QUICK},
                  '/clip': {'upstream': CLIP_URI, 'linger': '200ms'},
                  '/x/pub': {'upstream': 'publish', **QUICK}, **broadcasts()}
        with Open(mounts, folder, seed) as proxy:
            goods = [Good(proxy, udp) for udp in (False, True)]
            players = [Player(proxy, shared, random.Random(seed + n), f'127.1.{n}.1')
                       for n in range(WORKERS)] + proxy.strangers
            for each in (*goods, *players):
                each.start()
            worst = watch(proxy, goods, players)
            proxy.over.set()
            for each in (*goods, *players):
                each.join(30)
                assert not each.is_alive()
            players = [each for each in players if each not in proxy.strangers]
            print('# ' + ', '.join(f'{type(each).__name__}: {each.times}' for each in proxy.strangers))
            print(f'# {sum(each.times for each in players)} sequences, '
                  f'{sum(each.sent for each in players)} messages, {len(shared.transitions)} '
                  f'transitions, {len(shared.corpus)} sequences kept; {goods[0].packets} and '
                  f'{goods[1].packets} packets; an answer took {worst:.2f} s at most', flush=True)
            assert not [each.wrong for each in goods if each.wrong], [each.wrong for each in goods]
            assert len(shared.transitions) > 20, shared.transitions
            assert all(each.times > 20 for each in proxy.strangers)
            RawCaller(proxy.srt_port).fetch_cookie()
            assert proxy.stop() == 0, proxy.output()[-6000:]


if __name__ == '__main__':
    run()
