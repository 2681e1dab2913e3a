# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams in worker processes: a crash of one ends neither the proxy nor the other mounts."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager

from control import CLIP_URI, Controlled, Watch
from films import has_bye
from leftovers import check_kills
from proc import Rtsp, free_port, free_udp_pair, thread_names
from proxy import CLIP, Proxy, matches, program, wait_until
from tap import SLOWER, run, test
from tspackets import STREAMS
from workers import LIVE, ON, is_gone, status_of, wait_for_worker, worker_of, workers_of

TWO = {'/cam': {'upstream': CLIP_URI, **ON}, '/live': {'upstream': LIVE, **ON}}


def suspend(pid):
    """Stops a process. Its threads run on until the first of them has seen the signal, so this
    waits until all have stopped."""
    def is_stopped():
        threads = [f'{pid}/task/{thread}' for thread in os.listdir(f'/proc/{pid}/task')]
        try:
            return all(status_of(thread)['State'][0] == 'T' for thread in threads)
        except (FileNotFoundError, ProcessLookupError):
            return False # a thread has just ended

    os.kill(pid, signal.SIGSTOP)
    wait_until(is_stopped, 20, f'process {pid} has stopped')


@test(timeout=120)
def a_crash_ends_the_worker_s_mounts_only():
    with Controlled(TWO) as proxy, Watch(proxy, '/cam') as other, Watch(proxy, '/live') as reader:
        for number in signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL:
            victim, name = wait_for_worker(proxy, 'a launch'), number.name
            untouched = wait_for_worker(proxy, 'file:')
            failed, seen = proxy.metric('workers_failed_total'), len(proxy.lines)
            os.kill(victim, number)
            # ASan handles SIGSEGV itself.
            ended = rf'worker {victim} ended (by {name}|with status 1)'
            proxy.wait_for_line(f' {ended}; it ran 1 job$', start=seen)
            proxy.wait_for_line(f' mount /live down: a launch line: {ended}', start=seen)
            proxy.wait_for_line(r' mount /live up', 20, start=seen)
            reader.take() # with a lost upstream, readers stay
            other.take()
            assert wait_for_worker(proxy, 'a launch', other_than=victim)
            assert worker_of(proxy, 'file:') == untouched
            assert proxy.metric('workers_failed_total') == failed + 1
        assert not matches(proxy, ' mount /cam down')
        assert proxy.metric('workers') == len(workers_of(proxy)) == 2


@test(timeout=60)
def an_assertion_of_a_demuxer_ends_its_worker_only():
    # tsdemux aborts at these packets. A launch line has no guard in front of it.
    port = free_port()
    line = (f'launch:udpsrc address=127.0.0.1 port={port} caps="video/mpegts,systemstream=true" ! '
            'tsdemux ! h264parse ! rtph264pay name=pay0')
    mounts = {'/cam': {'upstream': CLIP_URI, **ON}, '/ts': {'upstream': line, **ON}}
    with Controlled(mounts) as proxy, Watch(proxy) as reader:
        ended = threading.Event()

        def send():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                while not ended.wait(0.1):
                    sender.sendto(b''.join(STREAMS['no time'][:7]), ('127.0.0.1', port))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            proxy.wait_for_line(r' mount /ts down: a launch line: worker \d+ ended by SIG(ABRT|TRAP)',
                                20)
        finally:
            ended.set()
            thread.join()
        reader.take()
        assert not matches(proxy, ' mount /cam down')


@test(timeout=60)
def a_worker_that_hangs_is_killed():
    with Controlled({'/live': {'upstream': LIVE, 'read-timeout': '60s', **ON}}) as proxy:
        victim = wait_for_worker(proxy, 'a launch')
        suspend(victim)
        proxy.wait_for_line(rf' worker {victim} was killed: it did not answer for 5 s', 20)
        assert wait_for_worker(proxy, 'a launch', other_than=victim)
        assert is_gone(victim)


@test(timeout=60)
def a_proxy_that_was_suspended_keeps_its_workers():
    with Controlled({'/live': {'upstream': LIVE, 'read-timeout': '60s', **ON}}) as proxy:
        worker = wait_for_worker(proxy, 'a launch')
        with Watch(proxy, '/live') as reader:
            for pid in proxy.pid, worker:
                suspend(pid)
            time.sleep(6) # longer than a worker may be silent
            # The worker later, so that nothing from it waits when the proxy goes on.
            proxy.signal(signal.SIGCONT)
            time.sleep(1)
            os.kill(worker, signal.SIGCONT)
            reader.take()
        assert worker_of(proxy, 'a launch') == worker
        assert not matches(proxy, 'was killed')


@test(timeout=60)
def a_worker_that_does_not_close_its_upstream_is_killed():
    with Controlled({'/live': {'upstream': LIVE, 'linger': '200ms'}}) as proxy:
        with Watch(proxy, '/live'):
            victim = wait_for_worker(proxy, 'a launch')
            suspend(victim)
        proxy.wait_for_line(rf' worker {victim} was killed: it did not close a job|'
                            rf' worker {victim} was killed: it did not answer', 30)
        with Watch(proxy, '/live') as reader:
            reader.take()


@test(timeout=60)
def workers_have_no_privileges():
    with Controlled(TWO) as proxy:
        offline, online = wait_for_worker(proxy, 'file:'), wait_for_worker(proxy, 'a launch')
        for pid in offline, online:
            status = status_of(pid)
            assert status['NoNewPrivs'] == '1' and int(status['CapEff'], 16) == 0, status
            assert int(status['CapPrm'], 16) == int(status['CapAmb'], 16) == 0, status
            assert status['Seccomp'] == '2', status
        assert offline != online


@test(timeout=60)
def workers_get_no_secrets_in_their_environment():
    secret = 'S3cr3tCanary'
    with Controlled(TWO, env={'API_TOKEN': secret}, **{'api-token-env': 'API_TOKEN',
                                                      'api': 'off'}) as proxy:
        proxy.wait_for_line(' mount /cam up')
        for pid in workers_of(proxy):
            try:
                with open(f'/proc/{pid}/environ', encoding='latin1') as file:
                    words = file.read()
            except PermissionError:
                continue # so has nobody else who could read it
            assert secret not in words and 'PATH=' in words, words


@test(timeout=60)
def upstreams_share_workers_beyond_the_limit():
    mounts = {f'/{n}': {'upstream': LIVE.replace('=64', f'={64 + 16 * n}'), **ON} for n in range(3)}
    with Controlled(mounts, workers=1) as proxy:
        for path in mounts:
            proxy.wait_for_line(f' mount {path} up')
        only = workers_of(proxy)
        assert len(only) == 1, only
        seen = len(proxy.lines)
        os.kill(min(only), signal.SIGKILL)
        proxy.wait_for_line(r' worker \d+ ended by SIGKILL; it ran 3 jobs', start=seen)
        for path in mounts:
            proxy.wait_for_line(f' mount {path} up', 20, start=seen)
        assert len(workers_of(proxy)) == 1


@test(timeout=60)
def workers_end_with_the_proxy():
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
        with Controlled(TWO) as proxy:
            for label in 'file:', 'a launch':
                wait_for_worker(proxy, label)
            workers = workers_of(proxy)
            proxy.signal(number)
            assert proxy.wait() == (-number if number == signal.SIGKILL else 0)
            wait_until(lambda pids=workers: all(map(is_gone, pids)), 5, 'the workers have ended')


@test(timeout=60)
def isolate_says_what_runs_in_workers():
    with Controlled({'/cam': {'upstream': CLIP_URI, **ON}}) as camera:
        mounts = {'/rtsp': {'upstream': camera.url('/cam'), **ON},
                  '/file': {'upstream': CLIP_URI, **ON}}
        for isolate, number in ('no', 0), ('auto', 1), ('yes', 2):
            with Controlled(mounts, isolate=isolate) as proxy, Watch(proxy, '/rtsp') as reader:
                proxy.wait_for_line(' mount /file up')
                reader.take()
                assert len(workers_of(proxy)) == proxy.metric('workers') == number, isolate


@test(timeout=60)
def workers_get_the_options_of_gstreamer():
    words = ['--gst-debug-no-color', '--gst-debug', 'tsdemux:2', '--gst-plugin-path=/nowhere']
    with Proxy({'/cam': {'upstream': CLIP_URI, **ON}}, *words) as proxy:
        proxy.wait_for_line(' mount /cam up')
        worker, = workers_of(proxy)
        with open(f'/proc/{worker}/cmdline', encoding='ascii') as file:
            assert file.read().split('\0') == ['rtsp-proxy-worker', 'demux', *words, '']


@test(timeout=60)
def a_worker_is_nothing_for_users():
    done = subprocess.run(['rtsp-proxy-worker', 'pull'], executable=program(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLOWER,
                          check=False)
    assert done.returncode == 1 and 'is started by rtsp-proxy only' in done.stderr, done


# ---- stored titles ----


@contextmanager
def films(**settings):
    """A proxy with a live stream at /live and a folder of one film at /films."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CLIP, os.path.join(folder, 'film.mp4'))
        mounts = {'/live': {'upstream': LIVE, **ON}, '/films': {'upstream': f'file://{folder}/'}}
        with Controlled(mounts, **settings) as proxy:
            proxy.wait_for_line(' mount /live up')
            yield proxy


def worker_of_titles(proxy):
    """Returns the only worker that has no network and no upstream."""
    found = []

    def is_there():
        found[:] = workers_of(proxy) - {worker_of(proxy, 'a launch')}
        return len(found) == 1

    wait_until(is_there, 20, 'one worker for titles')
    return found[0]


def read_to_the_end(reader, tracks=2):
    """Reads until each track has sent its BYE."""
    ended = set()
    while len(ended) < tracks:
        channel, data = reader.frame()
        if channel % 2 and has_bye(data):
            ended.add(channel)


@test(timeout=120)
def a_crash_ends_the_titles_of_its_worker_only():
    with films(workers=1) as proxy, Watch(proxy, '/live') as other:
        for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL:
            with ExitStack() as stack:
                readers = [stack.enter_context(Watch(proxy, '/films/film.mp4')) for _ in range(3)]
                victim, seen = worker_of_titles(proxy), len(proxy.lines)
                os.kill(victim, number)
                ended = rf'worker {victim} ended (by {number.name}|with status 1)'
                proxy.wait_for_line(f' {ended}; it ran 3 titles$', start=seen)
                for reader in readers:
                    read_to_the_end(reader)
                wait_until(lambda start=seen, text=ended: len(matches(
                    proxy, f' /films/film.mp4: {text}$', start)) == 3, 10, 'each title is logged')
                for reader in readers:
                    # The title cannot be played on, but the session is in order.
                    url = proxy.url('/films/film.mp4')
                    assert reader.request('PLAY', url, {'Range': 'npt=1-'})[0] >= 400
                    assert reader.request('TEARDOWN', url)[0] == 200
            other.take()
            with Watch(proxy, '/films/film.mp4') as reader:
                reader.take()
            assert worker_of_titles(proxy) != victim
        assert not matches(proxy, ' mount /live down')


@test(timeout=120)
def a_title_whose_worker_hangs_ends():
    with films(workers=1) as proxy, Watch(proxy, '/live') as other:
        with Watch(proxy, '/films/film.mp4') as reader:
            victim = worker_of_titles(proxy)
            suspend(victim)
            proxy.wait_for_line(rf' /films/film.mp4: worker {victim} was killed: '
                                'it did not answer for 5 s', 20)
            read_to_the_end(reader)
        with Watch(proxy, '/films/film.mp4') as reader:
            victim = worker_of_titles(proxy)
            suspend(victim)
            reader.socket.settimeout(30)
            url = proxy.url('/films/film.mp4')
            assert reader.request('PLAY', url, {'Range': 'npt=1-'})[0] >= 400
        wait_until(lambda: is_gone(victim), 20, 'the worker is killed')
        other.take()
        with Watch(proxy, '/films/film.mp4') as reader:
            reader.take()


def reads(worker):
    return any('demux' in name for name in thread_names(worker).values())


@test(timeout=60)
def a_title_that_is_closed_leaves_no_work_in_its_worker():
    with films(workers=1) as proxy:
        with Watch(proxy, '/films/film.mp4') as reader:
            reader.take()
            worker = worker_of_titles(proxy)
            assert reads(worker)
        # GLib keeps up to two threads for the next title.
        wait_until(lambda: not reads(worker) and len(thread_names(worker)) <= 4, 10,
                   'the threads of the title have ended')
        assert worker_of_titles(proxy) == worker
        with Watch(proxy, '/films/film.mp4'):
            victim = worker_of_titles(proxy)
            suspend(victim)
        proxy.wait_for_line(rf' worker {victim} was killed: it did not close a title within 5 s', 20)
        with Watch(proxy, '/films/film.mp4') as reader:
            reader.take()


def threads_in_use(proxy):
    """Returns the number of threads of the proxy and its workers, but for those that GLib keeps."""
    def count():
        time.sleep(0.1)
        return sum(name != 'pool-rtsp-proxy' for pid in {proxy.pid, *workers_of(proxy)}
                   for name in thread_names(pid).values())

    return min(count() for _ in range(15)) # without those that only start a title


@contextmanager
def udp_reader(proxy, path):
    """A playing reader over UDP, with both tracks."""
    with Rtsp(proxy.port) as rtsp, ExitStack() as stack:
        url = proxy.url(path)
        assert rtsp.request('DESCRIBE', url)[0] == 200
        for track in range(2):
            rtp, rtcp = map(stack.enter_context, free_udp_pair())
            ports = f'{rtp.getsockname()[1]}-{rtcp.getsockname()[1]}'
            assert rtsp.request('SETUP', f'{url}/stream={track}', {
                'Transport': f'RTP/AVP;unicast;client_port={ports}'})[0] == 200
        assert rtsp.request('PLAY', url)[0] == 200
        yield


@test(timeout=60)
def a_title_costs_few_threads():
    with films(workers=1) as proxy, ExitStack() as stack:
        for reader in Watch, udp_reader:
            stack.enter_context(reader(proxy, '/films/film.mp4'))
            before = threads_in_use(proxy)
            for _ in range(5):
                stack.enter_context(reader(proxy, '/films/film.mp4'))
            # One for each of the two tracks, and one that reads the file. A shared one may start.
            after = threads_in_use(proxy)
            assert after < before + 5 * 4, (before, after)


@test(timeout=60)
def workers_of_titles_have_no_privileges_and_no_network():
    with films() as proxy, Watch(proxy, '/films/film.mp4'):
        pids = workers_of(proxy) - {worker_of(proxy, 'a launch')}
        assert len(pids) == 2, pids # one is ready for the next title
        for pid in pids:
            # The spare one may still be starting.
            wait_until(lambda pid=pid: status_of(pid)['Seccomp'] == '2', 10, 'the sandbox')
            status = status_of(pid)
            assert status['NoNewPrivs'] == '1' and int(status['CapEff'], 16) == 0, status
            with open(f'/proc/{pid}/cmdline', encoding='ascii') as file:
                assert file.read().split('\0')[1] == 'title'


@test(timeout=600)
def killed_workers_of_titles_leave_nothing_in_the_proxy():
    with films(workers=6) as proxy:
        live = worker_of(proxy, 'a launch')

        def kill():
            seen = len(proxy.lines)
            with ExitStack() as stack:
                for _ in range(6):
                    stack.enter_context(Watch(proxy, '/films/film.mp4'))
                victims = workers_of(proxy) - {live}
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)
                wait_until(lambda: len(matches(proxy, ' /films/film.mp4: worker', seen)) == 6, 20,
                           'each title is logged')
            wait_until(lambda: not proxy.get('/v1/readers')['readers'], 20, 'all readers are out')
            return len(victims)

        check_kills(proxy.pid, kill)


if __name__ == '__main__':
    run(at_once=4)
