# SPDX-License-Identifier: LGPL-2.1-or-later
"""What stored titles send on multicast groups: the packets that clients get by unicast, each at its
time, and the same for one client as for many. The multicast stays in a network of this process."""

import collections
import ctypes
import os
import re
import selectors
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from functools import lru_cache

from arrivals import receive, stamp
from control import Controlled
from films import ffmpeg
from proc import Rtsp
from proxy import wait_until
from tap import Skip, run, test

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33
MCAST_JOIN_SOURCE_GROUP = 46
FIRST_GROUP = '239.8.1.'
PORT = 16004
SECONDS = 12
RATE = '30000/1001'
FRAME_NS = 33366667


def enter_namespace():
    """Gives this process a network of its own. Returns whether it has one."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    return True


HAS_NETWORK = enter_namespace()


@lru_cache
def folder():
    """Returns a folder with a title whose pictures are shown in another order than they are sent,
    and with a text."""
    directory = tempfile.TemporaryDirectory()
    ffmpeg('-f', 'lavfi', '-i', f'testsrc=size=320x180:rate={RATE}', '-f', 'lavfi', '-i',
           'sine=frequency=440:sample_rate=48000', '-t', str(SECONDS), '-c:v', 'libx264', '-preset',
           'ultrafast', '-bf', '2', '-pix_fmt', 'yuv420p', '-c:a', 'aac',
           os.path.join(directory.name, 'a.mp4'))
    with open(os.path.join(directory.name, 'a.txt'), 'w', encoding='utf-8') as file:
        file.write('no media')
    with open(os.path.join(directory.name, 'huge.mp4'), 'wb') as file:
        os.truncate(file.fileno(), 1 << 43)  # more than any disk has; it takes no room
    return directory


def mounts(**broadcast):
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    keys = {'scheme': 'gdb', 'first': '1s', 'groups': f'{FIRST_GROUP}0/28', 'port': PORT,
            'iface': 'lo', 'ttl': 0, **broadcast}
    return {'/films': {'upstream': f'file://{folder().name}/', 'broadcast': keys}}


def ask(proxy, name='a.mp4'):
    """Asks for the schedule of a title until it is packetized. Returns (status, headers, body)."""
    deadline = time.monotonic() + 30
    while True:
        with Rtsp(proxy.port) as rtsp:
            answer = rtsp.request('DESCRIBE', proxy.url(f'/films/{name}'),
                                  {'Supported': 'x-weir-schedule'})
        if answer[0] != 503:
            return answer
        assert 1 <= int(answer[1]['retry-after']) <= 60, answer
        assert time.monotonic() < deadline, 'the title is not packetized'
        time.sleep(0.05)  # much less than the answer's Retry-After


def described(proxy):
    status, headers, body = ask(proxy)
    assert status == 200, (status, body)
    return headers, body.decode()


def number_range(text):
    return range(0) if text == '-' else range(int(text.split('-')[0]), int(text.split('-')[1]) + 1)


def sends(sdp):
    """Returns, for each channel, the ranges of packets that are sent on it, one for each track."""
    found = re.findall(r'^a=x-weir-send:(\d+) .*packets=(\S+)', sdp, re.M)
    return {int(channel): [number_range(part) for part in parts.split(',')]
            for channel, parts in found}


def fetch(proxy, sdp):
    """Returns all packets of the title by (track, number), by unicast."""
    packets = {}
    counts = [int(n) for n in re.findall(r'^a=x-weir-packets:(\d+)', sdp, re.M)]
    with Rtsp(proxy.port) as rtsp:
        for track, count in enumerate(counts):
            at = 0
            while at < count:
                answer = rtsp.request('GET_PARAMETER', proxy.url('/films/a.mp4'),
                                      {'Content-Type': 'application/x-weir-ranges'},
                                      f'{track} {at}-{count - 1}\n'.encode())
                assert answer[0] == 200, answer
                for number, of, packet in records(answer[2]):
                    assert of == track and number == at, (of, number, at)
                    packets[track, number] = packet
                    at += 1
    return packets


def records(body):
    at = 0
    while at < len(body):
        number, track, size = struct.unpack_from('>IHH', body, at)
        yield number, track, body[at + 8:at + 8 + size]
        at += 8 + size


def native_address(text):
    """Returns a struct sockaddr_storage."""
    return struct.pack('=HH4s', socket.AF_INET, 0, socket.inet_aton(text)).ljust(128, b'\0')


class Groups:
    """Sockets that have joined groups by their source. `got` has (arrival in ns, packet) of each channel and
    track."""

    def __init__(self, channels, tracks=2):
        self.selector = selectors.DefaultSelector()
        self.got = collections.defaultdict(list)
        for channel in channels:
            for track in range(tracks):
                self._join(channel, track)

    def _join(self, channel, track):
        group = f'{FIRST_GROUP}{channel}'
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        receiver.bind((group, PORT + 2 * track))
        # As the description says: a=source-filter: incl IN IP4 GROUP 127.0.0.1
        receiver.setsockopt(socket.IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP,
                            struct.pack('@I4x', socket.if_nametoindex('lo'))
                            + native_address(group) + native_address('127.0.0.1'))
        stamp(receiver)
        self.selector.register(receiver, selectors.EVENT_READ, (channel, track))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def receive(self, done, limit=40):
        """Receives until `done`."""
        deadline = time.monotonic() + limit
        while not done(self.got):
            assert time.monotonic() < deadline, {key: len(got) for key, got in self.got.items()}
            for key, _ in self.selector.select(0.2):
                data, at = receive(key.fileobj)
                self.got[key.data].append((at, data))


def seq_of(packet):
    return struct.unpack_from('>H', packet, 2)[0]


def check_cycle(got, numbers, packets, track):
    """Checks that the packets of a channel are those of the title, in order, again and again."""
    for before, (_, packet) in zip([None, *got], got):
        number = seq_of(packet)
        assert number in numbers and packets[track, number] == packet, (track, number, numbers)
        if before:
            last = seq_of(before[1])
            follows = numbers[0] if last == numbers[-1] else last + 1
            assert number == follows, (track, last, number)


def frame_gaps(got):
    """Returns the times between the first packets of pictures, in frames."""
    starts = [(at, seq_of(packet)) for (_, before), (at, packet) in zip(got, got[1:])
              if before[1] & 0x80 and at]
    return [(b[0] - a[0]) / FRAME_NS for a, b in zip(starts, starts[1:]) if b[1] > a[1]]


def is_even(got):
    """Reports whether the last 60 pictures came at the rate of the title. A busy machine delays
    pictures, but not all the time."""
    gaps = frame_gaps(got[-120:])[-60:]
    return len(gaps) == 60 and abs(statistics.median(gaps) - 1) < 0.03


def check_evenness(proxy, got):
    gaps = frame_gaps(got)
    variation = statistics.stdev(gaps) / statistics.mean(gaps)
    figures = broadcast_figures(proxy)
    print(f'# frame inter-arrival: {len(gaps)} frames, coefficient of variation {variation:.4f}; '
          f'{figures["late-frames"]} of {figures["frames"]} frames late')
    assert figures['missed-frames'] == 0, figures


def broadcast_figures(proxy):
    return next(mount['broadcast'] for mount in proxy.http('GET', '/v1/mounts')[2]['mounts']
                if mount['path'] == '/films')


@test
def groups_send_the_packets_that_are_given_by_unicast():
    with Controlled(mounts()) as proxy:
        _, sdp = described(proxy)
        of = sends(sdp)
        assert len(of) == 4 and f'frame={FRAME_NS}' in sdp, sdp  # 1, 2, 4 and 5 s
        for channel in of:
            assert f'source-filter: incl IN IP4 {FIRST_GROUP}{channel} 127.0.0.1\r\n' in sdp, sdp
        packets = fetch(proxy, sdp)
        covered = collections.Counter((track, number) for ranges in of.values()
                                      for track, numbers in enumerate(ranges)
                                      for number in numbers)
        assert covered == collections.Counter(packets.keys()), 'segments overlap or have gaps'
        with Groups(of) as groups:
            # All of the last segment, and the first segment several times.
            groups.receive(lambda got: all(len(got[channel, track]) > len(numbers)
                                           for channel, ranges in of.items()
                                           for track, numbers in enumerate(ranges)))
            groups.receive(lambda got: is_even(got[0, 0]))
            for (channel, track), got in groups.got.items():
                check_cycle(got, of[channel][track], packets, track)
            check_evenness(proxy, groups.got[0, 0])


@test
def many_clients_cost_what_one_costs():
    with Controlled(mounts()) as proxy:
        headers, sdp = described(proxy)
        with Groups(sends(sdp), tracks=1) as groups:
            groups.receive(lambda got: len(got) == 4)
            before = broadcast_figures(proxy)
            for _ in range(100):
                assert described(proxy)[0]['etag'] == headers['etag']
            after = broadcast_figures(proxy)
            groups.receive(lambda got: is_even(got[0, 0]))  # nothing is sent twice
        assert after['admitted'] - before['admitted'] == 100, (before, after)
        assert after['channels'] == before['channels'] == 4, (before, after)
        assert after['rate'] == before['rate'] > 0, (before, after)


@test
def the_packets_are_the_same_after_a_restart():
    ids = []
    for _ in range(2):
        with Controlled(mounts()) as proxy:
            ids.append(described(proxy)[0]['etag'])
    assert ids[0] == ids[1], ids


@test
def a_client_beyond_a_limit_learns_the_reason():
    for keys, reason, figure in (
            ({'groups': f'{FIRST_GROUP}0/31'}, rb'needs 4 groups.* 2 of the pool', 'refused-groups'),
            ({'rate': '200k'}, rb'limit of 0\.2 Mb/s', 'refused-rate')):
        with Controlled(mounts(**keys)) as proxy:
            status, _, body = ask(proxy)
            assert status == 453 and re.search(reason, body), (keys, status, body)
            figures = broadcast_figures(proxy)
            assert figures['channels'] == figures['admitted'] == 0 and figures[figure] == 1, figures


@test
def a_title_that_cannot_be_broadcast_is_played_by_unicast():
    with Controlled(mounts(first='20s')) as proxy:
        status, headers, body = ask(proxy)  # the title is shorter
        assert status == 200 and 'supported' not in headers and b'x-weir' not in body, headers
        figures = broadcast_figures(proxy)
        assert figures['refused-other'] >= 1 and figures['admitted'] == 0, figures
        for name in 'none.mp4', 'a.txt':
            assert ask(proxy, name)[0] in (404, 415), (name, ask(proxy, name))
        ask(proxy, 'huge.mp4')
        proxy.wait_for_line('/films/huge.mp4: cannot be broadcast: .* more than half of the ')


def put_title(directory, pattern):
    """Puts another title in the place of b.mp4, at once."""
    made = os.path.join(directory, '.b.mp4')
    ffmpeg('-y', '-f', 'lavfi', '-i', f'{pattern}=size=160x90:rate=25:duration=8', '-c:v', 'libx264',
           '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-f', 'mp4', made)
    os.rename(made, os.path.join(directory, 'b.mp4'))


def wait_until_described(proxy, done):
    """Describes b.mp4 until `done(status, headers)`. The proxy looks at the disk once a second."""
    deadline = time.monotonic() + 40
    while True:
        status, headers, body = ask(proxy, 'b.mp4')
        if done(status, headers):
            return headers, body.decode()
        assert time.monotonic() < deadline, (status, headers)
        time.sleep(0.05)


@test
def a_title_that_is_replaced_or_removed_on_the_disk_is_noticed():
    with tempfile.TemporaryDirectory() as directory:
        settings = mounts()
        settings['/films']['upstream'] = f'file://{directory}/'
        put_title(directory, 'testsrc')
        with Controlled(settings) as proxy:
            before, sdp = wait_until_described(proxy, lambda status, _: status == 200)
            of = sends(sdp)
            with Rtsp(proxy.port) as rtsp:
                def first_packets():
                    return rtsp.request('GET_PARAMETER', proxy.url('/films/b.mp4'),
                                        {'Content-Type': 'application/x-weir-ranges'}, b'0 0-9\n')

                old = first_packets()
                assert old[0] == 200 and old[1]['etag'] == before['etag'], old
                put_title(directory, 'smptebars')
                after, other = wait_until_described(
                    proxy, lambda status, headers: headers.get('etag') not in (None, before['etag']))
                proxy.wait_for_line(r'/films/b\.mp4: the title has changed; it is packetized anew')
                # Whoever plays the old one learns of it, and gets from groups what was promised.
                new = first_packets()
                assert new[0] == 200 and new[1]['etag'] == after['etag'] and new[2] != old[2], new
            groups = [set(re.findall(r'x-weir-channel:\d+ group=(\S+)', text)) for text in (sdp, other)]
            assert groups[0] and groups[1] and not groups[0] & groups[1], groups
            with Groups(of, tracks=1) as old_groups:
                old_groups.receive(lambda got: len(got) == len(of))
            os.unlink(os.path.join(directory, 'b.mp4'))
            wait_until_described(proxy, lambda status, _: status == 404)


def workers_of(proxy, number):
    """Waits until the proxy has this number of worker processes, and returns them."""
    found = []

    def look():
        done = subprocess.run(['ps', '--ppid', str(proxy.pid), '-o', 'pid=', '-o', 'stat='],
                              capture_output=True, text=True, check=False)
        found[:] = [int(line.split()[0]) for line in done.stdout.splitlines() if 'Z' not in line]
        return len(found) == number

    wait_until(look, 40, f'{number} worker processes')
    return found


@test
def a_title_whose_worker_process_ends_is_packetized_again():
    with Controlled(mounts()) as proxy:
        worker = workers_of(proxy, 1)[0]
        os.kill(worker, signal.SIGSTOP)
        url = proxy.url('/films/a.mp4')
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', url, {'Supported': 'x-weir-schedule'})[0] == 503
            assert rtsp.request('GET_PARAMETER', url, {
                'Content-Type': 'application/x-weir-ranges'}, b'0 0-1')[0] == 404
        workers_of(proxy, 2)  # the first one has the title, so that another one is kept ready
        os.kill(worker, signal.SIGKILL)
        assert ask(proxy)[0] == 500
        proxy.wait_for_line(r'/films/a\.mp4: cannot be broadcast: ')
        deadline = time.monotonic() + 30
        while ask(proxy)[0] != 200:  # the failure is told for 5 s
            assert time.monotonic() < deadline
            time.sleep(0.2)
        described(proxy)


if __name__ == '__main__':
    run()
