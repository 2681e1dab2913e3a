# SPDX-License-Identifier: LGPL-2.1-or-later
"""Media before and after the answers to PLAY and PAUSE, and its effect on real players."""

import re
import shutil
import struct
import subprocess
import time

from arrivals import Player
from proc import Rtsp
from proxy import CLIP, Proxy
from sanitized import stock_environment
from tap import SLOWER, Skip, run, test

STARTS = 6
TRANSPORTS = 'tcp', 'udp'
TRACKS = 0, 1


def stream():
    """Returns a mount whose clip has one keyframe in 5.3 s."""
    return {'/cam': f'file://{CLIP}'}


class Running(Proxy):
    """The proxy with a stream that a reader has played for a while."""

    def __init__(self, mounts=None):
        super().__init__(mounts or stream())
        self._watcher = Player(self.port, self.url(), 'udp', TRACKS)
        self._watcher.play()
        time.sleep(1)

    def __exit__(self, *error):
        self._watcher.__exit__()
        super().__exit__(*error)


@test
def the_first_bytes_after_play_are_its_answer():
    with Running() as proxy:
        for n in range(20):
            with Player(proxy.port, proxy.url(), TRANSPORTS[n % 2], TRACKS) as player:
                answer, before = player.play()
                assert answer[0] == 200 and not before, (n, answer, before)


@test
def the_first_packets_are_those_named_in_the_answer():
    with Running() as proxy:
        for _ in range(10):
            with Player(proxy.port, proxy.url(), 'tcp', TRACKS) as player:
                info = player.play()[0][1]['rtp-info']
                told = re.search(r'/stream=0;seq=(\d+);rtptime=(\d+)', info)
                first = struct.unpack('>HI', player.first(0)[2:8])
                assert first == (int(told[1]), int(told[2])), (info, first)


@test
def no_media_follows_the_answer_to_pause():
    with Running() as proxy:
        for _ in range(20):
            with Player(proxy.port, proxy.url(), 'tcp', TRACKS) as player:
                assert player.play()[0][0] == 200
                for _ in range(3):
                    player.first(0)
                assert player.request('PAUSE', player.url)[0] == 200
                player.frames.clear()
                # A packet before this answer was sent after the answer to PAUSE.
                assert player.request('OPTIONS', player.url)[0] == 200
                assert not player.frames, [channel for channel, _ in player.frames]


@test
def a_seek_while_it_plays_begins_with_its_answer():
    # No packet of the new position precedes the answer, and no packet of the old one follows it.
    mounts = {'/cam': {'upstream': f'file://{CLIP}', 'on-demand': False,
                       'cache': {'time': '30s', 'bytes': '16M'}}}
    with Running(mounts) as proxy, Player(proxy.port, proxy.url(), 'tcp', TRACKS) as player:
        player.play()
        time.sleep(2)
        for n in range(20):
            last = None
            while player.frames or last is None:
                channel, packet = player.frame()
                last = packet if channel == 0 else last
            where = 'npt=now-' if n % 2 else 'npt=0.5-'
            status, headers, _ = player.request('PLAY', player.url, {'Range': where})
            assert status == 200, status
            told = int(re.search(r'/stream=0;seq=(\d+)', headers['rtp-info'])[1])
            for channel, packet in player.frames:
                last = packet if channel == 0 else last
            player.frames.clear()
            before, = struct.unpack('>H', last[2:4])
            first, = struct.unpack('>H', player.first(0)[2:4])
            assert (before + 1) % 65536 == first == told, (n, before, told, first)


@test
def a_refused_seek_keeps_the_readers_position():
    mounts = {'/cam': {'upstream': f'file://{CLIP}', 'on-demand': False,
                       'cache': {'time': '30s', 'bytes': '16M'}}}
    with Running(mounts) as proxy, Player(proxy.port, proxy.url(), 'tcp', TRACKS) as player:
        player.play()
        for headers in {'Range': 'npt=-3'}, {'Range': 'npt=0-', 'Scale': '2'}:
            status = player.request('PLAY', player.url, headers)[0]
            assert status >= 400, (headers, status)
            player.frames.clear()
            for _ in range(50):
                player.first(0)


# A sanitizer reports at the end what the library leaks for each request.
@test
def requests_that_fail_again_and_again_leak_nothing():
    with Proxy(stream()) as proxy, Rtsp(proxy.port) as rtsp:
        url = proxy.url()
        transport = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
        assert rtsp.request('DESCRIBE', url)[0] == 200
        assert rtsp.request('SETUP', f'{url}/stream=0', transport)[0] == 200
        for _ in range(10):
            assert rtsp.request('PLAY', proxy.url('/' + 'x' * 1000))[0] == 404
            assert rtsp.request('RECORD', proxy.url('/' + 'x' * 1000))[0] == 455
        assert rtsp.request('RECORD', url)[0] == 455
        assert rtsp.request('PLAY', url)[0] == 200
        assert proxy.stop() == 0


def first_in_ffprobe(url, transport):
    """Returns the flags of the first video packet from ffmpeg's demuxer, and the number of packets
    before a keyframe."""
    done = subprocess.run(
        ['ffprobe', '-v', 'error', '-rtsp_transport', transport, '-select_streams', 'v:0',
         '-show_entries', 'packet=flags', '-of', 'csv=p=0', '-read_intervals', '%+#1', url],
        capture_output=True, text=True, timeout=30 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@test
def ffmpeg_gets_a_keyframe_first():
    if not shutil.which('ffprobe'):
        raise Skip('ffprobe is not on the PATH')
    with Running() as proxy:
        for transport in TRANSPORTS:
            for n in range(STARTS):
                flags = first_in_ffprobe(proxy.url(), transport)
                assert flags.startswith('K'), (transport, n, flags)


@test
def rtspsrc_gets_a_keyframe_first():
    if not shutil.which('gst-launch-1.0'):
        raise Skip('gst-launch-1.0 is not on the PATH')
    with Running() as proxy:
        for transport in TRANSPORTS:
            for n in range(STARTS):
                done = subprocess.run(
                    ['gst-launch-1.0', '-q', 'rtspsrc', f'location={proxy.url()}',
                     f'protocols={transport}', 'latency=0', '!', 'rtph264depay', '!',
                     'video/x-h264,stream-format=byte-stream,alignment=au', '!', 'fakesink',
                     'num-buffers=1', 'dump=true'],
                    capture_output=True, text=True, timeout=30 * SLOWER, check=False, env=stock_environment())
                lines = re.findall(r'^[0-9a-f]{8} \(\S+\): ((?:[0-9a-f]{2} )+)', done.stdout, re.M)
                picture = bytes.fromhex(''.join(lines))
                kinds = [nal[0] & 31 for nal in picture.split(b'\0\0\1')[1:] if nal]
                assert 5 in kinds, (transport, n, kinds, done.stdout[:500], done.stderr)


if __name__ == '__main__':
    run()
