# SPDX-License-Identifier: LGPL-2.1-or-later
"""schedulesrc receives titles that the proxy broadcasts: every frame, at random arrivals, with late
joins, losses and a restart of the server; and another proxy serves such a title to ordinary players.
The multicast stays in a network of this process."""

import hashlib
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
from proxy import program, wait_until
from sanitized import environment
from schedule_server import Server, Title
from tap import Skip, run, test

PIPELINES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../pipelines')
SECONDS = 8
GROUPS = '239.77.0.0/16'
MS = 1000000  # ns
PATIENCE = 60
ROOM = 1000 * MS  # latency with which a busy machine loses nothing
AGES = 3000 * MS  # latency with which a title does not end before something else happens
SCHEMES = {'gdb': {'scheme': 'gdb', 'first': '1s'},
           'skyscraper': {'scheme': 'skyscraper', 'first': '250ms'},
           'staggered': {'scheme': 'staggered', 'first': '2s'},
           'patching': {'scheme': 'patching', 'threshold': '6s'}}


HAS_NETWORK = enter_network()
PLAYBACK = [{'action': 'playback'}]
VIEWER = [{'name': 'viewer', 'digest': ['MD5:' + hashlib.md5(b'viewer:rtsp-proxy:secret').hexdigest()],
           'permissions': PLAYBACK},
          {'name': 'any', 'networks': ['127.0.0.0/8'], 'permissions': [{'action': 'metrics'}]}]


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


@test(timeout=180)
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
                        for scheme in ('gdb', 'staggered', 'patching')]
            time.sleep(draw.uniform(0, 2))  # an arrival is a time of the clock
        for scheme, client in clients:
            stats = client.expect_all_frames()
            assert stats['group-bytes'] > 0, (scheme, stats)
            if scheme == 'gdb':
                assert stats['file-max'] > 0 and stats['memory-max'] <= 60000 + 20000, stats


@test
def a_fifth_of_the_packets_on_groups_is_repaired():
    with (Controlled(mounts()) as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUPS, 'numgen inc mod 5 0'),
          Receiver(url_of(proxy, 'gdb'), folder, latency=ROOM) as client):
        stats = client.expect_all_frames()
        assert stats['group-missed'] > stats['packets'] / 8, stats
        assert stats['repaired'] == stats['group-missed'], stats
        # What a busy machine delays is asked for too, but nothing that came.
        share = (stats['group-missed'] + stats['duplicates']) / stats['packets'] + 0.05
        assert stats['unicast-bytes'] < title().bytes * share, (stats, share)


@test
def groups_that_come_late_cost_only_unicast():
    with (Controlled(mounts()) as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUPS, f'quota until {title().bytes // 10} bytes'),
          Receiver(url_of(proxy, 'gdb'), folder, latency=ROOM) as client):
        stats = client.expect_all_frames()
        assert stats['unicast-bytes'] > 0 and stats['group-bytes'] > 0, stats


# ---- connections that the proxy closes ----

# The proxy closes each connection before the client's next request for packets.
FORGETS = {'no-session-timeout': '100ms', 'connections-per-address': 0}
LOSSES = 'numgen inc mod 200 < 12'  # 12 packets in a row, more than a second apart


def admitted(proxy, scheme='patching'):
    """Returns the number of clients that were admitted."""
    page = proxy.get('/metrics').decode()
    found = re.search(rf'weir_broadcast_admitted_total{{mount="/{scheme}"}} (\d+)', page)
    return int(found[1])


def closed(proxy):
    return int(re.search(r'weir_refusals_total{reason="idle"} (\d+)',
                         proxy.get('/metrics').decode())[1])


@test(timeout=180)
def a_closed_connection_is_opened_again_without_a_new_viewer():
    for more in {}, {'users': VIEWER}:
        with ExitStack() as stack:
            proxy = stack.enter_context(Controlled(mounts(), limits=FORGETS, **more))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(dropping(GROUPS, LOSSES))
            who = {'user_id': 'viewer', 'user_pw': 'secret'} if more else {}
            clients = [stack.enter_context(
                Receiver(url_of(proxy, 'patching'), folder, latency=ROOM, **who)) for _ in range(3)]
            for client in clients:
                stats = client.expect_all_frames()
                assert stats['reconnects'] == 0 and stats['repaired'] > 0, stats
                # The rest of the title would be most of it.
                assert stats['unicast-bytes'] < title().bytes / 3, (stats, title().bytes)
            assert admitted(proxy) == 3, admitted(proxy)
            assert closed(proxy) > 3, closed(proxy)


@test(timeout=180)
def rtsp_load_opens_closed_connections_again():
    for more in {}, {'users': VIEWER}:
        with Controlled(mounts(), limits=FORGETS, **more) as proxy, dropping(GROUPS, LOSSES):
            who = ['--user', 'viewer', '--password', 'secret'] if more else []
            result = json.loads(load('-n', '10', '-d', '40', '--arrivals', 'poisson:20', '--json', *who,
                                     proxy.url('/patching/a.mp4')).stdout)
            assert result['done'] == 10 and result['failed'] == 0, result
            assert result['repaired'] > 0 and result['unicast_share'] < 40, result
            assert admitted(proxy) == 10 and closed(proxy) > 10, (admitted(proxy), closed(proxy))


@test(timeout=180)
def a_client_goes_on_after_the_server_was_restarted():
    port = free_port()
    settings = {'listen': f'127.0.0.1:{port}'}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        with Controlled(mounts(), **settings) as proxy:
            client = stack.enter_context(
                Receiver(url_of(proxy, 'skyscraper'), folder, latency=ROOM))
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
        with Controlled(mounts(), **settings):
            stats = client.expect_all_frames()
            assert stats['reconnects'] > 0 and stats['unicast-bytes'] > 0, stats
            # The new server's groups bring what they send before it is due. A segment that is due
            # later than its period is always among that.
            assert any('goes on with' in line and 'with 0' not in line for line in client.lines)


@test
def a_server_that_has_begun_anew_is_asked_for_its_schedule():
    """the answer to a request for packets tells that the server has begun anew, also if the connection
    does not"""
    port = free_port()
    with (tempfile.TemporaryDirectory() as folder, Server(title(), 100, port, groups=None) as server,
          Receiver(f'rtsp-schedule://127.0.0.1:{port}/a', folder, latency=ROOM) as client):
        wait_until(lambda: len(server.requests) > 3, PATIENCE, 'the client asks for packets')
        server.run = 'two'
        stats = client.expect_all_frames()
        described = [head for head, _ in server.requests if head.startswith('DESCRIBE')]
        assert len(described) == 2 and stats['reconnects'] == 1, (described, stats)


def undisturbed(measure):
    """Returns what `measure` returns with a first value of 0, the packets that were lost: a busy
    machine can delay packets by more than the 40 ms for which these clients wait."""
    for _ in range(4):
        lost, result = measure()
        if lost == 0:
            return result
        print(f'# {lost} packets were late; once more')
    raise AssertionError(f'{lost} packets lost')


@test(timeout=180)
def another_proxy_serves_a_broadcast_title_to_players():
    with Controlled(mounts()) as proxy:
        def play():
            with Controlled({'/film': {'upstream': url_of(proxy, 'gdb'),
                                       'connect-timeout': '20s'}}) as edge:
                got = pictures(['-rtsp_transport', 'tcp', '-i', edge.url('/film'), '-t', '5',
                                '-vsync', 'passthrough'])
                return edge.get('/v1/mounts/film')['ingest']['lost'], got

        got = undisturbed(play)
        first = frames().index(got[0])
        assert len(got) > 25 and got == frames()[first:first + len(got)], (first, len(got))


def load(*words, status=0):
    done = subprocess.run([os.environ['WEIR_RTSP_LOAD'], '--scheme', *words], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


@test(timeout=180)
def rtsp_load_follows_schedules_with_many_clients():
    with Controlled(mounts(), limits={'connections-per-address': 0}) as proxy:
        url = proxy.url('/gdb/a.mp4')

        def measure():
            result = json.loads(load('-n', '20', '-d', '40', '--arrivals', 'poisson:10', '--json',
                                     url).stdout)
            assert result['done'] == 20, result
            return result['lost'], result

        result = undisturbed(measure)
        assert result['in_time'] + result['late'] == result['packets'] > 20 * 200, result
        assert result['packets'] % 20 == 0, result
        assert result['unicast_share'] < 10 and result['groups_max'] > 1, result
        assert '404' in load('-d', '5', proxy.url('/gdb/none.mp4'), status=1).stderr
        assert '--scheme goes with' in load('--slow', '1', '-n', '2', url, status=2).stderr


@test(timeout=180)
def the_launch_line_shows_what_the_configuration_broadcasts():
    """pipelines/serve-broadcast.yaml and receive-broadcast.launch"""
    mounts()  # needs a network
    texts = []
    for name in 'serve-broadcast.yaml', 'receive-broadcast.launch':
        with open(os.path.join(PIPELINES, name), encoding='utf-8') as file:
            texts.append(''.join(line for line in file if not line.startswith('#')))
    settings, line = texts
    port = free_port()
    for old, new in ('/srv/films', clip().name), ('5s', '1s'), ('8554', str(port)):
        assert old in settings, old
        settings = settings.replace(old, new)
    # Not every system has a decoder for the clip.
    line = line.replace('8554', str(port)).replace('decodebin', 'rtph264depay ! h264parse').replace(
        'videoconvert', 'video/x-h264,alignment=au').replace(
            'autovideosink', 'fakesink silent=false')
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(settings)
        file.flush()
        with Proc(program(), '--config', file.name, env=environment()) as proxy, \
                Proc('sh', '-c', f'exec gst-launch-1.0 -v {line}', env=environment()) as player:
            assert player.wait(PATIENCE) == 0
            proxy.wait_for_line('packetized')
            assert player.output().count('last-message = chain') == len(frames())


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
            client = stack.enter_context(Receiver(
                f'rtsp-schedule://127.0.0.1:{port}/a', folder, latency=AGES))
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
        with Server(title(), 100, port, groups=None, identity='0a1c'):
            client.expect_error('the title has changed')


@test
def a_title_that_is_replaced_on_the_disk_ends_with_an_error():
    """the client asks for single packets, and learns that they are of another title"""
    with tempfile.TemporaryDirectory() as folder:
        film = os.path.join(folder, 'a.mp4')
        other = os.path.join(folder, '.other.mp4')
        shutil.copy(path(), film)
        ffmpeg('-i', path(), '-c', 'copy', '-t', '6', other)
        settings = {'/patching': {**mounts()['/patching'], 'upstream': f'file://{folder}/'}}
        with (Controlled(settings) as proxy, dropping(GROUPS),
              Receiver(url_of(proxy, 'patching'), folder, latency=AGES) as client):
            client.wait_for_line('Redistribute latency', timeout=PATIENCE)
            os.rename(other, film)
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
