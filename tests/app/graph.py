# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presentations that share stages, and pipelines that are swapped under readers."""

import contextlib
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from control import Controlled, Watch, wait_for_packets
from proc import Rtsp
from proxy import CLIP, Origin, Read, wait_for_readers, wait_until
from tap import SLOWER, run, test

# A keyframe every half second.
LIVE = ('launch:videotestsrc is-live=true pattern={pattern} ! '
        'video/x-raw,width=320,height=180,framerate=30/1 ! videoconvert ! '
        'openh264enc gop-size=15 bitrate=400000 ! h264parse ! '
        'rtph264pay config-interval=-1 name=pay0 '
        'audiotestsrc is-live=true ! audio/x-raw,rate=48000 ! voaacenc ! rtpmp4gpay name=pay1 pt=97')
SECOND = 30 + 47  # packets of a track of 30 pictures/s and of sound
QUICK = {'linger': '200ms', 'connect-timeout': '2s', 'read-timeout': '2s', 'switch-timeout': '4s'}


def live(pattern='ball', **settings):
    return {'upstream': LIVE.format(pattern=pattern), **QUICK, **settings}


def camera(port=0):
    """Returns another proxy, which serves a test picture at /cam all the time."""
    return Controlled({'/cam': live(**{'on-demand': False})}, listen=f'127.0.0.1:{port}', api='off')


class Decode:
    """An ffmpeg process that decodes a stream and reports errors in it."""

    def __init__(self, url, transport='tcp', duration=60):
        self._process = subprocess.Popen(
            ['ffmpeg', '-nostdin', '-v', 'error', '-rtsp_transport', transport, '-i', url, '-map',
             '0:v', '-t', str(duration), '-f', 'framehash', '-hash', 'crc32', '-'],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.frames = 0
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self):
        for line in self._process.stdout:
            self.frames += not line.startswith('#')

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self._process.poll() is None:
            self._process.terminate()
        self.errors = self._process.stderr.read()
        self._process.wait(10)
        self._thread.join(10)

    def running(self):
        return self._process.poll() is None


def goes_on(*decoders):
    """Waits until FFmpeg has decoded two more seconds of pictures."""
    enough = [decode.frames + 60 for decode in decoders]
    wait_until(lambda: all(decode.frames > n for decode, n in zip(decoders, enough)), 10,
               'ffmpeg continues')


def nodes(proxy, kind, label=None):
    return [node for node in proxy.get('/v1/graph')['nodes']
            if node['kind'] == kind and label in (None, node['label'])]


def shown_upstream(proxy):
    """Returns the states of the upstreams of the only running mount, in order."""
    return [node['state'] for node in nodes(proxy, 'upstream')]


def switches(proxy, path='/cam'):
    return proxy.get(f'/v1/mounts{path}')['ingest']['switches']


def switch(proxy, body, path='/cam'):
    """Changes the mount and waits until readers see the new pipeline."""
    before = switches(proxy, path)
    status, _, answer = proxy.http('PATCH', f'/v1/mounts{path}', body)
    assert status == 200, answer
    wait_until(lambda: switches(proxy, path) == before + 1, 6, f'a switch after {body}')
    wait_until(lambda: not proxy.get(f'/v1/mounts{path}')['presentations'][0]['switching'], 2,
               'the old pipeline has ended')


def check_smooth(result, n, lost=0):
    totals = result['totals']
    assert totals['ok'] == n, result
    assert totals['lost'] == lost and totals['ssrc_changes'] == 0, totals
    assert totals['ts_backward'] == 0 and totals['decode_errors'] == 0, totals


@test
def five_choices_of_one_camera_share_one_upstream_and_one_decoder():
    sizes = ['160x90', '192x108', '256x144', '320x180', '384x216']
    with Origin() as origin, Controlled(
            {'/cam': {'upstream': origin.url, 'choices': {'transcode': ['size', 'rate']},
                      **QUICK}}) as proxy:
        reads = [Read(proxy.url(f'/cam?size={size}'), duration=30) for size in sizes]
        wait_for_readers(proxy, 5)
        assert origin.count('play') == 1
        assert len(nodes(proxy, 'stage', 'pull')) == 1
        assert len(nodes(proxy, 'stage', 'decode')) == 1
        assert len(nodes(proxy, 'stage', 'transcode')) == 5
        wait_for_packets(proxy, 5 * 2 * SECOND)
        for read in reads:
            check_smooth(read.finish(), 1)
        wait_until(lambda: not nodes(proxy, 'stage'), 5, 'no stage is left')
        wait_until(lambda: len(nodes(proxy, 'presentation')) == 1, 5, 'no choice is left')


@test
def equal_choices_share_a_pipeline_and_others_get_404():
    with Controlled({'/cam': live(choices={'transcode': ['size', 'rate']})},
                    limits={'requests-per-second': 100000}, **{'strict-queries': True}) as proxy:
        queries = ['size=160x90&rate=200k', 'rate=200k&size=160x90', 'rate=0.2M&size=160x90',
                   'size=160x90&rate=200000', 'size=160X90&rate=200K', 'rate=200k&size=160%7890',
                   'rate=200.0k&size=160x90', 'size=160x90&rate=%32%30%30k',
                   'rate=200000&size=160x90', 'rate=.2M&size=160x90']
        with Rtsp(proxy.port) as rtsp:
            for query in queries:
                status = rtsp.request('DESCRIBE', proxy.url(f'/cam?{query}'))[0]
                assert status in (200, 404), (query, status)
            assert len(nodes(proxy, 'stage', 'transcode')) == 1
            for i in range(1000):
                bad = ['x', 'size=1', 'rate=99G', 'size=160x90&size=160x90', 'keys=1s',
                       f'k{i}=1', 'size=160x90&&', '%00', 'size', f'size={i}'][i % 10]
                status = rtsp.request('DESCRIBE', proxy.url(f'/cam?{bad}'))[0]
                assert status == 404, (bad, status)
        assert len(nodes(proxy, 'stage', 'transcode')) == 1
        assert len(nodes(proxy, 'presentation')) <= 2


@test
def max_presentations_limits_the_choices():
    with Controlled({'/cam': live(choices={'transcode': ['rate']}, linger='5s',
                                  **{'max-presentations': 2})}) as proxy, Rtsp(proxy.port) as rtsp:
        for rate, status in ('100k', 200), ('200k', 200), ('300k', 503), ('100k', 200):
            assert rtsp.request('DESCRIBE', proxy.url(f'/cam?rate={rate}'))[0] == status, rate


@test
def a_setup_alone_starts_no_choice():
    """a choice that no DESCRIBE has started does not run, and a SETUP for it gets 404"""
    with Origin() as origin, Controlled(
            {'/cam': {'upstream': origin.url, 'choices': {'transcode': ['size']},
                      **QUICK}}) as proxy, Rtsp(proxy.port) as rtsp:
        status = rtsp.request('SETUP', proxy.url('/cam?size=160x90/stream=0'),
                              {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})[0]
        assert status == 404, status
        shown = proxy.get('/v1/mounts/cam')['presentations']
        assert [part['state'] for part in shown] == ['idle'], shown
        assert origin.count('describe') == 0


@test
def pipelines_are_swapped_under_readers():
    small = [{'transcode': {'size': '160x90', 'rate': '200k', 'keys': '500ms'}}]
    with Controlled({'/cam': live()}) as proxy, Decode(proxy.url()) as tcp, Decode(
            proxy.url(), 'udp') as udp:
        reads = [Read(proxy.url(), readers=4, duration=50, transport=transport)
                 for transport in ('tcp', 'udp')]
        wait_for_readers(proxy, 10)
        wait_until(lambda: tcp.frames > 10 and udp.frames > 10, 10, 'ffmpeg decodes')
        for i in range(3):
            switch(proxy, {'pipeline': ['pull', *small]})
            switch(proxy, {'pipeline': []})
        goes_on(tcp, udp)
        for read in reads:
            check_smooth(read.finish(), 4)
        assert tcp.running() and udp.running()
        assert len(nodes(proxy, 'stage')) == 1
    assert not tcp.errors and not udp.errors, tcp.errors + udp.errors


def ages(proxy, path, seconds=4):
    """Returns the age of each track's media on arrival, by its sender reports: {track: seconds}."""
    rates = {0: 90000, 1: 48000}
    maps, found = {}, {}
    with Watch(proxy, path) as rtsp:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            channel, packet = rtsp.frame()
            now, track = time.time(), channel // 2
            if channel % 2 and packet[1] == 200:
                ntp, stamp = struct.unpack('!QI', packet[8:20])
                maps[track] = ntp / 2**32 - 2208988800, stamp
            elif channel % 2 == 0 and track in maps:
                ntp, stamp = maps[track]
                ahead = (struct.unpack('!I', packet[4:8])[0] - stamp + 2**31) % 2**32 - 2**31
                found[track] = now - (ntp + ahead / rates[track])
    return found


@test
def stages_keep_the_wall_clock_time_of_media():
    """sender reports give a picture and its sound the upstream's wall-clock time"""
    small = {'transcode': {'size': '160x90', 'rate': '200k'}}
    with camera() as origin, Controlled({
            path: {'upstream': origin.url(), **QUICK, 'pipeline': pipeline}
            for path, pipeline in {'/plain': ['pull'], '/small': ['pull', small],
                                   '/restamped': ['pull', 'restamp'],
                                   '/both': ['pull', 'restamp', small]}.items()}) as proxy:
        paths = '/plain', '/small', '/restamped', '/both'
        with ThreadPoolExecutor(len(paths)) as pool:
            plain, *others = pool.map(lambda path: ages(proxy, path), paths)
        assert len(plain) == 2, plain
        for path, found in zip(paths[1:], others):
            assert len(found) == 2, (path, found)
            for track, age in found.items():
                assert abs(age - plain[track]) < 0.4, (path, track, age, plain)


@test
def an_upstream_is_swapped_under_readers():
    with Controlled({'/cam': live(), '/other': live('snow')}) as proxy, Decode(
            proxy.url()) as decode:
        reads = Read(proxy.url(), readers=4, duration=50)
        wait_for_readers(proxy, 5)
        other = proxy.url('/other')
        switch(proxy, {'upstream': other})
        assert [node['label'] for node in nodes(proxy, 'upstream')].count(other) == 1
        goes_on(decode)
        check_smooth(reads.finish(), 4)
        assert decode.running()
    assert not decode.errors, decode.errors


@test
def a_pipeline_that_does_not_start_changes_nothing():
    with Controlled({'/cam': live()}) as proxy:
        reads = Read(proxy.url(), readers=2, duration=50)
        wait_for_readers(proxy, 2)
        assert proxy.http('PATCH', '/v1/mounts/cam', {'upstream': 'rtsp://127.0.0.1:9/x'})[0] == 200
        proxy.wait_for_line(r' mount /cam keeps its old pipeline: the new pipeline gave no media within')
        shown = proxy.get('/v1/mounts/cam')['presentations'][0]
        assert not shown['switching'] and 'gave no media' in shown['problem'], shown
        wait_for_packets(proxy, 2 * SECOND)
        check_smooth(reads.finish(), 2)
        assert switches(proxy) == 0


TAP = """---
summary: shows a second branch what passes
media: video
takes: rtp
gives: rtp
---
tee name=t
t. ! queue ! fakesink sync=false async=false
t. ! queue
"""


@test
def a_stage_refers_to_its_own_elements():
    """the text of a stage may have branches, which refer to a named element of it"""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'tap.launch'), 'w', encoding='utf-8') as file:
            file.write(TAP)
        with Controlled({'/cam': live(pipeline=['pull', 'tap'])}, stages=folder) as proxy, \
                Decode(proxy.url()) as decode:
            goes_on(decode)
        assert not decode.errors, decode.errors


@test
def a_change_that_is_overtaken_by_another_is_told():
    """a pipeline that another change replaces before it began is dropped with a line, and told by the API"""
    with camera() as one, camera() as other, Controlled({'/cam': {'upstream': one.url(), **QUICK}}) as proxy:
        reads = Read(proxy.url(), readers=2, duration=50)
        wait_for_readers(proxy, 2)
        for port in 9, 11:
            assert proxy.http('PATCH', '/v1/mounts/cam', {'upstream': f'rtsp://127.0.0.1:{port}/x'})[0] == 200
        proxy.wait_for_line(r' mount /cam: the pipeline of an earlier change was dropped: another change came')
        shown = proxy.get('/v1/mounts/cam')['presentations'][0]
        assert shown['switching'] and 'was dropped' in shown['problem'], shown
        # Back to what runs: the second one is dropped as well.
        assert proxy.http('PATCH', '/v1/mounts/cam', {'upstream': one.url()})[0] == 200
        shown = proxy.get('/v1/mounts/cam')['presentations'][0]
        assert not shown['switching'] and 'was dropped' in shown['problem'], shown
        switch(proxy, {'upstream': other.url()})
        assert 'problem' not in proxy.get('/v1/mounts/cam')['presentations'][0]
        check_smooth(reads.finish(), 2)


@test
def a_codec_change_is_announced_and_closes_readers():
    vp8 = ('launch:videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=30/1 ! '
           'vp8enc deadline=1 keyframe-max-dist=15 ! rtpvp8pay name=pay0')
    body = {'pipeline': ['pull', {'transcode': {'size': '160x90'}}]}
    with Controlled({'/cam': {'upstream': vp8, **QUICK}}) as proxy, contextlib.ExitStack() as stack:
        stack.enter_context(Watch(proxy))
        effect = proxy.http('PATCH', '/v1/mounts/cam?dry-run', body)[2]['change']['effect']
        assert effect.startswith('readers are closed, because the codec changes from VP8'), effect
        assert proxy.http('PATCH', '/v1/mounts/cam', body)[0] == 200
        proxy.wait_for_line(r' reader \S+ out: /cam: the new pipeline has different tracks')
        with Decode(proxy.url(), duration=5) as decode:
            wait_until(lambda: decode.frames > 20, 10, 'the new pipeline is decoded')
        assert not decode.errors, decode.errors


@test
def the_second_upstream_takes_over_until_the_first_returns():
    with camera() as a, camera() as b, Controlled(
            {'/cam': {'upstreams': [a.url(), b.url()], **QUICK}}) as proxy, Decode(
                proxy.url()) as decode:
        reads = Read(proxy.url(), readers=10, duration=50)
        wait_for_readers(proxy, 11)
        wait_until(lambda: decode.frames > 30, 10, 'ffmpeg decodes')
        assert shown_upstream(proxy) == ['up', 'idle'], shown_upstream(proxy)
        a.kill()
        wait_until(lambda: shown_upstream(proxy)[1] == 'up', 5, 'readers see the second')
        proxy.wait_for_line(f' upstream {re.escape(b.url())} took over from {re.escape(a.url())}$')
        with camera(a.port):
            wait_until(lambda: shown_upstream(proxy) == ['up', 'idle'], 14,
                       'readers see the first again')
            proxy.wait_for_line(f' upstream {re.escape(a.url())} took over from {re.escape(b.url())}$')
            goes_on(decode)
            check_smooth(reads.finish(), 10)
            assert decode.running()
    assert not decode.errors, decode.errors


@test
def an_upstream_that_is_down_from_the_start_is_skipped():
    nowhere = 'rtsp://127.0.0.1:9/none'
    with Origin() as b, Controlled({
            '/second': {'upstreams': [nowhere, b.url], **QUICK},
            '/third': {'upstreams': [nowhere, nowhere, b.url], 'slate': CLIP, **QUICK},
            '/slate': {'upstream': nowhere, 'slate': CLIP, **QUICK}}) as proxy:
        paths = '/second', '/third', '/slate'
        for path, read in [(path, Read(proxy.url(path), duration=2)) for path in paths]:
            assert read.result()['totals']['ok'] == 1, path


@test
def an_upstream_with_any_tracks_ends_the_slate():
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    with Controlled({'/cam': {'upstream': f'rtsp://127.0.0.1:{port}/cam', 'slate': CLIP,
                              **QUICK}}) as proxy:
        read = Read(proxy.url(), duration=30)
        wait_for_readers(proxy, 1)
        with camera(port):
            proxy.wait_for_line(r' reader \S+ out: /cam: the upstream came back with different tracks', 25)
            assert read.result(None)['totals']['statuses'] == {'disconnected': 1}
            assert Read(proxy.url(), duration=2).result()['totals']['ok'] == 1
            assert shown_upstream(proxy)[0] == 'up'


def one_keyframe(directory):
    """Makes a clip of several rounds with a keyframe at its beginning only."""
    path = os.path.join(directory, 'slate.mp4')
    subprocess.run(
        ['ffmpeg', '-nostdin', '-v', 'error', '-stream_loop', '7', '-i', CLIP, '-t', '40', '-vf',
         'scale=160:90', '-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'main', '-g',
         '10000', '-sc_threshold', '0', '-bf', '0', '-c:a', 'copy', path],
        check=True, timeout=60 * SLOWER)
    return path


@test
def a_slate_is_shown_from_its_first_keyframe():
    """a clip takes over at once, though its next keyframe is 40 s away"""
    with tempfile.TemporaryDirectory() as directory, Origin() as origin, Controlled({
            '/cam': {'upstream': origin.url, 'slate': one_keyframe(directory), **QUICK}}) as proxy:
        reads = Read(proxy.url(), readers=2, duration=50)
        wait_for_readers(proxy, 2)
        origin.kill()
        wait_until(lambda: shown_upstream(proxy)[1] == 'up', 5, 'the slate is shown')
        wait_for_packets(proxy, 2 * 3 * SECOND)
        check_smooth(reads.finish(), 2)


@test
def a_slow_stage_affects_only_its_own_readers():
    """a stage that takes ten seconds for a frame does not affect readers of the camera itself"""
    with Controlled({'/cam': live(choices={'transcode': ['size']})}) as proxy:
        plain = Read(proxy.url(), readers=2, duration=6)
        wait_for_readers(proxy, 2)
        huge = Read(proxy.url('/cam?size=3840x2160'), duration=3)
        huge.result(None)
        check_smooth(plain.result(), 2)


if __name__ == '__main__':
    run()
