# SPDX-License-Identifier: LGPL-2.1-or-later
"""impair.py does to each packet what its script says, and nothing to the others."""

import pathlib
import socket
import subprocess
import sys

from impair import BadScript, Impairment
from proc import Proc
from tap import run, test

PROGRAM = pathlib.Path(__file__).with_name('impair.py')


def order(script, packets):
    """The numbers of the packets that go out, all coming at the same time."""
    impairment = Impairment(script)
    return [out for n in range(1, packets + 1) for out in impairment.take(n, 0)]


@test
def without_a_script_all_goes_through():
    assert order('', 5) == [1, 2, 3, 4, 5]


@test
def packets_are_dropped_one_by_one_and_in_ranges():
    assert order('drop 1; drop 3-5', 6) == [2, 6]


@test
def packets_are_repeated():
    assert order('dup 2-3', 4) == [1, 2, 2, 3, 3, 4]


@test
def a_held_packet_goes_right_after_the_other():
    assert order('hold 2 4', 5) == [1, 3, 4, 2, 5]
    assert order('hold 1 3; hold 2 3', 4) == [3, 1, 2, 4]


@test
def a_packet_held_for_a_dropped_one_still_goes():
    assert order('hold 1 2; drop 2', 3) == [1, 3]


@test
def delayed_packets_go_when_their_time_has_come():
    impairment = Impairment('delay 1-2 50ms; delay 3 0.01s')
    assert [impairment.take(n, now) for n, now in ((1, 0), (2, 0.001), (3, 0.002), (4, 0.003))] == [
        [], [], [], [4]]
    assert impairment.due(0.011) == []
    assert impairment.next_due() == 0.012
    assert impairment.due(0.012) == [3]
    assert impairment.due(0.049) == []
    assert impairment.due(1) == [1, 2]
    assert impairment.next_due() is None


@test
def what_is_not_understood_is_refused():
    for script in 'lose 1', 'drop', 'drop 1;dup x', 'delay 1', 'delay 1 5', 'hold 2 2', 'hold 3':
        try:
            Impairment(script)
        except BadScript:
            continue
        raise AssertionError(f'{script!r} was taken')
    done = subprocess.run(
        [sys.executable, PROGRAM, '--listen', '127.0.0.1:0', '--to', '127.0.0.1:9', '--script', 'x'],
        capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'not understood: "x"' in done.stderr, done


@test
def packets_pass_from_socket_to_socket():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        reader.bind(('127.0.0.1', 0))
        reader.settimeout(10)
        with Proc(sys.executable, PROGRAM, '--listen', '127.0.0.1:0',
                  '--to', f'127.0.0.1:{reader.getsockname()[1]}',
                  '--script', 'drop 2; dup 3; hold 4 5; delay 6 1ms') as relay:
            port = int(relay.wait_for_line(r'^READY (\d+)$')[1])
            for n in range(1, 7):
                sender.sendto(b'%d' % n, ('127.0.0.1', port))
            got = [int(reader.recv(100)) for _ in range(6)]
        assert got == [1, 3, 3, 5, 4, 6], got


if __name__ == '__main__':
    run()
