# SPDX-License-Identifier: LGPL-2.1-or-later
"""schedulesrc receives live mounts that the proxy sends on a group: from the newest keyframe on at
once, and then every picture once, at random arrivals, with late joins, losses, a group that moves
and a restart of the server. The multicast stays in a network of this process."""

import json
import os
import random
import re
import subprocess
import tempfile
import time
from contextlib import ExitStack
from functools import lru_cache

from control import Controlled, config
from films import FPS, SECONDS, film_pictures, path_of, pictures
from multicast import dropping, enter_network
from proc import Proc, free_port
from proxy import wait_until
from sanitized import environment
from tap import Skip, run, test

GROUP, PORT = '239.78.7.7', 15104
MS = 1000000  # ns
ROOM = 1500 * MS  # latency with which a busy machine loses nothing
PATIENCE = 60
PACKETS = 40  # of a second of video, about

HAS_NETWORK = enter_network()


def live(port=PORT):
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    return {'/cam': {'upstream': f'file://{path_of("film.mp4")}', 'on-demand': False,
                     'broadcast': {'groups': GROUP, 'port': port, 'iface': 'lo', 'ttl': 0}}}


def url_of(proxy):
    return f'rtsp-schedule://127.0.0.1:{proxy.port}/cam'


def serving(**top):
    """Returns a proxy whose mount is up."""
    proxy = Controlled(live(), **top)
    proxy.wait_for_line(r' mount /cam up')
    return proxy


class Viewer(Proc):
    """Keeps at least the given number of pictures."""

    def __init__(self, proxy, folder, shown=2 * FPS, latency=ROOM):
        self.shown = shown
        self.file = os.path.join(folder, f'{random.random()}.h264')
        super().__init__(
            'gst-launch-1.0', 'schedulesrc', f'location={url_of(proxy)}', f'latency={latency}',
            'name=s', 's.', '!', 'application/x-rtp,media=video', '!', 'identity',
            f'eos-after={PACKETS * shown // FPS}', '!', 'rtph264depay', '!',
            'video/x-h264,stream-format=byte-stream,alignment=au', '!', 'filesink',
            f'location={self.file}', 'buffer-mode=unbuffered', 's.', '!', 'application/x-rtp,media=audio', '!', 'identity',
            f'eos-after={shown}', '!', 'fakesink', 'async=false',
            env={**(environment() or os.environ), 'GST_DEBUG': 'schedulesrc:4',
                 'GST_DEBUG_NO_COLOR': '1'})

    def wait_until_it_plays(self):
        wait_until(lambda: os.path.exists(self.file) and os.path.getsize(self.file) > 0, PATIENCE,
                   'a picture')

    def finish(self):
        """Waits for the end. Returns the pictures and the statistics."""
        ends = self.wait_for_line(r'ends: application/x-weir-schedulesrc-stats, (.*);',
                                  timeout=PATIENCE)[1]
        assert self.wait(PATIENCE) == 0, self.lines
        stats = {key: float(value) for key, value in re.findall(r'([\w-]+)=\(\w+\)([\d.]+)', ends)}
        return pictures(['-f', 'h264', '-i', self.file])[:-1], stats  # the last one may be cut

    def expect_all(self):
        """Expects the film's pictures, from a keyframe on, each once. Returns the statistics."""
        got, stats = self.finish()
        check_pictures(got)
        assert len(got) >= self.shown and stats['lost'] == 0, (len(got), stats)
        return stats


@lru_cache
def place_of():
    return {picture: i for i, picture in enumerate(film_pictures())}


def check_pictures(got):
    places = [place_of()[picture] for picture in got]
    assert places[0] % FPS == 0, places
    # The film begins anew at its end.
    assert places == [(places[0] + i) % len(film_pictures()) for i in range(len(got))], places


@test(timeout=180)
def every_picture_comes_once_for_arrivals_at_random_times():
    with ExitStack() as stack:
        proxy = stack.enter_context(serving())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        viewers = []
        for _ in range(6):
            viewers.append(stack.enter_context(Viewer(proxy, folder)))
            time.sleep(random.uniform(0, 0.5))  # an arrival is a time of the clock
        for viewer in viewers:
            stats = viewer.expect_all()
            assert 0 < stats['unicast-bytes'] and 0 < stats['group-bytes'], stats
            assert 0 < stats['start-up'] and stats['strays'] == 0, stats


@test
def a_group_that_comes_late_costs_only_unicast():
    late = 3 * os.path.getsize(path_of('film.h264')) // SECONDS // 2  # bytes, with a keyframe
    with (serving() as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUP, f'quota until {late} bytes'),
          Viewer(proxy, folder, 4 * FPS) as viewer):
        stats = viewer.expect_all()
        assert stats['group-bytes'] > 0 and stats['unicast-bytes'] > 0, stats


@test
def a_fifth_of_the_packets_on_the_group_is_repaired():
    with (serving() as proxy, tempfile.TemporaryDirectory() as folder,
          dropping(GROUP, 'numgen inc mod 5 0'),
          Viewer(proxy, folder, 4 * FPS) as viewer):
        stats = viewer.expect_all()
        assert stats['group-missed'] > stats['packets'] / 12, stats
        assert stats['repaired'] == stats['group-missed'], stats


@test
def a_group_that_moves_is_followed():
    with (serving() as proxy, tempfile.TemporaryDirectory() as folder,
          Viewer(proxy, folder, 10 * FPS) as viewer):
        viewer.wait_until_it_plays()
        assert 'reloaded' in proxy.hang_up(config(live(PORT + 16)))
        stats = viewer.expect_all()
        assert stats['reconnects'] > 0, stats


@test
def a_viewer_goes_on_after_the_server_was_restarted():
    settings = {'listen': f'127.0.0.1:{free_port()}'}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        with serving(**settings) as proxy:
            viewer = stack.enter_context(Viewer(proxy, folder, 4 * FPS))
            viewer.wait_until_it_plays()
        with serving(**settings):
            got, stats = viewer.finish()
        places = [place_of()[picture] for picture in got]
        turn = next((i for i in range(1, len(places)) if places[i] != places[i - 1] + 1),
                    len(places))
        assert stats['reconnects'] > 0 and stats['stalls'] == 0, stats
        for part in got[:turn], got[turn:]:
            assert part, (places, stats)
            check_pictures(part)


@test
def another_proxy_serves_a_live_broadcast_to_players():
    with serving() as proxy, Controlled({'/edge': {'upstream': f'{url_of(proxy)}?iface=lo'}}) as edge:
        for transport in 'tcp', 'udp':
            got = pictures(['-rtsp_transport', transport, '-i', edge.url('/edge'), '-t', '3',
                            '-vsync', 'passthrough'])
            check_pictures(got)
            assert len(got) >= 2 * FPS, (transport, len(got))


@test
def rtsp_load_follows_a_live_broadcast_with_many_clients():
    with serving(limits={'connections-per-address': 0}) as proxy:
        done = subprocess.run(
            [os.environ['WEIR_RTSP_LOAD'], '--scheme', '-n', '20', '-d', '5', '--arrivals',
             'poisson:20', '--json', proxy.url('/cam')],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        result = json.loads(done.stdout)
        assert result['described'] == 20 and result['lost'] == 0, result
        assert result['packets'] > 20 * 2 * FPS and result['unicast_share'] < 50, result


if __name__ == '__main__':
    run()
