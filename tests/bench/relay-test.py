# SPDX-License-Identifier: LGPL-2.1-or-later
"""The origin and the readers of the bench `relay` count packets exactly. Needs root, for the rig."""

import contextlib
import subprocess
import sys

import relay_measure
from relay_ends import Camera
from relay_measure import Case, check, measure_read
from rig import NoRig, Rig
from servers import ORIGIN_PORT
from tap import Skip, run, test

WINDOW = 1
LOSS = 50  # every so many packets one is lost


class Straight:
    """The origin in the place of a server."""

    name = 'origin'

    def __init__(self, rig, origin):
        self.pid = origin.pid
        self._base = f'rtsp://{rig.server_address}:{ORIGIN_PORT}'

    def url(self, path):
        return f'{self._base}/{path}'


@contextlib.contextmanager
def rig():
    relay_measure.SETTLE = 0.2
    try:
        with Rig() as both:
            yield both
    except NoRig as why:
        raise Skip(str(why)) from None


def measured(both, case, first=0):
    mounts = {f's{first + n}': None for n in range(case.streams)}
    with Camera(both, case.shape, *case.how) as origin:
        values = measure_read(both, case, Straight(both, origin), mounts, origin, WINDOW)
    check(case, Straight, values)
    return values


@test
def every_packet_is_counted_as_sent_and_as_received():
    with rig() as both:
        for case in (Case(20), Case(20, how=('sound', 'spread')), Case(20, how=('single',)),
                     Case(50, shape='V10')):
            values = measured(both, case)
            assert values['delivered'] == 100, (case, values)
            assert values['packets'] > 5 * case.streams, (case, values)
            for key in 'lost', 'reordered', 'duplicates', 'silent', 'failed', 'failures':
                assert values[key] == 0, (case, key, values)


@test
def lost_packets_are_counted_and_lower_the_share_delivered():
    with rig() as both:
        both.lose(LOSS)
        values = measured(both, Case(20, how=('single',)))
    # The readers notice a loss at the next packet, which may be behind the end of the window.
    missing = values['packets'] - values['received']
    assert abs(missing - values['packets'] / LOSS) <= 1, values
    assert abs(missing - values['lost']) <= 2, values


@test
def gaps_of_packets_and_frames_are_counted():
    with rig() as both:
        values = measured(both, Case(10, shape='V300'))
    # Every reader has one packet and one frame less of gaps; a frame has two packets.
    packets, frames = (sum(values[key].values()) for key in ('packet_gaps', 'frame_gaps'))
    assert packets == values['received'] - 10, values
    assert frames == values['received'] / 2 - 10, values
    assert values['buffer_ms'] >= 0, values


# Sends three requests at once, and takes two answers, no earlier than 150 and 300 ms later.
ASKS = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
begin = time.monotonic()
for n in 1, 2, 3:
    s.sendall(b"OPTIONS * RTSP/1.0\\r\\nCSeq: %d\\r\\n\\r\\n" % n)
for n in 1, 2:
    text = b""
    while not text.endswith(b"\\r\\n\\r\\n"):
        text += s.recv(1)
    assert b"CSeq: %d" % n in text, text
    assert time.monotonic() - begin >= 0.15 * n, (n, time.monotonic() - begin)
"""


@test
def an_origin_answers_as_late_as_it_is_told():
    with rig() as both, Camera(both, 'V10', 'late=150') as origin:
        for _ in range(2):  # the third request goes with its session
            subprocess.run([*both.readers, sys.executable, '-c', ASKS, both.server_address,
                            str(ORIGIN_PORT)], check=True, timeout=30)
        assert origin.running()


@test
def packets_of_another_stream_fail_the_bench():
    with rig() as both:
        try:
            values = measured(both, Case(3), first=1)
        except AssertionError as error:
            assert 'packets came to readers of other streams' in str(error), error
        else:
            raise AssertionError(f'accepted: {values}')


if __name__ == '__main__':
    run()
