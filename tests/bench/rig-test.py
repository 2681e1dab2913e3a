# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rig starts, drops and counts packets as configured, and leaves nothing behind. Needs root."""

import pathlib
import re
import signal
import subprocess
import sys
import time

from proc import Proc
from rig import FIRST_PORT, NoRig, Rig
from tap import Skip, run, test

PROGRAM = pathlib.Path(__file__).with_name('rig.py')

# Binds the given ports on the readers' side, prints READY, and waits for a packet at the last port.
# Then prints the sizes of all packets that arrived at the other ports.
READER = '''
import socket, sys
readers = []
for port in map(int, sys.argv[1:]):
    readers.append((port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
    readers[-1][1].bind(('10.77.0.2', port))
print('READY', flush=True)
readers.pop()[1].recv(65536)
for port, reader in readers:
    reader.setblocking(False)
    try:
        while True:
            print(port, len(reader.recv(65536)))
    except BlockingIOError:
        pass
'''

# Sends a number of datagrams, each of a number of 1000-byte segments, to each port.
SENDER = '''
import socket, sys
datagrams, segments, *ports = map(int, sys.argv[1:])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_UDP, 103, 1000)
for port in ports:
    for n in range(datagrams):
        out.sendto(bytes(1000 * segments), ('10.77.0.2', port))
'''

# Holds a rig in which a process runs.
HOLDER = '''
import signal
from proc import Proc
from rig import Rig
rig = Rig()
child = Proc(*rig.server, 'sleep', '600')
print(child.pid, flush=True)
signal.pause()
'''


def rig(**options):
    try:
        return Rig(**options)
    except NoRig as why:
        raise Skip(str(why)) from None


def send(rig, datagrams, segments, *ports):
    subprocess.run([*rig.server, sys.executable, '-c', SENDER,
                    *map(str, (datagrams, segments, *ports))], check=True)


PROBE, BALLAST, END = FIRST_PORT, FIRST_PORT + 4, 60001


def sent(rig, segments):
    """Sends 5 datagrams to a probe and 7 to a port that is not a probe. Returns the packets
    received and the counters."""
    with Proc(*rig.readers, sys.executable, '-c', READER, PROBE, BALLAST, END) as reader:
        reader.wait_for_line('^READY')
        send(rig, 5, segments, PROBE)
        send(rig, 7, segments, BALLAST)
        send(rig, 1, 1, END)
        assert reader.wait() == 0, reader.output()
        return reader.lines[1:], rig.counters()


@test
def media_of_all_but_the_probes_is_dropped_and_counted():
    with rig() as net:
        net.drop_all_but(2)
        got, counters = sent(net, 1)
    assert got == [f'{PROBE} 1000'] * 5, got
    assert counters['media'] == (5, 5 * 1028), counters
    assert counters['dropped'] == (7, 7 * 1028), counters


@test
def segments_cross_as_one_packet_and_arrive_as_many():
    with rig() as net:
        net.drop_all_but(2)
        got, counters = sent(net, 4)
    assert got == [f'{PROBE} 1000'] * 20, got
    assert counters['media'] == (5, 5 * 4028), counters
    assert counters['dropped'] == (7, 7 * 4028), counters


@test
def without_segmentation_in_the_device_each_segment_is_a_packet():
    with rig(segmentation=False) as net:
        net.drop_all_but(2)
        got, counters = sent(net, 4)
    assert got == [f'{PROBE} 1000'] * 20, got
    assert counters['media'] == (20, 20 * 1028), counters
    assert counters['dropped'] == (28, 28 * 1028), counters


@test
def a_narrow_line_has_its_rate():
    with rig(rate='10mbit') as net:
        listing = subprocess.run([*net.server, 'tc', 'qdisc', 'show', 'dev', 'veth'],
                                 capture_output=True, text=True, check=True).stdout
    assert re.search(r'tbf .* rate 10Mbit', listing), listing


@test
def a_switch_loses_what_its_queue_does_not_hold():
    with rig() as net, net.switch(1, 10):
        send(net, 5, 20, PROBE)
        end = time.monotonic() + 20
        while (counts := net.counters())['arrived'][0] + counts['lost'][0] < 100:
            assert time.monotonic() < end, counts
            time.sleep(0.01)
    assert 10 <= counts['arrived'][0] < 50, counts  # one more each second
    assert counts['lost'][1] == counts['lost'][0] * 1028, counts


@test
def two_rigs_are_independent():
    with rig() as one, rig() as other:
        one.drop_all_but(2)
        other.drop_all_but(2)
        send(one, 3, 1, BALLAST)
        assert one.counters()['dropped'][0] == 3
        assert other.counters()['dropped'][0] == 0


def namespace_of(process):
    return (pathlib.Path('/proc') / str(process) / 'ns' / 'net').readlink()


def lives(namespace):
    """Returns whether any process is in the namespace."""
    for process in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if namespace_of(process.name) == namespace:
                return True
        except OSError:
            continue
    return False


def wait_until(true, what):
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, f'timeout while waiting until {what}'
        time.sleep(0.01)


@test
def the_rig_leaves_nothing_behind_however_it_ends():
    rig().close()
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
        with Proc(sys.executable, '-c', HOLDER) as holder:
            child = int(holder.wait_for_line(r'^(\d+)$')[1])
            wait_until(lambda: namespace_of(child) != namespace_of('self'), 'it is inside')
            namespace = namespace_of(child)
            holder.signal(number)
            assert holder.wait() != 0
        wait_until(lambda: not lives(namespace), f'after {number.name} all is gone')


@test
def a_command_runs_on_the_servers_side_and_can_enter_the_readers_side():
    rig().close()
    done = subprocess.run(
        [sys.executable, PROGRAM, '--', 'sh', '-c',
         'ip -brief address show veth; $WEIR_RIG_ENTER ip -brief address show veth; exit 7'],
        capture_output=True, text=True, check=False)
    assert done.returncode == 7, done
    assert re.findall(r'(10\.77\.0\.\d)/24', done.stdout) == ['10.77.0.1', '10.77.0.2'], done


if __name__ == '__main__':
    run()
