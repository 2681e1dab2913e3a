#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel path of fanoutsink: what readers get, and how it is entered and left."""

import os
import random
import re
import signal
import socket
import time

from kernelnet import READERS, SENDER, Net
from kernelpath import PATIENCE, SYS_BPF, Reader, bpf_exists, bpf_ids, inside, without_tcx
from netns import Namespace, NoRig
from tap import Skip, run, test

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
ETH_P_IP = 0x0800
seed = int(os.environ.get('WEIR_SEED', time.time_ns() % 2**31))


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
        # Nothing but clones, in triggers of up to 128 readers, unless a reader lagged.
        assert stats['sends'] == before['sends'] or net.thinned, (before, stats)
        snmp = net.readers.run('awk', '/^Udp: [0-9]/ { print $4, $8 }', '/proc/net/snmp').split()
        assert snmp == ['0', '0'], f'UDP errors, checksum errors: {snmp}'


def sequence_number(data):
    return int.from_bytes(data[2:4], 'big')


def delay_by_turns(net, rng):
    """Has readers fall behind and go on at the live edge, so that their numbers differ from now on."""
    for reader in net.all:
        if rng.random() < 0.8:
            net.command(f'delay {reader.address} {reader.port} {rng.randrange(20, 60)}')
        if rng.random() < 0.5:
            net.push(*random_frame(rng, 8))
    net.settle()
    for reader in net.all:
        net.command(f'delay {reader.address} {reader.port} 0')
    net.push(1000, 200)


def own_numbers(n_readers=60, device=(), most=60):
    """Readers whose numbers differ get everything in clones, with numbers that continue."""
    rng = random.Random(seed)
    print(f'# seed {seed}')
    with Net(4) as net:
        for side in net.sender, net.readers:
            for words in device:
                side.run(*words)
        net.need(net.start())
        net.add(n_readers, n_hosts=4)
        net.wait_for_clones(n_readers)
        # On a busy machine, delays end together, and few readers get numbers of their own.
        for _ in range(10):
            delay_by_turns(net, rng)
            net.wait_for_clones(n_readers)
            for reader in net.all:
                reader.await_packets(net.stats_of(reader)['packets-sent'])
                reader.before, reader.last_number = len(reader.got), sequence_number(reader.got[-1])
            if len({(reader.last_number - sequence_number(net.sent[-1])) % 65536 for reader in net.all}) > 4:
                break
        first, before = len(net.sent), net.settle()
        for _ in range(60):
            net.push(*random_frame(rng, most))
            net.settle()
            for reader in net.all:
                reader.await_packets(reader.before + len(net.sent) - first)
        stats = net.settle()
        want = net.sent[first:]
        aheads = set()
        for reader in net.all:
            got = reader.got[reader.before:]
            assert [data[:2] + data[4:] for data in got] == [data[:2] + data[4:] for data in want]
            numbers_of_rtp = [sequence_number(data) for data in got]
            assert numbers_of_rtp == [(reader.last_number + 1 + i) % 65536 for i in range(len(want))]
            aheads.add((numbers_of_rtp[0] - sequence_number(want[0])) % 65536)
        print(f'# {len(aheads)} offsets of numbers, {stats["clones"] - before["clones"]} clones, '
              f'{stats["sends"] - before["sends"]} sends')
        assert len(aheads) > 4, aheads
        assert stats['sends'] == before['sends'] or net.thinned, (before, stats)
        assert stats['dropped'] - stats['left-out'] == 0, stats
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
def over_a_vlan():
    """a VLAN device"""
    with Net() as net:
        try:
            for side, address in (net.sender, '10.77.0.1'), (net.readers, '10.77.0.2'):
                side.run('ip', 'link', 'add', 'link', 'veth', 'name', 'vlan', 'type', 'vlan', 'id', 7)
                side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'vlan')
                side.run('ip', 'link', 'set', 'vlan', 'up')
        except NoRig as why:
            raise Skip(f'no VLAN device: {why}')
        net.need(net.start())
        readers = [Reader(net.readers, '10.77.0.2', port) for port in (20000, 20002)]
        for reader in readers:
            reader.first = 0
            net.all.append(reader)
        net.add_again()
        net.wait_for_clones(2)
        for _ in range(20):
            net.push(1000, 1000, 300)
        net.settle()
        for reader in readers:
            reader.await_packets(len(net.sent))
            assert reader.got == net.sent, (len(reader.got), len(net.sent))
            reader.socket.close()


@test
def without_segmentation():
    """a device that does not segment"""
    exact(**SMALL, device=[('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off', 'gso', 'off'),
                        ('ethtool', '-K', 'veth', 'rx', 'off')])


@test
def readers_with_own_numbers():
    """60 readers with different sequence numbers get clones, which are exact"""
    own_numbers()


@test
def own_numbers_without_checksum_offload():
    """the same over a device without checksum offload"""
    own_numbers(**SMALL, device=[('ethtool', '-K', 'veth', 'tx', 'off', 'rx', 'off')])


@test
def own_numbers_without_segmentation():
    """the same over a device that does not segment"""
    own_numbers(**SMALL, device=[('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off', 'gso', 'off'),
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
    assert stats['kernel-readers'] == 54, stats
    for i, (by_send, by_clone) in enumerate(zip(sent, cloned)):
        assert by_send == by_clone, f'reader {i}: {len(by_send)} and {len(by_clone)} packets'


def layers_at_random(switched):
    """Changes layers of 18 readers at random with each picture, while the path is switched or is off.
    Returns what the readers have got, or None if the system was too busy for all of it."""
    rng = random.Random(seed)
    with Net(n_hosts=2) as net:
        net.need(net.start('on' if switched else 'off'))
        net.add(18, n_hosts=2)
        for i in range(300):
            if switched and i > 60:
                net.command(f'set kernel={"on" if i % 2 else "off"}')
            reader = rng.choice(net.all)
            net.command(f'layers {reader.address} {reader.port} {rng.randrange(3)} '
                        f'{rng.randrange(3)}')
            assert net.command('picture') == 'ok'
            net.settle()
        clones = net.stats()['clones']
        for reader in net.all:
            reader.await_packets(net.stats_of(reader)['packets-sent'])
        return None if net.thinned else ([reader.got for reader in net.all], clones)


def adapting_readers(kernel):
    """Changes layers of 36 readers at random, five with each picture, and ends with four readers of each
    of nine sets. Returns what the readers have got and the statistics before and after the last
    pictures, or None if the system was too busy for all of it."""
    rng = random.Random(seed)
    with Net(n_hosts=2) as net:
        net.need(net.start(kernel))
        net.add(36, n_hosts=2)
        for i in range(420):
            for at in rng.sample(range(36), 5) if i < 300 else range(36) if i == 300 else ():
                wanted = at % 9 if i == 300 else rng.randrange(9)
                reader = net.all[at]
                net.command(f'layers {reader.address} {reader.port} {wanted // 3} {wanted % 3}')
            assert net.command('picture') == 'ok'
            stats = net.settle()
            before = stats if i == 390 else before if i > 390 else None
            time.sleep(0.003 if kernel == 'on' and i < 30 else 0)  # routes are looked up
        for reader in net.all:
            reader.await_packets(net.stats_of(reader)['packets-sent'])
        return None if net.thinned else ([reader.got for reader in net.all], before, stats)


@test(timeout=200)
def readers_who_adapt_get_clones():
    """readers who change layers at random get clones all the time, and the same bytes as by sends"""
    print(f'# seed {seed}')
    for _ in range(5):
        sent, cloned = adapting_readers('off'), adapting_readers('on')
        if sent and cloned:
            break
    else:
        raise Skip('the system is too busy: readers lag by a quarter of a second')
    _, before, after = cloned
    print(f'# {after["clones"]} clones, {after["sends"]} sends; of the last pictures '
          f'{after["clones"] - before["clones"]} clones, {after["sends"] - before["sends"]} sends')
    for i, (by_send, by_clone) in enumerate(zip(sent[0], cloned[0])):
        assert by_send == by_clone, f'reader {i}: {len(by_send)} and {len(by_clone)} packets'
        own = [sequence_number(data) for data in by_clone]
        assert all((b - a) % 65536 == 1 for a, b in zip(own, own[1:])), f'reader {i}: a gap'
        assert any(b < a for a, b in zip(own, own[1:])), f'reader {i}: its numbers do not wrap'
    assert after['kernel-readers'] == 36 and after['sends'] == before['sends'], (before, after)
    assert after['clones'] > after['sends'], after


@test(timeout=120)
def layers_change_while_the_path_is_switched():
    """layers change at random while the path is switched, and readers get the same as by sends"""
    print(f'# seed {seed}')
    for _ in range(5):
        sent, cloned = layers_at_random(False), layers_at_random(True)
        if sent and cloned:
            break
    else:
        raise Skip('the system is too busy: readers lag by a quarter of a second')
    print(f'# {cloned[1]} clones')
    assert cloned[1] > 0
    for i, (by_send, by_clone) in enumerate(zip(sent[0], cloned[0])):
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
def a_stale_neighbour_is_used_and_asked():
    """stale neighbours get clones, and are asked for their hardware address meanwhile"""
    with Net(2) as net:
        net.sender.run('sysctl', '-qw', 'net.ipv4.neigh.veth.delay_first_probe_time=1')
        net.need(net.start())
        net.add(20, n_hosts=2)
        net.wait_for_clones(20)
        net.settle()
        for host in 2, 3:
            net.sender.run('ip', 'neighbour', 'change', f'10.78.0.{host}', 'dev', 'veth', 'nud',
                           'stale')
        before = net.settle()
        end = time.monotonic() + PATIENCE
        while True:
            net.push(1000, 300)
            stats = net.settle()
            assert stats['sends'] == before['sends'] or net.thinned, (before, stats)
            listing = net.sender.run('ip', 'neighbour', 'show', 'dev', 'veth')
            if listing.count('REACHABLE') == 2:
                break
            assert time.monotonic() < end, listing
            time.sleep(0.02)
        net.check()


@test
def a_forgotten_neighbour_is_asked_again():
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


def add_far_host(net, mtu):
    """Makes the readers' host a router to another host, at 10.79.0.2, over a line with this MTU.
    Returns that host."""
    far = Namespace()
    net.readers.run('ip', 'link', 'add', 'far', 'type', 'veth', 'peer', 'name', 'far', 'netns',
                    far.path)
    for side, address in (net.readers, '10.79.0.1'), (far, '10.79.0.2'):
        side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'far')
        side.run('ip', 'link', 'set', 'far', 'mtu', mtu, 'up')
    net.readers.run('sysctl', '-qw', 'net.ipv4.ip_forward=1')
    far.run('ip', 'route', 'add', '10.78.0.0/24', 'via', '10.79.0.1')
    net.sender.run('ip', 'route', 'add', '10.79.0.0/24', 'via', READERS)
    return far


def tell_of_small_mtu(net):
    """Has the router tell the sender's host that packets to the far host are too big."""
    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
            sender.sendto(bytes(1200), ('10.79.0.2', 9))
    inside(net.sender, send)


@test
def readers_behind_a_smaller_mtu_lose_nothing():
    """readers behind a smaller MTU lose nothing, and are served by sends when it is known"""
    with Net() as net:
        try:
            far = add_far_host(net, 1000)
        except NoRig as why:
            raise Skip(str(why))
        net.need(net.start())
        net.add(2)
        for port in 30000, 30002:
            reader = Reader(far, '10.79.0.2', port)
            reader.first = 0
            net.all.append(reader)
            net.command(f'add {reader.address} {reader.port}')
        net.wait_for_clones(4, frame=(700, 700, 500))
        for _ in range(25):
            net.push(1200)
            net.settle()
        net.check()
        tell_of_small_mtu(net)
        end = time.monotonic() + PATIENCE
        step = 0
        while net.stats_of(net.all[2])['kernel'] != 'route':
            assert time.monotonic() < end, net.stats_of(net.all[2])
            net.sender.run('ip', 'neighbour', 'replace', '10.78.0.99', 'lladdr',
                           f'02:00:00:00:78:{step % 100:02}', 'dev', 'veth', 'nud', 'permanent')
            step += 1
            net.push(1200)
            time.sleep(0.05)
        net.check()
        far.close()


@test
def packets_have_numbers_of_their_own():
    """the packets of readers with one address have different numbers of IP"""
    with Net() as net:
        net.need(net.start())
        net.add(4)
        net.wait_for_clones(4)
        net.settle()
        watch = inside(net.readers, lambda: socket.socket(
            socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)))
        for _ in range(10):
            net.push(900)
            net.settle()
        for reader in net.all:
            reader.await_packets(len(net.sent))
        net.check()
        watch.setblocking(False)
        numbers_of_ip = []
        while len(numbers_of_ip) < 40:
            numbers_of_ip.append(watch.recv(65536)[4:6])
        watch.close()
        assert len(set(numbers_of_ip)) == 40, numbers_of_ip


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


if __name__ == '__main__':
    run()
