#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kernelrelay: what readers get, who relays, and that nothing stays.

The sender, the relay and the readers have a network namespace each, with veth pairs between them.
"""

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

from kernelnet import Steered
from kernelpath import (PATIENCE, SYS_BPF, Reader, bpf_exists, bpf_ids, inside, numbers, refuse_bpf,
                        without_tcx)
from netns import Namespace, NoRig
from tap import Skip, run, test

SENDER, RELAY, RELAY_OUT, READERS = '10.77.0.2', '10.77.0.1', '10.78.0.1', '10.78.0.2'
PORT = 5004
UDP_SEGMENT = 103
seed = int(os.environ.get('WEIR_SEED', time.time_ns() % 2**31))


def rtp(seq, size=200):
    head = struct.pack('>BBHII', 0x80, 96, seq % 65536, seq * 90, 7)
    return head + bytes((seq * 7 + i) & 0xff for i in range(12, size))


def number_of(packet):
    return int.from_bytes(packet[2:4], 'big')


class Net(Steered):
    def __init__(self):
        try:
            self.upstream, self.relay, self.readers = (Namespace() for _ in range(3))
            for side, device, (near, far) in ((self.upstream, 'in', (RELAY, SENDER)),
                                              (self.readers, 'out', (RELAY_OUT, READERS))):
                self.relay.run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', device,
                               'netns', side.path)
                for end, address in (self.relay, near), (side, far):
                    end.run('ip', 'link', 'set', 'lo', 'up')
                    end.run('ip', 'address', 'add', f'{address}/24', 'dev', device)
                    end.run('ip', 'link', 'set', device, 'up')
            self.readers.run('ip', 'route', 'add', 'default', 'via', RELAY_OUT)
        except NoRig as why:
            raise Skip(str(why))
        super().__init__(self.upstream, self.relay, self.readers)
        self.clients = []
        self.sender = self.open_sender()
        self.seq, self.sent = 65000, []

    def open_sender(self, port=0):
        sender = inside(self.upstream, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sender.bind((SENDER, port))
        return sender

    def start(self, kernel='ingress', address=RELAY, enter=(), before=None):
        self.process = subprocess.Popen(
            [*self.relay.words, *enter, os.environ['WEIR_KERNEL_SENDER']], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=before)
        return self.command(f'relay kernel={kernel} address={address} port={PORT}')

    def need(self, answer):
        """Skips the test if BPF is not there."""
        if 'too old' in answer or ('CAP_BPF' in answer and os.geteuid() != 0):
            raise Skip(answer)
        assert answer == 'ok', answer

    def tell(self):
        self.command(f'set clients={",".join(self.clients)}')

    def add(self, n=1):
        for _ in range(n):
            reader = Reader(self.readers, READERS, 20000 + 2 * len(self.all))
            reader.first = len(self.sent)
            self.all.append(reader)
            self.clients.append(f'{reader.address}:{reader.port}')
        self.tell()
        return self.all[-n:]

    def stats(self):
        return numbers(self.command('stats'))

    def wait(self, **want):
        end = time.monotonic() + PATIENCE
        while True:
            stats = self.stats()
            if all(stats[key.replace('_', '-')] == value for key, value in want.items()):
                return stats
            assert time.monotonic() < end, (want, stats)
            time.sleep(0.01)

    def send(self, *sizes, segments=False):
        packets = [rtp(self.seq + i, size) for i, size in enumerate(sizes)]
        if segments:
            self.sender.sendmsg([b''.join(packets)], [(
                socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack('=H', sizes[0]))], 0, (RELAY, PORT))
        else:
            for packet in packets:
                self.sender.sendto(packet, (RELAY, PORT))
        self.seq += len(packets)
        self.sent += packets

    def push(self, *sizes, segments=False):
        """Sends packets, and waits until every reader has got them."""
        self.send(*sizes, segments=segments)
        for reader in self.all:
            reader.await_packets(len(self.sent) - reader.first)

    def enter(self, size=200):
        """Sends packets of this size until the program has relayed one."""
        end = time.monotonic() + PATIENCE
        before = self.stats()['kernel-packets']
        while True:
            self.push(size)
            stats = self.stats()
            if stats['kernel-packets'] > before:
                return stats
            assert time.monotonic() < end, stats
            time.sleep(0.01)

    def check(self):
        """Every reader has got exactly what was sent, in order, and the sums are exact."""
        for reader in self.all:
            want = self.sent[reader.first:]
            assert reader.read() == want, (len(reader.got), len(want))
            assert reader.sources == {(RELAY, PORT)} or not want, reader.sources
        # A packet is counted after it was sent.
        n = sum(len(reader.got) for reader in self.all)
        stats = self.wait(packets=len(self.sent), packets_due=n, packets_sent=n)
        return stats


def by_thread(stats):
    return stats['packets'] - stats['kernel-packets']


def exact(n_readers, kernel='ingress', device=(), names=('in', 'out')):
    """Sends packets of all sizes, singly and in segmented messages."""
    rng = random.Random(seed)
    with Net() as net:
        for side, name in (net.upstream, 'in'), (net.relay, 'in'), (net.relay, 'out'), \
                (net.readers, 'out'):
            if device and name in names:
                side.run('ethtool', '-K', name, *device)
        net.need(net.start(kernel))
        net.add(n_readers)
        if kernel == 'ingress':
            net.enter()
        before = stats = net.stats()
        slept = 0
        for _ in range(60):
            if rng.random() < 0.3:
                size = rng.choice([100, 1000, 1400])
                net.push(*[size] * rng.randrange(1, 8), rng.randrange(12, size), segments=True)
            else:
                net.push(*(rng.randrange(12, 1400) for _ in range(rng.randrange(1, 5))))
            last, stats = stats, net.stats()
            slept += by_thread(stats) == by_thread(last)
        stats = net.check()
        if kernel == 'ingress':
            # The thread sends a packet every 10 seconds, and while the network changes.
            assert slept > 30, (slept, before, stats)
        else:
            assert stats['kernel-packets'] == 0, stats
        snmp = net.readers.run('awk', '/^Udp: [0-9]/ { print $4, $8 }', '/proc/net/snmp').split()
        assert snmp == ['0', '0'], f'UDP errors, checksum errors: {snmp}'


@test
def one_reader_gets_every_packet():
    """1 reader gets every packet unchanged, and no packet wakes the process"""
    exact(1)


@test
def fifty_readers_get_every_packet():
    """50 readers get every packet unchanged"""
    exact(50)


@test
def the_thread_relays_alike():
    """with kernel=off, the thread relays the same"""
    exact(50, 'off')


@test
def without_checksum_offload():
    """devices without checksum offload"""
    exact(10, device=('tx', 'off', 'rx', 'off'))


@test
def checksums_of_merged_packets():
    """merged packets whose checksums are completed behind the program"""
    exact(10, device=('tx', 'off', 'rx', 'off'), names=('out',))


@test
def without_segmentation():
    """devices that do not segment"""
    exact(10, device=('tx-udp-segmentation', 'off', 'gso', 'off'))


@contextlib.contextmanager
def one_processor():
    """Only one processor works, so the network changes no order."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, processors)


def join_and_leave(in_order):
    """Readers join and leave, and the program is switched on and off, while packets flow. Where
    several processors work, the program and the thread run at the same time."""
    rng = random.Random(seed)
    print(f'# seed {seed}')
    with Net() as net:
        net.need(net.start())
        net.add(4)
        net.enter()
        stop = threading.Event()

        def send():
            while not stop.wait(0.001):
                net.send(200)

        thread = threading.Thread(target=send)
        thread.start()
        for step in range(120):
            kernel = 'off' if step % 3 == 1 else 'ingress'
            if step % 3 == 0:
                net.clients.remove(rng.choice(net.clients))
                net.add(1)
            else:
                net.command(f'set kernel={kernel}')
            if step % 30 in (1, 2):
                net.wait(kernel=kernel)
            time.sleep(rng.random() * 0.01)
        stop.set()
        thread.join()
        net.wait(packets=len(net.sent))
        end = time.monotonic() + PATIENCE
        while True:
            got, stats = sum(len(reader.read()) for reader in net.all), net.stats()
            dropped = stats['dropped-no-buffers'] + stats['dropped-error'] + stats['dropped-backlog']
            if stats['packets-sent'] == got == stats['packets-due'] - dropped:
                break
            assert time.monotonic() < end, (got, stats)
            time.sleep(0.01)
        missing = 0
        for reader in net.all:
            own = [number_of(packet) for packet in reader.got]
            steps = [(b - a) % 65536 for a, b in zip(own, own[1:])]
            if in_order:
                assert max(steps, default=1) < 1000, 'a packet was overtaken'
            else:
                own.sort(key=lambda number: (number - 65000) % 65536)
                steps = [(b - a) % 65536 for a, b in zip(own, own[1:])]
            assert min(steps, default=1) > 0, 'a packet came twice'
            missing += sum(steps) - len(steps)
        # A queue may be full on a busy machine. A drop at the end of a reader's stream is no gap.
        assert missing <= dropped, (missing, stats)
        assert 0 < stats['kernel-packets'] < stats['packets'], stats


@test
def nothing_is_overtaken():
    """readers join and leave, and the program is switched, while packets flow, in order"""
    with one_processor():
        join_and_leave(in_order=True)


@test
def a_backlog_is_sent_first():
    """the program begins only after the thread has sent what waits in its socket"""
    with one_processor(), Net() as net:
        net.need(net.start())
        net.add(8)
        net.enter()
        net.command('set kernel=off')
        before = net.wait(kernel='off')
        net.process.send_signal(signal.SIGSTOP)
        for _ in range(450):
            net.send(200)
        net.process.stdin.write('set kernel=ingress\n')
        net.process.stdin.flush()
        net.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + PATIENCE
        net.process.stdout.readline()
        while net.stats()['kernel-packets'] == before['kernel-packets']:
            assert time.monotonic() < end, net.stats()
            net.send(200)
            time.sleep(0.001)  # with one processor, the thread would drop what it has no time for
        net.push(200)
        net.check()


def flood(net, stop):
    """Sends packets until `stop`, as fast as it can."""
    while not stop.is_set():
        net.send(*[60] * 40, segments=True)


@test
def a_thread_that_does_not_keep_up_hands_over():
    """a thread that does not keep up drops its backlog, which is counted, and the program takes over"""
    with one_processor(), Net() as net:
        net.need(net.start('off'))
        net.add(3)
        net.clients += [f'{READERS}:{30000 + i}' for i in range(600)]
        net.tell()
        stop = threading.Event()
        sender = threading.Thread(target=flood, args=(net, stop))
        sender.start()
        try:
            net.wait(kernel='off', readers=603)
            net.command('set kernel=ingress')
            stats = net.wait(kernel='ingress')
            assert stats['dropped-backlog'] > 0, stats
            # A reader comes, and it hands over again.
            net.add(1)
            net.wait(readers=604)
            end = time.monotonic() + PATIENCE
            while net.stats()['kernel-packets'] <= stats['kernel-packets'] + 400:
                assert time.monotonic() < end, (stats, net.stats())
                time.sleep(0.01)
        finally:
            stop.set()
            sender.join()
        end = time.monotonic() + PATIENCE
        while True:
            stats = net.stats()
            if stats['packets-due'] == stats['packets-sent'] + sum(
                    stats[f'dropped-{why}'] for why in ('no-buffers', 'error', 'backlog')):
                break
            assert time.monotonic() < end, stats
            time.sleep(0.01)
        print(f'# {stats}')
        for reader in net.all:
            # By the timestamps: more packets than there are sequence numbers may be dropped in a row.
            own = [int.from_bytes(packet[4:8], 'big') for packet in reader.read()]
            assert own and all(a < b for a, b in zip(own, own[1:])), 'overtaken'
        # When it keeps up, it drops nothing.
        net.sent.clear()
        for reader in net.all:
            reader.got.clear()
            reader.first = 0
        net.enter()
        net.push(200, 200)
        assert net.stats()['dropped-backlog'] == stats['dropped-backlog']


@test
def nothing_is_lost_or_sent_twice():
    """the same on all processors: nothing is lost or sent twice"""
    join_and_leave(in_order=False)


@test
def rtcp_goes_both_ways():
    """RTCP of the sender goes to all readers, and theirs to the sender, while the program relays"""
    report = bytes([0x80, 200]) + bytes(26)
    answer = bytes([0x80, 201]) + bytes(6)
    with Net() as net:
        net.need(net.start())
        readers = net.add(3)
        controls = [Reader(net.readers, READERS, reader.port + 1) for reader in readers]
        net.enter()
        sender = Reader(net.upstream, SENDER, 6001)
        sender.socket.sendto(report, (RELAY, PORT + 1))
        for control in controls:
            control.await_packets(1)
            assert control.got == [report] and control.sources == {(RELAY, PORT + 1)}
        for control in controls:
            control.socket.sendto(answer, (RELAY, PORT + 1))
        sender.await_packets(3)
        assert sender.got == [answer] * 3
        # On the port of RTP (RFC 5761).
        net.sender.sendto(report, (RELAY, PORT))
        for reader in readers:
            reader.await_packets(len(net.sent) + 1)
            assert reader.got.pop() == report
        stats = net.check()
        assert stats['rtcp'] == 5, stats
        for one in controls + [sender]:
            one.socket.close()


@test
def other_packets_go_up():
    """fragments, IP options and other bytes than RTP do not get to the program"""
    with Net() as net:
        net.need(net.start())
        net.add(2)
        before = net.enter()
        net.push(3000)  # fragments
        net.sender.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1, 1, 1, 0]))
        net.push(200)
        net.sender.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b'')
        for bad in b'', b'\x80', rtp(1)[:11], bytes(200):
            net.sender.sendto(bad, (RELAY, PORT))
        stats = net.wait(dropped_malformed=4)
        assert stats['kernel-packets'] == before['kernel-packets'], stats
        net.enter()
        net.check()


@test
def packets_larger_than_the_device_takes_go_up():
    """a packet that does not fit the readers' device is relayed by the thread"""
    with Net() as net:
        for side in net.relay, net.readers:
            side.run('ip', 'link', 'set', 'out', 'mtu', 1000)
        net.need(net.start())
        net.add(2)
        before = net.enter(972)
        net.push(973)
        stats = net.check()
        assert stats['kernel-packets'] == before['kernel-packets'], (before, stats)


@test
def another_sender_takes_over():
    """another sender is refused, and takes over after a second of silence"""
    with Net() as net:
        net.need(net.start('off'))
        net.add(2)
        net.push(200)
        other = net.open_sender()
        # The thread gets both at once, however slow this process is.
        net.process.send_signal(signal.SIGSTOP)
        net.send(200)
        other.sendto(rtp(0), (RELAY, PORT))
        net.process.send_signal(signal.SIGCONT)
        net.wait(dropped_foreign=1, packets=2)
        net.command('set kernel=ingress')
        net.enter()
        net.sender = other
        time.sleep(1.1)  # the silence
        net.enter()
        net.push(200, 200)
        net.check()


@test
def every_reader_has_to_be_reachable():
    """a reader who cannot get clones stops the program for all, and the reason is named"""
    with Net() as net:
        net.need(net.start())
        net.add(2)
        net.enter()
        for other, reason in ('127.0.0.1:9', 'route'), ('10.78.0.99:9', 'neighbour'):
            net.clients.append(other)
            net.tell()
            net.wait(kernel=reason)
            before = net.stats()['kernel-packets']
            net.push(200, 200)
            assert net.stats()['kernel-packets'] == before
            net.clients.pop()
            net.tell()
            net.enter()
        for reader in net.all:
            assert reader.read() == net.sent, (len(reader.got), len(net.sent))


@test
def a_neighbour_gets_another_hardware_address():
    """a neighbour with another hardware address"""
    with Net() as net:
        net.need(net.start())
        reader = net.add()[0]
        net.enter()
        net.readers.run('ip', 'link', 'set', 'out', 'address', '02:00:00:00:78:02')
        net.relay.run('ip', 'neighbour', 'replace', READERS, 'lladdr', '02:00:00:00:78:02', 'dev',
                      'out', 'nud', 'stale')
        # Packets go to the old address until the change is known.
        end = time.monotonic() + PATIENCE
        net.send(200)
        while reader.read()[-1] != net.sent[-1]:
            assert time.monotonic() < end
            net.send(200)
            time.sleep(0.01)
        reader.got.clear()
        reader.first = len(net.sent)
        net.enter()
        net.push(200, 1000)
        assert reader.got == net.sent[reader.first:]


@test
def nothing_is_left_after_a_kill():
    """nothing stays at the device after a SIGKILL"""
    if not SYS_BPF:
        raise Skip('the number of the system call bpf is not known here')
    with Net() as net:
        net.need(net.start())
        net.add(5)
        net.enter()
        ids = bpf_ids(net.process)
        assert {kind for kind, _ in ids} == {'prog', 'link', 'map'}, ids
        assert all(bpf_exists(*one) for one in ids), ids
        net.process.send_signal(signal.SIGKILL)
        net.process.wait()
        end = time.monotonic() + PATIENCE
        while any(bpf_exists(*one) for one in ids):
            assert time.monotonic() < end, ids
            time.sleep(0.05)
        net.sender.sendto(rtp(net.seq), (RELAY, PORT))
        net.all[0].socket.settimeout(0.3)
        try:
            assert not net.all[0].socket.recv(2000)
        except TimeoutError:
            pass


@test
def reasons_are_named():
    """without permission, a device or a new kernel, kernel=ingress does not start and says why"""
    drop = ('setpriv', '--bounding-set=-all', '--inh-caps=-all')
    with Net() as net:
        for want, settings in (('CAP_BPF and CAP_NET_ADMIN', {'enter': drop}),
                               ('lo, which has the address 127.0.0.1, has no Ethernet',
                                {'address': '127.0.0.1'}),
                               ('no network device has the address', {'address': '0.0.0.0'}),
                               ("address: 'nonsense' is no", {'address': 'nonsense'}),
                               ("address: '239.1.2.3' is no", {'address': '239.1.2.3'}),
                               ('cannot receive on UDP port 5004', {'address': '192.0.2.1'}),
                               ('Linux 6.6', {'before': without_tcx}),
                               ('too old', {'before': lambda: refuse_bpf(5)})):
            if 'before' in settings and not SYS_BPF:
                continue
            answer = net.start(**settings)
            net.process.kill()
            net.process.wait()
            assert want in answer, (want, answer)


@test
def two_capabilities_are_enough():
    """CAP_BPF and CAP_NET_ADMIN are enough"""
    with Net() as net:
        net.need(net.start(enter=(
            'setpriv', '--bounding-set=-all,+bpf,+net_admin', '--inh-caps=-all')))
        net.add(5)
        net.enter()
        net.push(200, 200)
        net.check()


if __name__ == '__main__':
    run()
