# SPDX-License-Identifier: LGPL-2.1-or-later
"""schedulesrc receives titles that the proxy broadcasts: every frame, at random arrivals, with late
joins, losses and a restart of the server; and another proxy serves such a title to ordinary players.
The multicast stays in a network of this process."""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import lru_cache

from control import Controlled
from films import ffmpeg, pictures
from multicast import dropping, enter_network
from proc import Proc, Rtsp, free_port
from sanitized import environment
from schedule_server import Server, Title
from tap import Skip, run, test

SECONDS = 8
GROUPS = '239.77.0.0/16'
MS = 1000000  # ns
PATIENCE = 60
ROOM = 400 * MS  # latency with which a busy machine loses nothing
SCHEMES = {'gdb': {'scheme': 'gdb', 'first': '1s'},
           'staggered': {'scheme': 'staggered', 'first': '2s'},
           'patching': {'scheme': 'patching', 'threshold': '6s'}}


HAS_NETWORK = enter_network()


@lru_cache
def clip():
    """Returns a folder with a clip that has reordered frames and sound."""
    directory = tempfile.TemporaryDirectory()
    ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=320x180:r=25:d={SECONDS}', '-f', 'lavfi', '-i',
           f'sine=r=48000:d={SECONDS}', '-c:v', 'libx264', '-bf', '2', '-g', '50', '-b:v', '600k',
           '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-ac', '1',
           os.path.join(directory.name, 'a.mp4'))
    return directory


def path():
    return os.path.join(clip().name, 'a.mp4')


@lru_cache
def frames():
    return pictures(['-i', path()])


@lru_cache
def title():
    return Title(path(), clip().name)


def mounts():
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    return {f'/{name}': {'upstream': f'file://{clip().name}/', 'broadcast': {
        'groups': f'239.77.{i}.0/28', 'iface': 'lo', 'ttl': 0, **keys}}
        for i, (name, keys) in enumerate(SCHEMES.items())}


class Receiver(Proc):
    """A client that keeps what schedulesrc gives."""

    def __init__(self, url, folder, **properties):
        self.file = os.path.join(folder, f'{random.random()}.mkv')
        options = [f'{key.replace("_", "-")}={value}' for key, value in properties.items()]
        super().__init__(
            'gst-launch-1.0', 'matroskamux', 'name=m', '!', 'filesink', f'location={self.file}',
            'schedulesrc', f'location={url}', *options, 'name=s', 's.', '!',
            'application/x-rtp,media=video', '!', 'rtph264depay', '!', 'h264parse', '!', 'queue',
            '!', 'm.', 's.', '!', 'application/x-rtp,media=audio', '!', 'rtpmp4gdepay', '!',
            'aacparse', '!', 'queue', '!', 'm.',
            env={**(environment() or os.environ), 'GST_DEBUG': 'schedulesrc:4', 'GST_DEBUG_NO_COLOR': '1'})

    def expect_all_frames(self):
        """Waits for the end, and returns the statistics."""
        ends = self.wait_for_line(r'ends: application/x-weir-schedulesrc-stats, (.*);',
                                  timeout=PATIENCE)[1]
        assert self.wait(PATIENCE) == 0, self.lines
        stats = {key: float(value) for key, value in re.findall(r'([\w-]+)=\(\w+\)([\d.]+)', ends)}
        got = pictures(['-i', self.file])
        assert got == frames(), (len(got), len(frames()), stats)
        assert stats['lost'] == 0 and stats['in-time'] + stats['late'] == stats['packets'], stats
        return stats

    def expect_error(self, pattern):
        self.wait_for_line(r'ERROR.*schedulesrc: .*' + pattern, timeout=PATIENCE)
        assert self.wait(PATIENCE) != 0


def url_of(proxy, scheme):
    return f'rtsp-schedule://127.0.0.1:{proxy.port}/{scheme}/a.mp4'


@test
def every_frame_comes_for_arrivals_at_random_times():
    seed = int(os.environ.get('WEIR_SEED', random.randrange(1 << 30)))
    print(f'# WEIR_SEED={seed}')
    draw = random.Random(seed)
    with ExitStack() as stack:
        proxy = stack.enter_context(Controlled(mounts()))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        clients = []
        for _ in range(2):
            clients += [(scheme, stack.enter_context(Receiver(
                url_of(proxy, scheme), folder, latency=ROOM, buffer_size=50000)))
                        for scheme in SCHEMES]
            time.sleep(draw.uniform(0, 3))  # an arrival is a time of the clock
        for scheme, client in clients:
            stats = client.expect_all_frames()
            assert stats['group-bytes'] > stats['unicast-bytes'], (scheme, stats)
            if scheme == 'gdb':
                assert stats['file-max'] > 0 and stats['memory-max'] <= 60000 + 20000, stats


@test
def a_fifth_of_the_packets_on_groups_is_repaired():
    with (Controlled(mounts()) as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUPS, 'numgen random mod 100 lt 20'),
          Receiver(url_of(proxy, 'gdb'), folder, latency=ROOM) as client):
        stats = client.expect_all_frames()
        assert stats['group-missed'] > stats['packets'] / 8, stats
        assert stats['repaired'] == stats['group-missed'], stats
        assert stats['unicast-bytes'] < title().bytes / 4, stats


@test
def groups_that_come_late_cost_only_unicast():
    with (Controlled(mounts()) as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUPS) as end, Receiver(url_of(proxy, 'gdb'), folder, latency=ROOM) as client):
        proxy.wait_for_line(r'packetized')
        client.wait_for_line('Redistribute latency', timeout=PATIENCE)  # it plays
        end()
        stats = client.expect_all_frames()
        assert stats['unicast-bytes'] > 0 and stats['group-bytes'] > 0, stats


@test
def a_client_goes_on_after_the_server_was_restarted():
    port = free_port()
    settings = {'listen': f'127.0.0.1:{port}'}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        with Controlled(mounts(), **settings) as proxy:
            client = stack.enter_context(
                Receiver(url_of(proxy, 'gdb'), folder, latency=ROOM))
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
            proxy.wait_for_line(r'packetized')
        with Controlled(mounts(), **settings):
            stats = client.expect_all_frames()
            assert stats['reconnects'] > 0 and stats['unicast-bytes'] > 0, stats
            # The new server's groups bring what they send before it is due.
            assert any('goes on with' in line and 'with 0' not in line for line in client.lines)


@test
def another_proxy_serves_a_broadcast_title_to_players():
    with Controlled(mounts()) as proxy, Controlled({'/film': {
            'upstream': url_of(proxy, 'gdb'), 'connect-timeout': '20s'}}) as edge:
        got = pictures(['-rtsp_transport', 'tcp', '-i', edge.url('/film'), '-t', '5', '-vsync',
                        'passthrough'])
        first = frames().index(got[0])
        assert len(got) > 100 and got == frames()[first:first + len(got)], (first, len(got))


def load(*words, status=0):
    done = subprocess.run([os.environ['WEIR_RTSP_LOAD'], '--scheme', *words], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


@test
def rtsp_load_follows_schedules_with_many_clients():
    with Controlled(mounts(), limits={'connections-per-address': 0}) as proxy:
        url = proxy.url('/gdb/a.mp4')
        result = json.loads(load('-n', '20', '-d', '40', '--arrivals', 'poisson:10', '--json',
                                 url).stdout)
        assert result['done'] == 20 and result['lost'] == 0, result
        assert result['in_time'] + result['late'] == result['packets'] > 20 * 200, result
        assert result['packets'] % 20 == 0, result
        assert result['unicast_share'] < 10 and result['groups_max'] > 1, result
        assert '404' in load('-d', '5', proxy.url('/gdb/none.mp4'), status=1).stderr
        assert '--scheme goes with' in load('--slow', '1', '-n', '2', url, status=2).stderr


# ---- servers that refuse, and strangers ----

@contextmanager
def refusing(folder, refusal=None, change=lambda sdp: sdp, prepare_s=0, **properties):
    port = free_port()
    with Server(title(), 100, port, groups=None) as server:
        server.refusal, server.change, server.prepare_s = refusal, change, prepare_s
        with Receiver(f'rtsp-schedule://127.0.0.1:{port}/a', folder, **properties) as client:
            yield server, client


@test
def refusals_are_told_with_the_server_s_reason():
    cases = (
        ({'refusal': ('453 Not Enough Bandwidth', 'too few groups\r\n')},
         '453 Not Enough Bandwidth: too few groups'),
        ({'prepare_s': 100, 'timeout': 1500 * MS}, '503 Service Unavailable: being prepared'),
        ({'change': lambda sdp: re.sub('a=x-weir.*\r\n', '', sdp)}, 'does not broadcast'),
        ({'change': lambda sdp: sdp.replace('scheme=gdb', 'scheme=gdb7')},
         'not valid: line 5: scheme is not a word'),
        ({'change': lambda sdp: sdp.replace('a=rtpmap:96 H264/90000', 'a=x')}, 'format'))
    with tempfile.TemporaryDirectory() as folder:
        for options, expected in cases:
            with refusing(folder, **options) as (_, client):
                client.expect_error(expected)


@test
def a_title_that_is_being_prepared_is_waited_for():
    with tempfile.TemporaryDirectory() as folder, \
            refusing(folder, prepare_s=1.5, latency=ROOM) as (server, client):
        client.expect_all_frames()
        assert server.unicast >= sum(map(len, title().packets)), server.unicast


@test
def a_title_that_changes_on_the_server_ends_with_an_error():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        with Server(title(), 100, port, groups=None):
            client = stack.enter_context(Receiver(f'rtsp-schedule://127.0.0.1:{port}/a', folder))
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
        with Server(title(), 100, port, groups=None, identity='0a1c'):
            client.expect_error('the title has changed')


@test
def a_title_that_is_replaced_on_the_disk_ends_with_an_error():
    """the client asks for single packets, and learns that they are of another title"""
    with tempfile.TemporaryDirectory() as folder:
        film = os.path.join(folder, 'a.mp4')
        shutil.copy(path(), film)
        settings = {'/patching': {**mounts()['/patching'], 'upstream': f'file://{folder}/'}}
        with (Controlled(settings) as proxy, dropping(GROUPS),
              Receiver(url_of(proxy, 'patching'), folder) as client):
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
            ffmpeg('-y', '-i', path(), '-c', 'copy', '-t', '6', film)
            deadline = time.monotonic() + PATIENCE
            # Another client comes: the proxy looks at the disk then, once a second at most.
            while not any('the title has changed' in line for line in proxy.lines):
                assert time.monotonic() < deadline
                with Rtsp(proxy.port) as rtsp:
                    rtsp.request('DESCRIBE', proxy.url('/patching/a.mp4'),
                                 {'Supported': 'x-weir-schedule'})
                time.sleep(0.05)
            client.expect_error('the title has changed')


if __name__ == '__main__':
    run()
