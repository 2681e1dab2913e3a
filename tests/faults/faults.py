# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams, readers and the system fail; readers of other mounts lose nothing, the failed mounts
come back, and every packet is counted.

WEIR_UPSTREAM_FAULTS and WEIR_READER_FAULTS set the numbers of faults; `./dev test --faults` has 500
and 10,000. WEIR_SEED repeats a run.
"""

import collections
import os
import random
import resource
import signal
import socket
import struct
import tempfile
import threading
import time

from control import rss_kib
from faulty import Faults, Follower, Upstream
from good import PATIENCE
from impair import Impairment
from proc import Rtsp, free_port, interop
from proxy import Origin, program, wait_until
from scripted import KEY_PICTURE, rtp
from tap import Skip, run, test
from watched import Bench

UPSTREAM_FAULTS = int(os.environ.get('WEIR_UPSTREAM_FAULTS', '24'))
READER_FAULTS = int(os.environ.get('WEIR_READER_FAULTS', '400'))
SEED = int(os.environ.get('WEIR_SEED', time.time()))
MOUNTS = 6 if UPSTREAM_FAULTS < 100 else 24
WORKERS = 4
QUICK = {'linger': '1s', 'connect-timeout': '1s', 'read-timeout': '1s', 'start-timeout': '2s',
         'transport': 'tcp'}
SLACK = 8  # descriptors that thread pools keep for a while


def held(proxy):
    return len(os.listdir(f'/proc/{proxy.pid}/fd'))


# ---- upstreams ----


def fail_and_heal(bench, path, upstream, follower, kind):
    """Makes one fault and ends it. Returns the seconds from its end to the next packet."""
    proxy, runs = bench.proxy, len(upstream.sessions)
    upstream.fault(kind)
    if kind == 'silent track':
        before = follower.packets
        wait_until(lambda: follower.packets > before + 20, 30, f'{path} goes on with one track')
    else:
        # A connection that ends may be replaced at once, so that the mount stays up.
        wait_until(lambda: len(upstream.sessions) > runs
                   or proxy.get(f'/v1/mounts{path}')['state'] == 'down', 30, f'{path} notices "{kind}"')
    upstream.heal()
    before, start = follower.packets, time.monotonic()
    wait_until(lambda: follower.packets > before, 40, f'{path} is back after "{kind}"')
    bench.check()
    return time.monotonic() - start


@test(timeout=UPSTREAM_FAULTS * 10 + 120)
def upstreams_fail_and_come_back():
    """the mounts of upstreams that fail come back, and other readers lose nothing"""
    print(f'# WEIR_SEED={SEED}', flush=True)
    upstreams = [Upstream() for _ in range(MOUNTS)]
    mounts = {f'/cam{n}': {'upstream': each.url, **QUICK} for n, each in enumerate(upstreams)}
    times, failures, kinds = [], [], collections.Counter()

    def work(bench, n, follower):
        chance = random.Random(SEED + n)
        order = [*Upstream.FAULTS, 'silent track']
        chance.shuffle(order)
        try:
            for i in range((UPSTREAM_FAULTS + MOUNTS - 1 - n) // MOUNTS):
                kind = order[(i + n * 2) % len(order)]
                times.append(fail_and_heal(bench, f'/cam{n}', upstreams[n], follower, kind))
                kinds[kind] += 1
        except (AssertionError, OSError) as error:
            failures.append(f'/cam{n}: {error}')

    with Bench(mounts) as bench:
        followers = [Follower(bench.proxy, path) for path in mounts]
        for path, follower in zip(mounts, followers):
            wait_until(lambda follower=follower: follower.packets, 20, f'{path} plays')
        threads = [threading.Thread(target=work, args=(bench, n, follower))
                   for n, follower in enumerate(followers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for follower in followers:
            follower.over.set()
        for follower in followers:
            follower.join(10)
        assert not failures, failures
        assert sum(kinds.values()) == UPSTREAM_FAULTS, kinds
        print(f'# {UPSTREAM_FAULTS} faults of upstreams: {dict(kinds)}; media was back after '
              f'{max(times):.1f} s at most; readers connected '
              f'{sum(each.times for each in followers)} times', flush=True)
    for each in upstreams:
        each.__exit__()


@test(timeout=120)
def a_process_of_an_upstream_is_killed_stopped_and_restarted():
    interop()
    with Origin() as origin, Bench({'/real': {'upstream': origin.url, **QUICK}}) as bench:
        follower = Follower(bench.proxy, '/real')
        wait_until(lambda: follower.packets, 20, 'it plays')
        seen = len(bench.proxy.lines)
        origin.signal(signal.SIGSTOP)
        bench.proxy.wait_for_line(' mount /real down: ', 20, seen)
        origin.signal(signal.SIGCONT)
        before = follower.packets
        wait_until(lambda: follower.packets > before, 30, 'the stopped process is back')
        seen = len(bench.proxy.lines)
        origin.kill()
        bench.proxy.wait_for_line(' mount /real down: ', 20, seen)
        with Origin(after=origin):
            before = follower.packets
            wait_until(lambda: follower.packets > before, 30, 'the killed process is back')
            bench.check()
            follower.over.set()
            follower.join(10)


# ---- readers ----


@test(timeout=READER_FAULTS // 5 + 200)
def readers_fail_and_others_lose_nothing():
    """readers that fail harm no other reader and leave nothing behind"""
    print(f'# WEIR_SEED={SEED}', flush=True)
    kinds, refused, left = collections.Counter(), collections.Counter(), [READER_FAULTS]
    lock = threading.Lock()

    def work(bench, faults):
        while not [each.wrong for each in bench.goods if each.wrong] and bench.proxy.running():
            with lock:
                if left[0] == 0:
                    break
                left[0] -= 1
            try:
                kinds[faults.one()] += 1
            except (OSError, AssertionError) as error:
                refused[str(error)[:60]] += 1
                with lock:
                    left[0] += 1
                time.sleep(0.05)
        for rtsp in faults.stay:
            rtsp.socket.close()

    with Bench() as bench:
        wait_until(lambda: all(each.packets for each in bench.goods), 20, 'the readers play')
        before, memory = held(bench.proxy), rss_kib(bench.proxy)
        threads = [
            threading.Thread(target=work, args=(
                bench, Faults(bench.proxy, f'127.0.{n + 1}.1', random.Random(SEED + n))))
            for n in range(WORKERS)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bench.check()
        took = time.monotonic() - start
        wait_until(lambda: len(bench.proxy.get('/v1/readers')['readers']) == len(bench.goods), 90,
                   'only the good readers are left')
        wait_until(lambda: held(bench.proxy) <= before + SLACK, 30, 'the descriptors are closed')
        assert left[0] == 0 and sum(kinds.values()) == READER_FAULTS, (kinds, refused)
        print(f'# {READER_FAULTS} faults of readers in {took:.0f} s: {dict(kinds)}; tried again: '
              f'{dict(refused)}; {memory} KiB before, {rss_kib(bench.proxy)} KiB after', flush=True)


# ---- the system ----


def cpu(proxy):
    with open(f'/proc/{proxy.pid}/stat', encoding='ascii') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


@test(timeout=90)
def without_descriptors_new_clients_wait_and_readers_play_on():
    with Bench() as bench:
        proxy = bench.proxy
        limits = resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)
        used = max(map(int, os.listdir(f'/proc/{proxy.pid}/fd'))) + 1
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (used + 2, limits[1]))
        packets = [each.packets for each in bench.goods]
        clients = [socket.create_connection(('127.0.0.1', proxy.port), 5) for _ in range(20)]
        before, start = cpu(proxy), time.monotonic()
        wait_until(lambda: all(each.packets > then + 100 for each, then in zip(bench.goods, packets)),
                   60, 'the readers play on')
        load = (cpu(proxy) - before) / (time.monotonic() - start)
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, limits)
        for client in clients:
            client.close()

        def is_served():
            try:
                return proxy_answers(proxy)
            except OSError:
                return False

        wait_until(is_served, 20, 'new clients are served again')
        print(f'# without descriptors, the proxy used {load * 100:.1f} % of a processor', flush=True)
        assert load < 0.5, load


def proxy_answers(proxy):
    with Rtsp(proxy.port, timeout=PATIENCE + 2) as rtsp:
        return rtsp.request('DESCRIBE', proxy.url('/good'))[0] == 200


@test(timeout=90)
def a_full_disk_costs_readers_nothing():
    """a mount whose cache finds no room on its disk plays on from memory"""
    if os.geteuid() != 0:
        raise Skip('a small file system of its own needs root')
    with tempfile.TemporaryDirectory() as folder:
        disk, wrapper = os.path.join(folder, 'disk'), os.path.join(folder, 'wrapper')
        os.mkdir(disk)
        with open(wrapper, 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\n'
                       f'[ "$1" = inside ] || exec unshare --mount -- "$0" inside "$@"\nshift\n'
                       f'mount -t tmpfs -o size=300k none "{disk}" || exit 125\n'
                       f'exec "{program()}" "$@"\n')
        os.chmod(wrapper, 0o755)
        before = os.environ['WEIR_RTSP_PROXY']
        os.environ['WEIR_RTSP_PROXY'] = wrapper
        try:
            bench = Bench(good={'cache': {'time': '30s', 'bytes': '64M', 'spill': disk}})
        finally:
            os.environ['WEIR_RTSP_PROXY'] = before
        with bench:
            bench.proxy.wait_for_line(r' mount /good: the disk of its cache is full', 60)
            packets = [each.packets for each in bench.goods]
            wait_until(lambda: all(each.packets > then + 100
                                   for each, then in zip(bench.goods, packets)), 60, 'all play on')


@test(timeout=90)
def a_step_of_the_wall_clock_costs_readers_nothing():
    """steps of the wall clock by an hour and by ten years cost readers nothing"""
    shim = os.environ.get('WEIR_CLOCK_SHIM')
    if not shim or os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer has the clock functions of its own')
    with tempfile.NamedTemporaryFile() as file:
        def step(seconds):
            file.seek(0)
            file.write(struct.pack('=q', seconds))
            file.flush()

        step(0)
        with Bench({'/udp': {'upstream': f'rtp://127.0.0.1:{free_port()}?encoding-name=H264&payload=96'}},
                   env={'LD_PRELOAD': shim, 'WEIR_CLOCK_FILE': file.name},
                   good={'cache': {'time': '5s', 'bytes': '8M'}}) as bench:
            year = time.gmtime().tm_year
            for seconds in 3600, -3600, 10 * 365 * 86400, -10 * 365 * 86400, 0:
                step(seconds)
                packets = [each.packets for each in bench.goods]
                wait_until(lambda: all(each.packets > then + 50 for each, then in  # pylint: disable=cell-var-from-loop
                                       zip(bench.goods, packets)), 30, 'all play on')
                assert proxy_answers(bench.proxy)
                bench.proxy.get('/v1/readers')
                bench.check()
            bench.proxy.http('DELETE', '/v1/mounts/udp')
            bench.proxy.wait_for_line(r'/udp')
            assert year  # the log has the stepped times; nothing reads them


# ---- the network of an upstream ----

# Packets are sent ten at a time, and those that change places are of one ten, so that the order does
# not depend on the load of the machine.
SCRIPT = ('drop 103-105; drop 155; dup 201-220; dup 405; hold 251 254; hold 301 302; hold 352 356; '
          'hold 353 356; hold 354 359')
LOST, DUPLICATES, PACKETS, BATCH = 4, 21, 600, 10
OUT_OF_PLACE = 3  # most packets at a time that have been overtaken


@test(timeout=90)
def each_packet_of_a_bad_line_is_counted():
    """packets that a line loses, repeats, delays and reorders are counted one by one"""
    port, impairment = free_port(), Impairment(SCRIPT)
    mounts = {'/line': {'upstream': f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96'}}
    got = []
    with Bench(mounts) as bench, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        proxy = bench.proxy
        follower = threading.Thread(target=collect, args=(proxy, got), daemon=True)
        follower.start()
        sent = 0
        for seq in range(PACKETS):
            if seq % BATCH == 0:
                time.sleep(0.02)
            for packet in impairment.take(rtp(seq, seq * 450, KEY_PICTURE), 0):
                sender.sendto(packet, ('127.0.0.1', port))
                sent += 1
        assert sent == PACKETS - LOST + DUPLICATES, sent

        def ingest():
            return proxy.get('/v1/mounts/line')['ingest']

        wait_until(lambda: got and got[-1] == PACKETS - 1, 20, f'the last packet is here: {got[-1:]}')
        # A packet that was overtaken counts as missing until it comes.
        assert ingest()['packets'] == PACKETS - LOST, ingest()
        assert LOST <= ingest()['lost'] <= LOST + OUT_OF_PLACE, ingest()
        # From the first packet that the reader got, it has each one that was not lost, once.
        first, lost = got[0], {102, 103, 104, 154}  # the first packet has the number 0
        assert first < min(lost), first
        assert sorted(got) == [seq for seq in range(first, PACKETS) if seq not in lost], len(got)
    follower.join(5)


def collect(proxy, got):
    """Plays /line until the end. Appends the numbers of the packets, from their timestamps."""
    while not proxy.over.is_set():
        try:
            with Rtsp(proxy.port, timeout=2) as rtsp:
                url = proxy.url('/line')
                if rtsp.request('DESCRIBE', url)[0] != 200:
                    continue
                rtsp.request('SETUP', f'{url}/stream=0',
                             {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})
                rtsp.request('PLAY', url)
                while not proxy.over.is_set():
                    channel, data = rtsp.frame()
                    if channel == 0:
                        got.append(struct.unpack_from('>I', data, 4)[0] // 450)
        except (OSError, AssertionError):
            pass


if __name__ == '__main__':
    run()
