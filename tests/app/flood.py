# SPDX-License-Identifier: LGPL-2.1-or-later
"""Malformed requests, slow clients and readers that stop, in masses, while good readers play: these
lose no packet, and each hostile connection is answered or closed in time.

WEIR_FLOOD_REQUESTS sets the number of malformed requests, 100000 for the long form; then the time
of a DESCRIBE beside slow clients is checked too. WEIR_SEED repeats a run.
"""

import json
import os
import random
import socket
import statistics
import sys
import threading
import time
from contextlib import ExitStack

from control import Controlled, Watch, rss_kib
from good import SANITIZED, play_on
from proc import Proc, Rtsp
from proxy import matches, wait_until
from scripted import KEY_PICTURE, PICTURE, VIDEO, Server, rtp
from tap import run, test
from watchers import Watchers

REQUESTS = int(os.environ.get('WEIR_FLOOD_REQUESTS', '3000'))
LONG = REQUESTS >= 100000
READERS = 50
SLOW = 1000
DEADLINE_S = 15
# The machine runs other tests; the sanitizers slow the proxy down.
PATIENCE = 4 if LONG else 20
SEED = int(os.environ.get('WEIR_SEED', time.time()))


# ---- malformed requests ----

SEEDS = (
    'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n',
    'DESCRIBE rtsp://h/cam RTSP/1.0\r\nCSeq: 2\r\nAccept: application/sdp\r\n\r\n',
    'SETUP rtsp://h/cam/stream=0 RTSP/1.0\r\nCSeq: 3\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1'
    '\r\n\r\n',
    'PLAY rtsp://h/cam RTSP/1.0\r\nCSeq: 4\r\nSession: 12345678\r\nRange: npt=0-\r\n\r\n',
    'SET_PARAMETER rtsp://h/cam RTSP/1.0\r\nCSeq: 5\r\nContent-Length: 4\r\n\r\nx: y',
    'GET_PARAMETER rtsp://h/cam RTSP/1.0\r\nCSeq: 6\r\nAuthorization: Basic eDp5\r\n\r\n',
)
PIECES = (b'\r\n', b'\r\n\r\n', b'\n', b'\r', b'\0', b'$\0\0\4', b'$\xff\xff\xff', b':', b' ', b'\t',
          b'RTSP/1.0', b'RTSP/9.9', b'HTTP/1.1', b'Content-Length: 99999999\r\n', b'Content-Length: -1\r\n',
          b'CSeq: x\r\n', b'%n%s', b'/../', b'\xff\xfe', b'a' * 3000, b'X: y\r\n' * 70, b'Session: x\r\n')


def malformed(chance, number):
    """Returns bytes that no other number has: from a valid request by a few changes."""
    data = bytearray(chance.choice(SEEDS).encode())
    for _ in range(chance.randrange(1, 5)):
        at, what = chance.randrange(len(data) + 1), chance.randrange(5)
        if what == 0:
            data[at:at] = chance.choice(PIECES)
        elif what == 1:
            del data[at:at + chance.randrange(1, 20)]
        elif what == 2 and at < len(data):
            data[at] = chance.randrange(256)
        elif what == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 9))
        else:
            data[at:at] = data[at:at + chance.randrange(1, 60)]
    return b'%sX-Number: %d\r\n\r\n' % (data, number)


class Hostile(threading.Thread):
    """Sends malformed requests, each on a connection of its own, and waits for its end."""

    def __init__(self, port, first, number):
        super().__init__(daemon=True)
        self.port, self.first, self.number = port, first, number
        self.worst, self.failed = 0, None
        self.start()

    def _one(self, data):
        with socket.create_connection(('127.0.0.1', self.port), PATIENCE) as connection:
            start = time.monotonic()
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass
            self.worst = max(self.worst, time.monotonic() - start)

    def run(self):
        for number in range(self.first, self.first + self.number):
            data = malformed(random.Random(SEED + number), number)
            try:
                self._one(data)
            except OSError as error:
                self.failed = f'{error!r} after {data!r}'
                return


@test(timeout=REQUESTS // 25 + 120)
def malformed_requests_harm_no_reader():
    print(f'# WEIR_SEED={SEED}', flush=True)
    with Server(play_on) as origin, \
            Controlled({'/cam': {'upstream': origin.url, 'transport': 'tcp'}}) as proxy:
        good = Watchers(proxy, READERS)
        memory, start = rss_kib(proxy), time.monotonic()
        crowd = [Hostile(proxy.port, n * (REQUESTS // 4), REQUESTS // 4) for n in range(4)]
        for each in crowd:
            each.join()
        assert proxy.running() and not [each.failed for each in crowd if each.failed], \
            [each.failed for each in crowd]
        worst = max(each.worst for each in crowd)
        print(f'# {REQUESTS} requests in {time.monotonic() - start:.0f} s, an answer took {worst:.2f} s at '
              f'most, {rss_kib(proxy) - memory} KiB more', flush=True)
        assert worst < PATIENCE
        good.check()
        assert proxy.stop() == 0


# ---- slow clients ----


def be_slow(port):
    """Opens connections that each send a byte every second or so, not all at the same time. Prints
    the time of each one's end. Runs in a process of its own, so that it does not delay the test."""
    open_ones = {}
    for _ in range(SLOW):
        connection = socket.create_connection(('127.0.0.1', port), 10)
        connection.setblocking(False)
        open_ones[connection] = time.monotonic()
    print('begun', flush=True)
    ends = []
    for byte in b'DESCRIBE rtsp://127.0.0.1/cam RTSP/1.0\r\nX: ' + b'y' * 1000:
        for number, (connection, since) in enumerate(list(open_ones.items())):
            if number % 10 == 0:
                time.sleep(0.01)
            try:
                connection.send(bytes((byte,)))
                ended = not connection.recv(65536)
            except BlockingIOError:
                ended = False
            except OSError:
                ended = True
            if ended or time.monotonic() - since > DEADLINE_S + PATIENCE:
                ends.append(time.monotonic() - since)
                connection.close()
                del open_ones[connection]
        if not open_ones:
            break
    print(f'ends {json.dumps(ends)}', flush=True)


def seconds_to_describe(proxy, number=200):
    """Returns the median and the 99th percentile of the time that a new client waits for
    DESCRIBE."""
    times = []
    for _ in range(number):
        start = time.monotonic()
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
        times.append(time.monotonic() - start)
        time.sleep(0.02)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


@test(timeout=180)
def slow_clients_harm_no_reader():
    with Server(play_on) as origin, \
            Controlled({'/cam': {'upstream': origin.url, 'transport': 'tcp'}},
                       limits={'connections': SLOW + READERS + 100}) as proxy:
        good = Watchers(proxy, READERS)
        idle_median, idle = seconds_to_describe(proxy)
        with Proc(sys.executable, __file__, '--slow', proxy.port) as slow:
            slow.wait_for_line('begun', 30)
            busy_median, busy = seconds_to_describe(proxy)
            ends = json.loads(slow.wait_for_line(r'ends (\[.*)', 60)[1])
        print(f'# {len(ends)} slow clients, the last one closed after {max(ends):.1f} s; '
              f'DESCRIBE took {1000 * busy_median:.1f} ms (median) and {1000 * busy:.1f} ms (p99), '
              f'without them {1000 * idle_median:.1f} ms and {1000 * idle:.1f} ms', flush=True)
        assert len(ends) == SLOW
        assert max(ends) < DEADLINE_S + (0 if LONG else PATIENCE)
        assert not LONG or busy < 2 * idle
        good.check()


# ---- readers that stop ----


def play_much(session):
    """Plays 2 Mb/s, so that what a reader does not read fills the buffers of the kernel."""
    start, seq = time.monotonic(), 0
    try:
        while not session.left.is_set():
            picture = KEY_PICTURE if seq % 100 == 0 else PICTURE
            session.send(VIDEO, rtp(seq, seq // 4 * 1800, picture + bytes(1200)))
            seq += 1
            time.sleep(max(0, start + seq * 0.005 - time.monotonic()))
    except OSError:
        pass


@test(timeout=120)
def readers_that_stop_harm_no_other():
    with Server(play_much) as origin, \
            Controlled({'/cam': {'upstream': origin.url, 'transport': 'tcp'}}) as proxy, \
            ExitStack() as stack:
        good = Watchers(proxy, READERS)
        memory = most = rss_kib(proxy)
        deaf, since = [stack.enter_context(Watch(proxy)) for _ in range(READERS)], time.monotonic()

        def all_closed():
            nonlocal most
            most = max(most, rss_kib(proxy))
            return len(matches(proxy, 'reader .* out: /cam: the client stopped reading')) == len(deaf)

        wait_until(all_closed, 60, 'the readers that stopped are closed')
        print(f'# {len(deaf)} readers that stopped were closed within {time.monotonic() - since:.1f} s; '
              f'{most - memory} KiB more', flush=True)
        assert SANITIZED or most < memory + 64 * 1024
        good.check()


if __name__ == '__main__':
    if sys.argv[1:2] == ['--slow']:
        be_slow(int(sys.argv[2]))
    else:
        run()
