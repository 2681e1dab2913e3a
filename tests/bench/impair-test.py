# SPDX-License-Identifier: LGPL-2.1-or-later
"""impair.py applies its script to the named packets and leaves the others alone."""

import pathlib
import socket
import subprocess
import sys

from impair import BadScript, Impairment
from proc import Proc
from tap import run, test

PROGRAM = pathlib.Path(__file__).with_name('impair.py')


def order(script, packets):
    """Returns the numbers of the packets in sending order, if all arrive at the same time."""
    impairment = Impairment(script)
    return [out for n in range(1, packets + 1) for out in impairment.take(n, 0)]


@test
def without_a_script_every_packet_passes():
    assert order('', 5) == [1, 2, 3, 4, 5]


@test
def packets_are_dropped_one_by_one_and_in_ranges():
    assert order('drop 1; drop 3-5', 6) == [2, 6]


@test
def packets_are_repeated():
    assert order('dup 2-3', 4) == [1, 2, 2, 3, 3, 4]


@test
def a_held_packet_is_sent_right_after_the_named_one():
    assert order('hold 2 4', 5) == [1, 3, 4, 2, 5]
    assert order('hold 1 3; hold 2 3', 4) == [3, 1, 2, 4]


@test
def a_packet_held_behind_a_dropped_one_is_still_sent():
    assert order('hold 1 2; drop 2', 3) == [1, 3]


@test
def delayed_packets_are_sent_after_their_delay():
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
def an_invalid_script_is_refused():
    for script in 'lose 1', 'drop', 'drop 1;dup x', 'delay 1', 'delay 1 5', 'hold 2 2', 'hold 3':
        try:
            Impairment(script)
        except BadScript:
            continue
        raise AssertionError(f'{script!r} was accepted')
    done = subprocess.run(
        [sys.executable, PROGRAM, '--listen', '127.0.0.1:0', '--to', '127.0.0.1:9', '--script', 'x'],
        capture_output=True, text=True, check=False)
    assert done.returncode == 2 and '"x" is not a fault' in done.stderr, done


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
