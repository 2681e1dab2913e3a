# SPDX-License-Identifier: LGPL-2.1-or-later
"""A warm standby replaces a failed upstream at once, whatever the distance of keyframes."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import clips
from clips import RATE
from control import Controlled, config, wait_for_packets
from loads import Load
from proc import known_criticals
from proxy import QUICK, Origin, Read, matches, wait_for_readers, wait_until
from tap import SLOWER, run, test

# The gaps between packets are known after 2 s; see base/arrivals.h.
KNOWN = 2.5
# rtspsrc of GStreamer 1.22, if the connection ends while it has not begun to play. On a busy machine the
# proxy connects anew to a stopped upstream just before that is killed.
OF_RTSPSRC = r"gst_event_set_seqnum: assertion 'seqnum != GST_SEQNUM_INVALID' failed"
TWO_SECONDS = 2 * (RATE + 48000 // 1024)  # of packets to one reader


def clip(gop):
    """Returns a clip of 20 s with a keyframe every `gop` seconds."""
    return clips.clip(gop, 20)


def hashes_of(source):
    """Runs ffmpeg, and returns the hashes of the pictures it decodes, in order."""
    done = subprocess.run(
        ['ffmpeg', '-nostdin', '-v', 'error', '-i', source, '-map', '0:v', '-fps_mode',
         'passthrough', '-f', 'framehash', '-hash', 'crc32', '-'],
        capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    return re.findall(r', (\w{8})$', done.stdout, re.M)


class Decode:
    """An ffmpeg process that decodes a stream until it is ended."""

    def __init__(self, url, transport):
        self._out = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            ['ffmpeg', '-v', 'error', '-rtsp_transport', transport, '-i', url, '-map', '0:v',
             '-fps_mode', 'passthrough', '-flush_packets', '1', '-f', 'framehash', '-hash',
             'crc32', '-'],
            stdin=subprocess.PIPE, stdout=self._out, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        self._out.close()

    def frames(self):
        # The position in the file is ffmpeg's, too, and must not move.
        written = os.pread(self._out.fileno(), 1 << 24, 0).decode()
        return re.findall(r', (\w{8})$', written, re.M)

    def dropped(self):
        """Returns how many packets the kernel has dropped at ffmpeg's UDP sockets. On a busy machine
        ffmpeg reads them late."""
        folder = f'/proc/{self._process.pid}/fd'
        own = {os.readlink(f'{folder}/{number}') for number in os.listdir(folder)}
        sockets = [line.split() for name in ('udp', 'udp6')
                   for line in pathlib.Path('/proc/net', name).read_text().splitlines()[1:]]
        return sum(int(each[12]) for each in sockets if f'socket:[{each[9]}]' in own)

    def running(self):
        return self._process.poll() is None


def upstreams(proxy):
    """Returns the states of the upstreams of the only running mount, in order."""
    return [node['state'] for node in proxy.get('/v1/graph')['nodes'] if node['kind'] == 'upstream']


def standby_is(proxy, ready):
    """Returns whether the metric of the standby is 1 or 0. There is none while the mount is idle."""
    return f'weir_standby_ready{{mount="/cam"}} {ready}\n' in proxy.get('/metrics').decode()


def wait_until_ready(proxy):
    wait_until(lambda: standby_is(proxy, 1), 15, 'the standby is ready')


def logged_current(proxy, first):
    """Returns the upstream that took over last, or the first one."""
    return next(reversed(matches(proxy, r' upstream (\S+) took over from ')), ('', first))[1]


def wait_for_first(proxy, first):
    """Waits until the first upstream is shown, and a standby is ready. On a busy machine the first
    may start late, which is a failure, and be shown again later. Returns the number of lines and of
    failures until then."""
    wait_until(lambda: upstreams(proxy)[0] == 'up', 20, 'the first is shown')
    # The proxy logs a take-over at the mount's next tick.
    wait_until(lambda: logged_current(proxy, first) == first, 5, 'the return of the first is logged')
    wait_until_ready(proxy)
    return len(proxy.lines), proxy.metric('failovers_total{mount="/cam"}')


def warm(*origins, **settings):
    return {'upstreams': [origin.url for origin in origins], 'standby': 'warm', **QUICK,
            'read-timeout': '5s', **settings}


@contextlib.contextmanager
def pair(gop=2, **settings):
    """Two origins, and a proxy that has the second as warm standby of the first."""
    with Origin(clip=clip(gop)) as a, Origin(clip=clip(gop)) as b, \
            Controlled({'/cam': warm(a, b, **settings)}) as proxy:
        yield a, b, proxy


def took_over(proxy, a, b, timeout=3, start=0):
    proxy.wait_for_line(rf' upstream {re.escape(b.url)} took over from {re.escape(a.url)}$', timeout,
                        start)


def check_load(result, n):
    """Checks that rtsp-load's readers noticed no gap in numbers and were not disconnected."""
    for key in 'lost', 'reordered', 'duplicates':
        assert result[key] == 0, (key, result)
    assert result['connected'] == n and not result['errors'], result


def fail(gop, number, pause=0, **settings):
    """The first upstream fails under readers. Checks that they see the second at once, from a keyframe
    on, with whole pictures and without a gap in the numbers."""
    known = set(hashes_of(clip(gop)))
    with pair(gop, **settings) as (a, b, proxy), Load(
            '--readers', 20, '--transport', 'mixed', '--duration', 60, proxy.url()) as load, Read(
                proxy.url(), '--tolerate-gaps', transport='udp', readers=2, duration=60) as read, \
            Decode(proxy.url(), 'tcp') as tcp, Decode(proxy.url(), 'udp') as udp:
        wait_for_readers(proxy, 24)
        start, failures = wait_for_first(proxy, a.url)
        wait_until(lambda: len(tcp.frames()) > 5 and len(udp.frames()) > 5, 10, 'ffmpeg decodes')
        time.sleep(KNOWN + pause)
        shown = [len(decode.frames()) for decode in (tcp, udp)]
        a.signal(number)
        took_over(proxy, a, b, start=start)
        wait_until(lambda: all(len(decode.frames()) > n + RATE * 2
                               for decode, n in zip((tcp, udp), shown)), 6, 'ffmpeg continues')
        for decode in tcp, udp:
            # The last picture of the first upstream may be cut.
            wrong = [n for n, frame in enumerate(decode.frames()) if frame not in known]
            assert len(wrong) <= 1 or decode.dropped() > 0, (decode is udp, wrong)
            assert decode.running()
        assert proxy.metric('failovers_total{mount="/cam"}') == failures + 1
        assert proxy.get('/v1/mounts/cam')['ingest']['failovers'] == failures + 1
        a.kill()
        check_load(load.finish(), 20)
        smooth = read.finish(None)['totals']
        for key in 'lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward':
            assert smooth[key] == 0, (key, smooth)
        assert smooth['statuses'] == {'ok': 2}, smooth
        assert b.count('play') == 1, b.output()


# ---- failures ----


@test
def a_killed_upstream_is_replaced_at_once_with_keyframes_every_400_ms():
    fail(0.4, signal.SIGKILL)


@test
def a_killed_upstream_is_replaced_at_once_with_keyframes_every_2_s():
    fail(2, signal.SIGKILL, pause=1)


@test
def a_killed_upstream_is_replaced_at_once_with_keyframes_every_10_s():
    fail(10, signal.SIGKILL, client='light', transport='tcp')


@test
def a_frozen_upstream_is_replaced_at_once_with_keyframes_every_400_ms():
    with known_criticals(OF_RTSPSRC):
        fail(0.4, signal.SIGSTOP, client='rtspsrc')


@test
def a_frozen_upstream_is_replaced_at_once_with_keyframes_every_2_s():
    fail(2, signal.SIGSTOP, pause=1, transport='tcp')


@test
def a_frozen_upstream_is_replaced_at_once_with_keyframes_every_10_s():
    with known_criticals(OF_RTSPSRC):
        fail(10, signal.SIGSTOP, client='rtspsrc', transport='tcp')


# ---- the standby itself ----


@test
def the_first_upstream_takes_over_again_when_it_has_been_well_for_5_s():
    with pair() as (a, b, proxy), Load('--readers', 4, '--transport', 'mixed', '--duration', 60,
                                       proxy.url()) as load:
        wait_for_readers(proxy, 4)
        start, failures = wait_for_first(proxy, a.url)
        assert upstreams(proxy) == ['up', 'standing by'], upstreams(proxy)
        a.kill()
        took_over(proxy, a, b, start=start)
        with Origin(clip=clip(2), after=a):
            # Meanwhile the first one is the standby of the second.
            wait_until(lambda: upstreams(proxy) == ['standing by', 'up'], 6, 'the first is back')
            wait_until_ready(proxy)
            back = time.monotonic()
            took_over(proxy, b, a, 12, start)
            assert time.monotonic() - back > 3
            wait_until(lambda: upstreams(proxy) == ['up', 'standing by'], 2, 'as at first')
            wait_until_ready(proxy)
            check_load(load.finish(), 4)
            # The return is no failover.
            assert proxy.metric('failovers_total{mount="/cam"}') == failures + 1


@test
def a_standby_that_fails_is_connected_again_and_disturbs_nobody():
    with pair() as (a, b, proxy), Load('--readers', 4, '--transport', 'mixed', '--duration', 60,
                                       proxy.url()) as load:
        wait_for_readers(proxy, 4)
        start, failures = wait_for_first(proxy, a.url)
        b.kill()
        proxy.wait_for_line(rf' upstream {re.escape(b.url)}: ', 4, start)
        wait_until(lambda: standby_is(proxy, 0), 4, 'no standby is ready')
        assert upstreams(proxy)[0] == 'up', upstreams(proxy)
        with Origin(clip=clip(2), after=b):
            wait_until_ready(proxy)
            result = load.finish()
            check_load(result, 4)
            assert result['frame_gap_ms']['max'] < 1000, result
        assert not matches(proxy, ' took over from ', start), proxy.output()
        assert not matches(proxy, ' mount /cam down: .*next try', start), proxy.output()
        assert proxy.metric('failovers_total{mount="/cam"}') == failures


@test
def a_third_upstream_stands_by_while_the_second_is_down():
    with Origin(clip=clip(2)) as a, Origin(clip=clip(2)) as c, Origin() as gone:
        gone.kill()
        with Controlled({'/cam': warm(a, gone, c)}) as proxy, Load(
                '--duration', 60, proxy.url()) as load:
            wait_for_readers(proxy, 1)
            start, _ = wait_for_first(proxy, a.url)
            assert upstreams(proxy) == ['up', 'down', 'standing by'], upstreams(proxy)
            a.kill()
            took_over(proxy, a, c, start=start)
            wait_for_packets(proxy, TWO_SECONDS)
            check_load(load.finish(), 1)


@test
def the_slate_is_shown_when_all_upstreams_have_failed():
    slate = clip(0.4)
    with pair(slate=slate) as (a, b, proxy), Load('--duration', 60, proxy.url()) as load:
        wait_for_readers(proxy, 1)
        start, failures = wait_for_first(proxy, a.url)
        assert upstreams(proxy)[2] == 'idle', upstreams(proxy)
        a.kill()
        took_over(proxy, a, b, start=start)
        b.kill()
        proxy.wait_for_line(rf' upstream file://{slate} took over from {re.escape(b.url)}$', 4, start)
        wait_for_packets(proxy, TWO_SECONDS)
        check_load(load.finish(), 1)
        assert proxy.metric('failovers_total{mount="/cam"}') == failures + 2


@test
def an_idle_mount_closes_both_upstreams():
    with pair() as (a, b, proxy):
        assert a.count('connect') == b.count('connect') == 0
        with Load('--duration', 60, proxy.url()) as load:
            wait_for_readers(proxy, 1)
            wait_until_ready(proxy)
            load.finish()
        for origin in a, b:
            origin.wait_for('teardown', 5)
        assert 'weir_standby_ready{' not in proxy.get('/metrics').decode()
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'idle', 5, 'the mount is idle')


@test
def a_reload_changes_the_standby_of_a_running_mount():
    with pair() as (a, b, proxy), Load('--readers', 2, '--duration', 60, proxy.url()) as load:
        wait_for_readers(proxy, 2)
        wait_for_first(proxy, a.url)
        for standby, states in ('cold', ['up', 'idle']), ('warm', ['up', 'standing by']):
            mount = {**warm(a, b), 'standby': standby}
            line = proxy.hang_up(config({'/cam': mount}, listen=f'127.0.0.1:{proxy.port}',
                                        api=f'127.0.0.1:{proxy.api_port}'))
            assert line.startswith('reloaded'), line
            wait_until(lambda states=states: upstreams(proxy) == states, 6, states)
        wait_until_ready(proxy)
        check_load(load.finish(), 2)


@test
def a_warm_standby_needs_a_second_upstream():
    nowhere = [f'rtsp://127.0.0.1:9/{n}' for n in 'ab']
    with Controlled({'/cam': {'upstreams': nowhere, 'standby': 'warm'}}) as proxy:
        for body in {'upstream': nowhere[0]}, {'upstream': nowhere[0], 'standby': 'warm'}:
            status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', body)
            assert status == 400, answer
            assert 'standby: warm needs a second upstream' in answer['error']['message'], answer
        assert proxy.http('PATCH', '/v1/mounts/cam',
                          {'upstream': nowhere[0], 'standby': None})[0] == 200


@test
def a_stage_behind_the_upstreams_continues():
    stage = {'transcode': {'size': '160x90', 'rate': '200k', 'keys': '500ms'}}
    with pair(pipeline=['pull', stage]) as (a, b, proxy), Load(
            '--readers', 2, '--duration', 60, proxy.url()) as load, Decode(
                proxy.url(), 'tcp') as decode:
        wait_for_readers(proxy, 3)
        start, _ = wait_for_first(proxy, a.url)
        time.sleep(KNOWN)
        a.signal(signal.SIGSTOP)
        took_over(proxy, a, b, start=start)
        n = len(decode.frames())
        wait_until(lambda: len(decode.frames()) > n + RATE, 6, 'ffmpeg continues')
        check_load(load.finish(), 2)
        a.kill()


@test
def a_low_frame_rate_is_no_failure():
    slow = ('launch:videotestsrc is-live=true ! video/x-raw,width=160,height=90,framerate=1/1 ! '
            'openh264enc gop-size=2 ! h264parse ! rtph264pay config-interval=-1 name=pay0')
    patient = {'connect-timeout': '20s', 'read-timeout': '20s', 'on-demand': False}
    with Controlled({'/slow': {'upstream': slow, **patient},
                     '/slow2': {'upstream': slow + ' pt=97', **patient}}) as origins, Controlled(
            {'/cam': {'upstreams': [origins.url('/slow'), origins.url('/slow2')],
                      'standby': 'warm', **QUICK, 'read-timeout': '5s', 'on-demand': False}}) as proxy:
        seen, _ = wait_for_first(proxy, origins.url('/slow'))
        with Load('--duration', 10, proxy.url()) as load:
            check_load(load.result(0, 30), 1)
        assert not matches(proxy, ' took over from ', seen), proxy.output()


if __name__ == '__main__':
    run(at_once=2)
