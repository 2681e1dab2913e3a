#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel path of fanoutsink: what readers get, and how it is entered and left.

The sender and the readers have a network namespace each, with a veth pair between them.
"""

import os
import random
import re
import signal
import subprocess
import time

from kernelpath import (PATIENCE, SYS_BPF, Reader, bpf_exists, bpf_ids, numbers, refuse_bpf,
                        without_tcx)
from netns import Namespace, NoRig
from tap import Skip, run, test

SENDER, READERS = '10.78.0.1', '10.78.0.2'
seed = int(os.environ.get('WEIR_SEED', time.time_ns() % 2**31))


def packet(seq, timestamp, size, marker):
    """The packet that kernel-sender.c makes."""
    head = bytes([0x80, 96 | (0x80 if marker else 0)]) + seq.to_bytes(2, 'big')
    head += timestamp.to_bytes(4, 'big') + bytes([0x12, 0x34, 0x56, 0x78])
    return head + bytes((seq * 7 + i) & 0xff for i in range(12, size))


class Net:
    """A sender and the hosts of its readers, which have addresses of their own on one device."""

    def __init__(self, n_hosts=1):
        try:
            self.sender, self.readers = Namespace(), Namespace()
            self.sender.run('ip', 'link', 'add', 'veth', 'type', 'veth', 'peer', 'name', 'veth',
                            'netns', self.readers.path)
            for side, address in (self.sender, SENDER), (self.readers, READERS):
                side.run('ip', 'link', 'set', 'lo', 'up')
                side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'veth')
                side.run('ip', 'link', 'set', 'veth', 'up')
            for i in range(1, n_hosts):
                self.readers.run('ip', 'address', 'add', f'10.78.0.{2 + i}/24', 'dev', 'veth')
        except NoRig as why:
            raise Skip(str(why))
        self.process, self.all = None, []
        self.thinned = False  # a reader lagged so far that it got less
        self.seq, self.timestamp, self.sent = 65000, 90000, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        for reader in self.all:
            reader.socket.close()
        self.sender.close()
        self.readers.close()

    def command(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def start(self, kernel='on', enter=(), before=None, **properties):
        words = [f'{key.replace("_", "-")}={value}' for key, value in properties.items()]
        self.process = subprocess.Popen(
            [*self.sender.words, *enter, os.environ['WEIR_KERNEL_SENDER']], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=before)
        return self.command(' '.join(['start', f'kernel={kernel}', 'max-coalesce=0', *words]))

    def need(self, answer):
        """Skips the test if the kernel path is not there."""
        if 'no kernel path' in answer or 'too old' in answer or \
                ('CAP_BPF' in answer and os.geteuid() != 0):
            raise Skip(answer)
        assert answer == 'ok', answer

    def add(self, n=1, first_host=0, n_hosts=1):
        added = []
        for i in range(n):
            reader = Reader(self.readers, f'10.78.0.{2 + first_host + i % n_hosts}',
                            20000 + 2 * len(self.all))
            reader.first = len(self.sent)
            self.all.append(reader)
            added.append(reader)
            self.command(f'add {reader.address} {reader.port}')
        return added

    def remove(self, reader):
        self.settle()
        self.command(f'remove {reader.address} {reader.port}')
        reader.read()
        reader.last = len(self.sent)

    def push(self, *sizes):
        for i, size in enumerate(sizes):
            self.sent.append(packet((self.seq + i) & 0xffff, self.timestamp, size,
                                    i + 1 == len(sizes)))
        answer = self.command(f'frame {self.seq} {self.timestamp} {" ".join(map(str, sizes))}')
        assert answer == 'ok', answer
        self.seq = (self.seq + len(sizes)) & 0xffff
        self.timestamp += 3600

    def stats(self):
        return numbers(self.command('stats'))

    def stats_of(self, reader):
        return numbers(self.command(f'reader {reader.address} {reader.port}'))

    def settle(self):
        """Waits until every packet is sent or dropped, and returns the statistics."""
        end = time.monotonic() + PATIENCE
        while True:
            stats = self.stats()
            readers = [self.stats_of(r) for r in self.all if not hasattr(r, 'last')]
            self.thinned |= any(reader['state'] != 'ok' for reader in readers)
            if sum(reader['lag-packets'] for reader in readers) == 0:
                stats = self.stats()
                assert stats['packets-due'] == stats['packets-sent'] + stats['dropped'], stats
                return stats
            assert time.monotonic() < end, stats
            time.sleep(0.01)

    def wait_for_clones(self, n, frame=(1000, 1000, 500)):
        """Pushes frames until `n` readers get clones. Routes and neighbours are looked up after a
        reader was added."""
        end = time.monotonic() + PATIENCE
        while True:
            self.push(*frame)
            stats = self.settle()
            if stats['kernel-readers'] == n:
                return stats
            assert time.monotonic() < end, stats
            time.sleep(0.01)

    def check(self):
        """Every reader has got exactly what was sent, and has lost nothing."""
        stats = self.settle()
        assert stats['dropped'] == 0, stats
        for reader in self.all:
            want = self.sent[reader.first:getattr(reader, 'last', None)]
            reader.await_packets(len(want))
            assert len(reader.got) == len(want), (len(reader.got), len(want))
            assert reader.got == want, 'the packets differ'
            assert len(reader.sources) <= 1 and all(a == SENDER for a, _ in reader.sources), \
                reader.sources
        assert len(set().union(*(reader.sources for reader in self.all))) == 1
        return stats


def random_frame(rng, most):
    """Sizes of a frame: mostly equal packets and a shorter last one; sometimes any sizes."""
    if rng.random() < 0.2:
        return [rng.randrange(12, 1400) for _ in range(rng.randrange(1, 6))]
    size = rng.choice([60, 200, 1000, 1200, 1400])
    return [size] * rng.randrange(0, most) + [rng.randrange(12, size + 1)]


def exact(n_readers=200, device=(), n_hosts=4, most=40):
    rng = random.Random(seed)
    print(f'# seed {seed}')
    with Net(n_hosts) as net:
        for side in net.sender, net.readers:
            for words in device:
                side.run(*words)
        net.need(net.start())
        net.add(n_readers, n_hosts=n_hosts)
        net.wait_for_clones(n_readers)
        before = net.stats()
        for _ in range(60):
            net.push(*random_frame(rng, most))
            net.settle()  # a reader that lags is served on its own
            for reader in net.all:
                reader.await_packets(len(net.sent) - reader.first)
        stats = net.check()
        assert stats['clones'] > before['clones'], stats
        # Nothing but clones, in triggers of up to 64 readers, unless a reader lagged.
        assert stats['sends'] == before['sends'] or net.thinned, (before, stats)
        snmp = net.readers.run('awk', '/^Udp: [0-9]/ { print $4, $8 }', '/proc/net/snmp').split()
        assert snmp == ['0', '0'], f'UDP errors, checksum errors: {snmp}'


# For devices that do not segment: the receiving queue of a veth device has 1000 entries for all
# packets of this machine.
SMALL = {'n_readers': 60, 'most': 8}


@test
def readers_get_clones_that_are_exact():
    """200 readers get every packet unchanged, short last segments and all"""
    exact()


@test
def without_checksum_offload():
    """a device without checksum offload"""
    exact(**SMALL, device=[('ethtool', '-K', 'veth', 'tx', 'off', 'rx', 'off')])


@test
def without_segmentation():
    """a device that does not segment"""
    exact(**SMALL, device=[('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off', 'gso', 'off'),
                        ('ethtool', '-K', 'veth', 'rx', 'off')])


def readers_of_layers(kernel):
    """Gives each of nine sets of layers six readers, which join at three times, and changes the
    layers of one reader of each set. Returns what the readers have got, or None if the system was too
    busy for all of it."""
    with Net(n_hosts=2) as net:
        net.need(net.start(kernel))
        sets = [(d, t) for d in range(3) for t in range(3)]
        for step in range(3):
            for d, t in sets:
                for _ in range(2):
                    net.command(f'layers 10.78.0.2 {20000 + 2 * len(net.all)} {d} {t}')
                    net.add(1)
            for i in range(90):
                if step == 2 and i == 45:
                    for at, reader in enumerate(net.all[9:18]):
                        net.command(f'layers {reader.address} {reader.port} {at % 3} {at // 3}')
                assert net.command('picture') == 'ok'
                net.settle()
                time.sleep(0.003 if kernel == 'on' and i < 30 else 0)  # routes are looked up
        stats = net.settle()
        for reader in net.all:
            reader.await_packets(net.stats_of(reader)['packets-sent'])
            assert len(reader.got) == net.stats_of(reader)['packets-sent']
        return None if net.thinned else ([reader.got for reader in net.all], stats)


def unthinned_readers_of_layers(kernel):
    for _ in range(5):
        if found := readers_of_layers(kernel):
            return found
    raise Skip('the system is too busy: readers lag by a quarter of a second')


@test
def sets_of_layers_are_cloned():
    """readers of nine sets of layers get clones, and the same bytes as by sends"""
    sent, stats = unthinned_readers_of_layers('off')
    assert stats['clones'] == 0, stats
    cloned, stats = unthinned_readers_of_layers('on')
    print(f'# {stats["clones"]} clones, {stats["sends"]} sends')
    assert stats['clones'] > 4 * stats['sends'], stats
    assert stats['kernel-readers'] >= 45, stats  # the nine readers whose layers changed are alone
    for i, (by_send, by_clone) in enumerate(zip(sent, cloned)):
        assert by_send == by_clone, f'reader {i}: {len(by_send)} and {len(by_clone)} packets'


@test(timeout=200)
def the_path_is_entered_and_left():
    """readers join and leave while the path is switched 1000 times, and lose nothing"""
    rng = random.Random(seed)
    print(f'# seed {seed}')
    with Net(n_hosts=3) as net:
        net.need(net.start())
        net.add(100, n_hosts=3)
        net.wait_for_clones(100)
        mode = 'on'
        for step in range(1000):
            mode = 'off' if mode == 'on' else 'on'
            net.command(f'set kernel={mode}')
            net.push(*random_frame(rng, 6))
            here = [reader for reader in net.all if not hasattr(reader, 'last')]
            if step % 20 == 7:
                net.remove(rng.choice(here))
                net.add(1, first_host=rng.randrange(3))
            if step % 10 == 0:
                net.settle()
                for reader in net.all:
                    reader.read()
        stats = net.check()
        # Which part is cloned depends on how soon routes are found again.
        assert stats['clones'] > 0 and stats['sends'] > 0, stats
        net.command('set kernel=on')
        net.wait_for_clones(100)


def moves(net, change, undo=None):
    """Readers that get clones still get everything after a change of the network, and get clones
    again."""
    net.need(net.start())
    net.add(20, n_hosts=2)
    net.wait_for_clones(20)
    for _ in range(10):
        net.push(1000, 1000, 300)
    net.settle()
    change()
    if undo:
        net.push(1000, 300)
        net.settle()
        undo()
    for reader in net.all:
        reader.read()
        reader.got.clear()
        reader.first = len(net.sent)
    net.wait_for_clones(20)
    for _ in range(10):
        net.push(1000, 1000, 300)
    for reader in net.all:
        reader.await_packets(len(net.sent) - reader.first)
        assert reader.got[-30:] == net.sent[-30:], (len(reader.got), len(net.sent))


@test
def a_neighbour_gets_another_hardware_address():
    """a neighbour with another hardware address"""
    with Net(2) as net:
        moves(net, lambda: (
            net.readers.run('ip', 'link', 'set', 'veth', 'address', '02:00:00:00:78:02'),
            *(net.sender.run('ip', 'neighbour', 'replace', f'10.78.0.{host}', 'lladdr',
                             '02:00:00:00:78:02', 'dev', 'veth', 'nud', 'stale')
              for host in (2, 3))))


@test
def a_stale_neighbour_is_asked_again():
    """neighbours that the system forgets"""
    with Net(2) as net:
        moves(net, lambda: net.sender.run('ip', 'neighbour', 'flush', 'dev', 'veth'))


@test
def a_device_goes_down_and_up():
    """a device that goes down and up"""
    with Net(2) as net:
        moves(net, lambda: net.sender.run('ip', 'link', 'set', 'veth', 'down'),
              lambda: net.sender.run('ip', 'link', 'set', 'veth', 'up'))


@test
def a_route_moves_to_another_device():
    """a route that moves to another device"""
    with Net(2) as net:
        net.sender.run('ip', 'link', 'add', 'veth2', 'type', 'veth', 'peer', 'name', 'veth2',
                       'netns', net.readers.path)
        for side, address in (net.sender, '10.79.0.1'), (net.readers, '10.79.0.2'):
            side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'veth2')
            side.run('ip', 'link', 'set', 'veth2', 'up')
            side.run('sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=0',
                     'net.ipv4.conf.veth2.rp_filter=0')
        moves(net, lambda: [
            net.sender.run('ip', 'route', 'add', f'10.78.0.{host}/32', 'via', '10.79.0.2', 'dev',
                           'veth2', 'src', SENDER) for host in (2, 3)])
        listing = net.sender.run('ip', '-s', '-j', 'link', 'show', 'veth2')
        assert int(listing.split('"tx":{"bytes":')[1].split(',')[0]) > 20 * 10 * 2300, listing


@test
def nothing_is_left_after_a_kill():
    """nothing stays at the device after a SIGKILL"""
    if not SYS_BPF:
        raise Skip('the number of the system call bpf is not known here')
    with Net() as net:
        net.need(net.start())
        net.add(5)
        net.wait_for_clones(5)
        ids = bpf_ids(net.process)
        assert {kind for kind, _ in ids} == {'prog', 'link', 'map'}, ids
        assert all(bpf_exists(*one) for one in ids), ids
        net.process.send_signal(signal.SIGKILL)
        net.process.wait()
        end = time.monotonic() + PATIENCE
        while any(bpf_exists(*one) for one in ids):
            assert time.monotonic() < end, ids
            time.sleep(0.05)


def filters(net):
    """Returns the ids of the programs of clsact at the sender's device."""
    listing = net.sender.run('tc', 'filter', 'show', 'dev', 'veth', 'egress')
    return re.findall(r'clone_burst.* id (\d+)', listing)


@test
def without_tcx_the_program_is_a_filter():
    """without tcx, readers get clones by a filter, which lets all packets pass after a kill and is
    removed by the next start"""
    if not SYS_BPF:
        raise Skip('the number of the system call bpf is not known here')
    with Net() as net:
        net.need(net.start(before=without_tcx))
        net.add(20)
        net.wait_for_clones(20)
        net.check()
        first = filters(net)
        assert len(first) == 1, first
        net.process.kill()
        net.process.wait()
        assert filters(net) == first
        old = net.all
        net.all = []
        assert net.start('off') == 'ok'
        for _ in range(5):
            net.push(1000, 300)
        other = Reader(net.readers, '10.78.0.2', 30000)
        net.command('add 10.78.0.2 30000')
        net.push(1000, 300)
        other.await_packets(2)
        assert len(other.got) == 2
        net.process.kill()
        net.process.wait()
        net.need(net.start(before=without_tcx))
        for reader in old:
            net.command(f'add {reader.address} {reader.port}')
        net.wait_for_clones(20)
        second = filters(net)
        assert len(second) == 1 and second != first, (first, second)
        owner, net.process = net.process, None
        # Another process has a filter beside it, and takes none that is in use.
        net.need(net.start(before=without_tcx))
        for reader in old:
            net.command(f'add {reader.address} {reader.port}')
        net.wait_for_clones(20)
        third = filters(net)
        for process in owner, net.process:
            process.kill()
            process.wait()
        assert len(third) == 2 and second[0] in third, (second, third)
        net.need(net.start(before=without_tcx))
        for reader in old:
            net.command(f'add {reader.address} {reader.port}')
        net.wait_for_clones(20)
        assert len(filters(net)) == 1 and not set(filters(net)) & set(third), filters(net)


@test
def an_old_kernel_is_named():
    """on a kernel that cannot load the program, `on` gives the reason"""
    if not SYS_BPF:
        raise Skip('the number of the system call bpf is not known here')
    with Net() as net:
        answer = net.start('on', before=lambda: refuse_bpf(5))  # BPF_PROG_LOAD
        if 'no kernel path' in answer:
            raise Skip(answer)
        assert 'kernel=on' in answer and 'too old' in answer, answer


@test
def without_permission_auto_sends_and_on_refuses():
    """without permission, `auto` serves by sends and `on` gives the reason"""
    drop = ('setpriv', '--bounding-set=-all', '--inh-caps=-all')
    with Net() as net:
        answer = net.start('on', enter=drop)
        if 'no kernel path' in answer:
            raise Skip(answer)
        assert 'kernel=on' in answer and 'CAP_BPF and CAP_NET_ADMIN' in answer, answer
        net.process.kill()
        net.process.wait()
        assert net.start('auto', enter=drop) == 'ok'
        net.add(5)
        for _ in range(20):
            net.push(1000, 1000, 300)
        stats = net.check()
        assert stats['clones'] == 0 and not bpf_ids(net.process), stats


@test
def two_capabilities_are_enough():
    """CAP_BPF and CAP_NET_ADMIN are enough"""
    with Net() as net:
        net.need(net.start(enter=(
            'setpriv', '--bounding-set=-all,+bpf,+net_admin', '--inh-caps=-all')))
        net.add(5)
        net.wait_for_clones(5)


@test
def rules_for_packets_that_leave_turn_auto_off():
    """a rule for packets that leave turns `auto` off, and not `on`"""
    with Net() as net:
        net.sender.run('nft', 'add', 'table', 'inet', 't')
        net.sender.run('nft', 'add', 'chain', 'inet', 't', 'out',
                       '{ type filter hook output priority 0; }')
        net.need(net.start('auto'))
        net.add(5)
        net.wait_for_clones(5)  # a chain without a rule
        net.process.kill()
        net.process.wait()
        net.sender.run('nft', 'add', 'rule', 'inet', 't', 'out', 'udp', 'dport', '9999', 'drop')
        net.start('auto')
        for reader in net.all:
            net.command(f'add {reader.address} {reader.port}')
        for _ in range(20):
            net.push(1000, 1000, 300)
            net.settle()
            time.sleep(0.01)
        assert net.stats()['clones'] == 0
        net.command('set kernel=on')
        net.wait_for_clones(5)


@test
def readers_without_clones_say_why():
    """over a tunnel, a loopback device and to a host that does not answer, the reason is named"""
    with Net() as net:
        try:
            net.sender.run('ip', 'tuntap', 'add', 'dev', 'tunnel', 'mode', 'tun')
        except NoRig as why:
            raise Skip(str(why))
        net.sender.run('ip', 'link', 'set', 'tunnel', 'up')
        net.sender.run('ip', 'route', 'add', '10.90.0.0/24', 'dev', 'tunnel')
        net.need(net.start())
        want = {'10.90.0.2': 'device', '127.0.0.1': 'route', '10.78.0.99': 'neighbour',
                '10.91.0.1': 'route', READERS: 'alone', '::1': 'unfit'}
        for host in want:
            net.command(f'add {host} 20000')
        end = time.monotonic() + PATIENCE
        while True:
            net.push(1000, 300)
            got = {host: numbers(net.command(f'reader {host} 20000'))['kernel'] for host in want}
            if got == want:
                break
            assert time.monotonic() < end, got
            time.sleep(0.02)


@test
def auto_leaves_a_device_alone_that_does_not_segment():
    """`auto` leaves a device alone that does not segment"""
    with Net() as net:
        net.sender.run('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off')
        net.need(net.start('auto'))
        net.add(5)
        for _ in range(20):
            net.push(1000, 1000, 300)
            net.settle()
            time.sleep(0.01)
        assert net.check()['clones'] == 0
        net.sender.run('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'on')
        net.wait_for_clones(5)


if __name__ == '__main__':
    run()
