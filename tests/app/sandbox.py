# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a worker process may do, as tried by code that runs in it (sandbox-probe.c)."""

import contextlib
import ctypes
import os
import shutil
import socket
import tempfile
import threading

from control import CLIP_URI, Controlled, Watch, config
from proc import free_port
from proxy import CLIP, matches, wait_until
from tap import Skip, run, test
from webserver import WebServer
from workers import LIVE, ON, status_of, wait_for_kind, workers_of

REFUSED = {'EPERM', 'EACCES', 'ENOSYS', 'EXDEV'}
CHANGES = {'create', 'write', 'read-write', 'unnamed', 'truncate', 'chmod', 'chown', 'setxattr', 'symlink',
           'link', 'mkdir', 'mkfifo', 'rename', 'unlink'}
WRITES = {'write', 'read-write', 'survive'}
OTHERS = {'memory', 'environment', 'survive', 'execute', 'signal'}
CONNECTS = {'connect', 'connect-later', 'connect-mapped', 'connect-any', 'connect-fast'}
SECRET = 'camera password\n'
LANDLOCK_CREATE_RULESET = 444 # on all systems


def has_landlock():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1) > 0


@contextlib.contextmanager
def probed(mounts, **settings):
    """Runs a proxy whose workers try what is forbidden. Yields it, and a function that returns
    {attempt: result} of its worker of a kind."""
    probe = os.environ.get('WEIR_SANDBOX_PROBE')
    if not probe or os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer must be the first library')
    with tempfile.TemporaryDirectory() as folder, socket.create_server(('127.0.0.1', 0)) as other:
        secret, api = os.path.join(folder, 'secret'), free_port()
        for path in secret, os.path.join(folder, 'old'):
            with open(path, 'w', encoding='ascii') as file:
                file.write(SECRET)
        env = {'LD_PRELOAD': probe, 'WEIR_PROBE_FOLDER': folder,
               'WEIR_PROBE_READ': f'/etc/shadow:{secret}:{os.path.realpath(__file__)}',
               'WEIR_PROBE_PORTS': f'{api}:{other.getsockname()[1]}'}
        with Controlled(mounts, env=env, api=f'127.0.0.1:{api}', **settings) as proxy:

            def results(kind):
                pid = wait_for_kind(proxy, kind)
                proxy.wait_for_line(rf' worker {pid}: probe ended$', 30)
                return dict(line.groups() for line in
                            matches(proxy, rf' worker {pid}: probe (.*): (\w+)$'))

            yield proxy, results
        assert sorted(os.listdir(folder)) == ['old', 'secret'], os.listdir(folder)
        with open(os.path.join(folder, 'old'), encoding='ascii') as file:
            assert file.read() == SECRET


def check(found, has_devices=False):
    """Checks that all attempts were made, and refused. Without Landlock, a worker reads files; and one
    that has devices, which it opens for writing, writes into those that are there."""
    reads = {name for name in found if name.startswith('read /')}
    assert len(reads) == 3, found
    assert {name.split()[0] for name in found} - {'read'} == CHANGES | OTHERS | CONNECTS, found
    done = {name: result for name, result in found.items() if result not in REFUSED
            and (has_landlock() or name not in reads | (WRITES if has_devices else set()))}
    assert not done, done


@test
def a_worker_of_a_file_opens_no_other_and_connects_to_nobody():
    with probed({'/cam': {'upstream': CLIP_URI, **ON}}) as (proxy, results), Watch(proxy) as reader:
        reader.take()
        check(results('demux'))


@test
def a_worker_of_titles_opens_none_and_connects_to_nobody():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CLIP, os.path.join(folder, 'film.mp4'))
        with probed({'/films': {'upstream': f'file://{folder}/'}}) as (proxy, results), \
                Watch(proxy, '/films/film.mp4') as reader:
            reader.take()
            check(results('title'))


@test
def a_worker_of_a_stage_opens_no_file_and_connects_to_nobody():
    mount = {'upstream': CLIP_URI, 'choices': {'transcode': ['size']}}
    with probed({'/cam': mount}) as (proxy, results), Watch(proxy, '/cam?size=128x96') as reader:
        reader.take()
        check(results('stage'), has_devices=True)


STAGE = '---\nsummary: a name that is a path\nmedia: video\ntakes: raw\ngives: raw\n---\nidentity name="%s"\n'


@test
def a_worker_of_a_stage_opens_what_the_texts_of_stages_name():
    """a worker of a stage opens what the stage files of the configuration name, not those of one that was refused"""
    mount = {'upstream': CLIP_URI, 'pipeline': ['pull', 'decode', 'used', 'transcode']}
    with tempfile.TemporaryDirectory() as used, tempfile.TemporaryDirectory() as wrong:
        for folder, path in (used, '/etc/shadow'), (wrong, os.path.realpath(__file__)):
            with open(os.path.join(folder, 'used.launch'), 'w', encoding='ascii') as file:
                file.write(STAGE % path)
        with probed({'/cam': mount}, stages=used) as (proxy, results):
            assert 'not reloaded' in proxy.hang_up(config({'/cam': mount, 'x': {}}, stages=wrong))
            with Watch(proxy) as reader:
                reader.take()
                found = results('stage')
    if has_landlock():
        assert found.pop('read /etc/shadow') == 'done', found
        found['read /'] = 'EACCES'
    check(found, has_devices=True)


@test
def a_worker_of_a_launch_line_opens_only_the_files_and_ports_that_it_names():
    with tempfile.TemporaryDirectory() as folder:
        clip = os.path.join(folder, 'a clip.mp4')
        shutil.copy(CLIP, clip)
        line = (f'launch:filesrc location="{clip}" ! qtdemux ! queue ! h264parse ! '
                'rtph264pay name=pay0')
        with probed({'/cam': {'upstream': line, **ON}}) as (proxy, results), Watch(proxy) as reader:
            reader.take()
            check(results('launch'), has_devices=True)


@test
def a_worker_of_a_web_stream_opens_no_file_and_connects_to_no_other_local_port():
    with open(CLIP, 'rb') as file:
        clip = file.read()
    with WebServer(lambda path, body: (200, clip)) as server, \
            probed({'/cam': {'upstream': f'{server.base}/clip.mp4', **ON}}) as (proxy, results), \
            Watch(proxy) as reader:
        reader.take()
        check(results('pull'))
        proxy.wait_for_line(r' worker \d+ refused: it connects to 127\.0\.0\.1:\d+, which is on this machine')


class Endless(threading.Thread):
    """An HTTP server with a playlist that does not end."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(('127.0.0.1', 0))
        self.port = self.server.getsockname()[1]
        self.start()

    def run(self):
        part = b'#EXTINF:1,\nsegment.ts\n' * 5000
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.server.accept()
                threading.Thread(target=self.answer, args=(peer, part), daemon=True).start()

    @staticmethod
    def answer(peer, part):
        with contextlib.suppress(OSError):
            peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\n\r\n#EXTM3U\n#EXT-X-TARGETDURATION:1\n')
            while True:
                peer.sendall(part)


def most_memory(pid):
    """Returns the most that a process has had in memory, in KiB."""
    return int(status_of(pid)['VmHWM'].split()[0])


@test
def a_playlist_that_does_not_end_is_given_up():
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer keeps memory that was freed')
    server = Endless()
    with Controlled({'/cam': {'upstream': f'http://127.0.0.1:{server.port}/live.m3u8', **ON}}) as proxy:
        seen = 0
        for _ in range(2):
            down = r' mount /cam down: .*: the playlist has more than 8 MiB; next try in ([\d.]+) s'
            line = proxy.wait_for_line(down, 20, start=seen)
            seen = len(proxy.lines)
        assert float(line[1]) > 0
        workers = workers_of(proxy)
        assert workers and max(map(most_memory, workers)) < 200 * 1024, workers
    server.server.close()


def get_limits(pid):
    with open(f'/proc/{pid}/limits', encoding='ascii') as file:
        return {line[:26].strip(): line[26:].split()[0] for line in file}


def get_score(pid):
    with open(f'/proc/{pid}/oom_score_adj', encoding='ascii') as file:
        return int(file.read())


@test
def workers_have_little_memory_and_end_before_the_proxy_where_it_runs_out():
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer needs terabytes')
    with Controlled({'/cam': {'upstream': CLIP_URI, **ON}, '/live': {'upstream': LIVE, **ON}}) as proxy:
        for kind, mib in ('demux', 1024), ('launch', 8192):
            pid = wait_for_kind(proxy, kind)
            wait_until(lambda pid=pid, mib=mib: get_limits(pid)['Max data size'] == str(mib << 20), 10,
                       'the limit of memory')
            assert get_score(pid) == min(get_score(proxy.pid) + 500, 1000)


if __name__ == '__main__':
    run()
