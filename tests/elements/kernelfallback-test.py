#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel path of fanoutsink: when readers are served by sends instead, and what is said."""

import errno
import os
import re
import shutil
import subprocess
import tempfile
import time

from kernelnet import READERS, Net
from kernelpath import PATIENCE, SYS_BPF, bpf_ids, numbers, refuse_bpf
from netns import NoRig
from sanitized import environment
from tap import Skip, run, test


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
def gst_launch_prints_why_auto_sends():
    """gst-launch-1.0 prints why `auto` serves by sends"""
    launch = shutil.which('gst-launch-1.0')
    if not launch:
        raise Skip('gst-launch-1.0 is not installed')
    done = subprocess.run(
        ['setpriv', '--bounding-set=-all', '--inh-caps=-all', launch, 'fakesrc', 'num-buffers=1',
         '!', 'application/x-rtp', '!', 'fanoutsink', 'kernel=auto'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment())
    if 'no kernel path' in done.stdout:
        raise Skip('this build has no kernel path')
    assert 'CAP_BPF' in done.stdout, done.stdout


@test
def two_capabilities_are_enough():
    """CAP_BPF and CAP_NET_ADMIN are enough"""
    with Net() as net:
        net.need(net.start(enter=(
            'setpriv', '--bounding-set=-all,+bpf,+net_admin', '--inh-caps=-all')))
        net.add(5)
        net.wait_for_clones(5)


# A user who is not root, as the units of the documentation have it.
NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
          '--inh-caps=-all,+bpf,+net_admin', '--ambient-caps=-all,+bpf,+net_admin',
          '--bounding-set=-all,+bpf,+net_admin')


def need_nobody():
    """Skips the test if that user cannot run the sender: for example, in a home folder."""
    done = subprocess.run([*NOBODY, 'test', '-x', os.environ['WEIR_KERNEL_SENDER']], check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(done.stderr.strip() or 'user 65534 cannot read the build folder')


def never_cloned(net):
    """The readers are served by sends."""
    for _ in range(20):
        net.push(1000, 1000, 300)
        net.settle()
        time.sleep(0.01)
    assert net.stats()['clones'] == 0


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
        net.sender.run('nft', 'add', 'rule', 'inet', 't', 'out', 'udp', 'dport', '9999', 'drop')
        net.wait_for_reason('rules')
        net.sender.run('nft', 'flush', 'chain', 'inet', 't', 'out')
        net.wait_for_clones(5)
        net.sender.run('nft', 'add', 'rule', 'inet', 't', 'out', 'udp', 'dport', '9999', 'drop')
        net.wait_for_reason('rules')
        net.check()
        net.process.kill()
        net.process.wait()
        net.start('auto')
        net.add_again()
        never_cloned(net)
        net.command('set kernel=on')
        net.wait_for_clones(5)


@test
def rules_at_the_egress_of_a_device_turn_auto_off():
    """a rule of nftables at the egress of a device turns `auto` off"""
    with Net() as net:
        try:
            net.sender.run('nft', 'add', 'table', 'netdev', 't')
            net.sender.run('nft', 'add', 'chain', 'netdev', 't', 'out',
                           '{ type filter hook egress device veth priority 0; }')
        except NoRig as why:
            raise Skip(str(why))
        net.sender.run('nft', 'add', 'rule', 'netdev', 't', 'out', 'udp', 'dport', '9999', 'drop')
        net.need(net.start('auto'))
        net.add(5)
        never_cloned(net)


@test
def rules_of_iptables_turn_auto_off_without_root():
    """a rule of iptables turns `auto` off for a user with the two capabilities"""
    iptables = shutil.which('iptables-legacy')
    if not iptables:
        raise Skip('iptables-legacy is not installed')
    need_nobody()
    with Net() as net:
        try:
            net.sender.run(iptables, '-L', 'OUTPUT')
        except NoRig as why:
            raise Skip(str(why))
        net.need(net.start('auto', enter=NOBODY))
        net.add(5)
        net.wait_for_clones(5)  # a table without a rule
        net.sender.run(iptables, '-A', 'OUTPUT', '-p', 'udp', '--dport', '9999', '-j', 'DROP')
        net.wait_for_reason('rules')
        net.check()


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
def the_log_says_once_why_readers_get_no_clones():
    """the log says once for each reason and device why readers get no clones"""
    if not SYS_BPF:
        raise Skip('the number of the system call bpf is not known here')
    with Net() as net, tempfile.TemporaryFile('w+') as log:
        # BPF_LINK_CREATE
        net.need(net.start(log=log, before=lambda: refuse_bpf(28, errno.EPERM)))
        net.add(2)
        net.wait_for_reason('device')
        for port in 20000, 20002:
            net.command(f'add 127.0.0.1 {port}')
        end = time.monotonic() + PATIENCE
        while numbers(net.command('reader 127.0.0.1 20002'))['kernel'] != 'route':
            assert time.monotonic() < end
            net.push(1000, 300)
        log.seek(0)
        lines = [line for line in log if 'kernel path: ' in line]
        assert len(lines) == 2, lines
        assert 'veth refuses the program: Operation not permitted' in lines[0], lines
        assert 'on this host' in lines[1], lines


@test
def readers_without_segmented_sends_are_unfit():
    """with `gso=off`, and if they were added twice, readers are unfit"""
    with Net() as net:
        net.need(net.start())
        net.add(2)
        net.wait_for_clones(2)
        net.add_again()
        net.wait_for_reason('unfit')
        for reader in net.all:
            net.command(f'remove {reader.address} {reader.port}')
        net.wait_for_clones(2)
        net.command('set gso=off')
        net.wait_for_reason('unfit')


@test
def auto_leaves_a_device_alone_that_does_not_segment():
    """`auto` leaves a device alone that does not segment"""
    with Net() as net, tempfile.TemporaryFile('w+') as log:
        net.sender.run('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off')
        net.need(net.start('auto', log=log))
        net.add(5)
        net.wait_for_reason('segmentation')
        assert net.check()['clones'] == 0
        log.seek(0)
        assert re.findall('device veth .* not segment', log.read()), 'not logged'
        net.sender.run('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'on')
        net.wait_for_clones(5)


if __name__ == '__main__':
    run()
