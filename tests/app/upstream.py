# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams that end, return, misbehave or are missing, and the effect on readers."""

import os
import re
import resource
import signal
import socket
import tempfile
import threading
import time

from loads import check, load
from proc import Rtsp, free_port
from proxy import CLIP, QUICK, Origin, Proxy, Read, matches, tracks, wait_for_readers, wait_until
from tap import run, test

# Seconds after the read time-out of QUICK: the first wait of the back-off and the start.
BACK = 4

# The start time-out for readers of an upstream that is down, in seconds. Other answers are sooner,
# on a busy machine too.
START = 4


def serve(url, **settings):
    return {'upstream': url, **QUICK, **{k.replace('_', '-'): v for k, v in settings.items()}}


def check_continuous(result, readers):
    """Checks that readers noticed only a gap. A splice may cut an access unit."""
    total = result['totals']
    assert total['readers'] == readers and total['statuses'] == {'ok': readers}, result
    for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward'):
        assert total[key] == 0, (key, total)
    assert total['max_gap_ms'] < (1 + BACK) * 1000, total
    for number, name, track in tracks(result):
        assert track['packets'] > 0, (number, name, track)


# ---- lost and found again ----


def kill_and_restart(how):
    with Origin() as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        reads = [
            Read(proxy.url(), '--tolerate-gaps', transport=transport, readers=5, duration=7,
                 expect=origin.expect)
            for transport in ('udp', 'tcp')
        ]
        wait_for_readers(proxy, 10)
        how(origin, proxy)
        origin.kill()
        with Origin(after=origin) as second:
            proxy.wait_for_line(r' mount /cam up: ', BACK, line_after(proxy, r' mount /cam down: '))
            for read in reads:
                result = read.result(None)
                check_continuous(result, 5)
                for number, name, track in tracks(result):
                    assert track['matched'] > 40, (number, name, track)
            assert second.count('play') == 1, second.output()
        assert not matches(proxy, r' out: /cam: (?!TEARDOWN)'), proxy.output()


def line_after(proc, regex, timeout=6):
    """Waits for a matching line. Returns the number of the line after it."""
    proc.wait_for_line(regex, timeout)
    return next(n for n, line in enumerate(proc.lines, 1) if re.search(regex, line))


@test
def readers_continue_when_a_killed_upstream_returns():
    kill_and_restart(lambda origin, proxy: None)


@test
def an_upstream_waits_for_a_file_descriptor():
    """while the proxy has no descriptor left, an upstream is down; then it comes up"""
    with Origin() as origin, Proxy({'/cam': serve(origin.url)}) as proxy, Rtsp(proxy.port) as rtsp:
        rtsp.request('OPTIONS', proxy.url())
        limits = resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)
        used = max(map(int, os.listdir(f'/proc/{proxy.pid}/fd'))) + 1
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        assert rtsp.request('DESCRIBE', proxy.url())[0] == 503
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, limits)
        wait_until(lambda: rtsp.request('DESCRIBE', proxy.url())[0] == 200, 10, 'the upstream is up')


@test
def a_reader_that_joins_while_the_upstream_is_lost_gets_it_later():
    with Origin() as origin, Proxy({'/cam': serve(origin.url, linger='20s')}) as proxy:
        Read(proxy.url(), duration=1).result()
        origin.kill()
        proxy.wait_for_line(r' mount /cam down: ', 6)
        read = Read(proxy.url(), '--tolerate-gaps', duration=6)
        wait_for_readers(proxy, 2)
        with Origin(after=origin):
            check_continuous(read.result(None), 1)


@test
def an_upstream_that_returns_with_other_tracks_closes_its_readers():
    with Origin() as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        reads = [
            Read(proxy.url(), transport=transport, readers=3, duration=10)
            for transport in ('udp', 'tcp')
        ]
        wait_for_readers(proxy, 6)
        origin.kill()
        with Origin('other-tracks', after=origin):
            proxy.wait_for_line(
                r' reader \S+ out: /cam: the upstream came back with different tracks$', 8)
            for read in reads:
                result = read.result(None)
                assert result['totals']['statuses'] == {'disconnected': 3}, result
            wait_until(lambda: len(matches(
                proxy, r' out: /cam: the upstream came back with different tracks$')) == 6, 5, 'six out')
            again = Read(proxy.url(), duration=2).result()
            assert set(again['readers'][0]['tracks']) == {'video'}, again


@test
def a_file_has_the_same_tracks_at_each_start():
    with Proxy({'/cam': {'upstream': f'file://{CLIP}', 'linger': '0s'}}) as proxy:
        for n in range(1, 4):
            assert Read(proxy.url(), duration=1).result()['totals']['ok'] == 1
            wait_until(lambda n=n: len(matches(proxy, 'down: no readers')) == n, 5, 'down')
        assert 'different tracks' not in proxy.output()


@test
def a_stopped_proxy_does_not_blame_the_upstream():
    with Origin() as origin, Proxy({'/cam': {'upstream': origin.url, 'transport': 'tcp',
                                             'read-timeout': '1s'}}) as proxy:
        reads = Read(proxy.url(), '--tolerate-gaps', readers=2, duration=6)
        wait_for_readers(proxy, 2)
        proxy.signal(signal.SIGSTOP)
        time.sleep(2)
        proxy.signal(signal.SIGCONT)
        assert reads.result(None)['totals']['statuses'] == {'ok': 2}
        assert 'no media' not in proxy.output(), proxy.output()


@test
def readers_stay_with_an_upstream_that_keeps_closing():
    with Origin('close-after=1') as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        result = Read(proxy.url(), '--tolerate-gaps', readers=2, duration=6).result(None)
        check_continuous(result, 2)
        assert origin.count('play') >= 2, origin.output()


@test
def a_silent_upstream_is_restarted():
    with Origin('silent-after=1') as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        result = Read(proxy.url(), '--tolerate-gaps', readers=2, duration=6).result(None)
        check_continuous(result, 2)
        assert origin.count('play') >= 2, origin.output()
        proxy.wait_for_line(r' mount /cam down: .*: no media for 1\.0 s; next try in ')


@test
def a_silent_track_does_not_stop_the_other():
    with Origin('one-silent-track') as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        reads = [Read(proxy.url(), '--min-aus', 0, transport=transport, duration=3)
                 for transport in ('udp', 'tcp')]
        for read in reads:
            result = read.result()
            video = result['readers'][0]['tracks']['video']
            assert video['aus'] > 40 and video['lost'] == 0, result
        assert not matches(proxy, ' down: .*next try'), proxy.output()


# ---- down ----


def down(origin_url, reason, origin=None, **settings):
    """Checks that DESCRIBE is refused in time, the log says why, and another mount is served."""
    with Origin() as good:
        bad = serve(origin_url, linger='20s', start_timeout=f'{START}s', **settings)
        mounts = {'/bad': bad, '/good': good.url}
        with Proxy(mounts) as proxy:
            assert proxy.ask('DESCRIBE', '/good')[0] == 200
            answers = []
            asking = threading.Thread(target=lambda: answers.append(proxy.ask('DESCRIBE', '/bad')))
            asking.start()
            worst = 0
            while asking.is_alive():
                status, seconds = proxy.ask('DESCRIBE', '/good')
                worst = max(worst, seconds)
                assert status == 200, status
                asking.join(0.1)
            assert worst < START - 1, worst
            assert answers and answers[0][0] == 503, answers
            assert answers[0][1] < START + 3, answers
            proxy.wait_for_line(
                rf' mount /bad down: rtsp://\S+: {reason}; next try in 0\.[2-5] s$', 5)
            assert not matches(proxy, ' mount /bad up: '), proxy.output()
            assert not matches(proxy, ' mount /good down: '), proxy.output()
            proxy.check_alive()


def misbehaving(mode, reason, **settings):
    with Origin(mode) as origin:
        down(origin.url, reason, **settings)


@test
def a_silent_upstream_is_down():
    misbehaving('silent', '.+')


@test
def a_silent_upstream_over_tcp_is_down():
    misbehaving('silent', r'no media for \d\.\d s', transport='tcp')


@test
def a_hanging_upstream_is_down():
    misbehaving('hang', r'(no answer within 1\.0 s|Could not read from resource\.)')


@test
def an_upstream_that_wants_credentials_is_down():
    misbehaving('401', '.*([Uu]nauthorized|[Aa]uthenticat).*')


@test
def an_upstream_that_answers_404_is_down():
    misbehaving('404', '.*[Nn]ot found.*')


@test
def an_upstream_with_a_garbled_description_is_down():
    misbehaving('garbage-sdp', '.+')


@test
def an_upstream_without_udp_is_down_if_transport_is_udp():
    misbehaving('no-udp', '.+', transport='udp')


@test
def an_upstream_that_refuses_the_connection_is_down():
    down(f'rtsp://127.0.0.1:{free_port()}/cam', '.*')


@test
def tcp_is_used_if_udp_is_refused():
    with Origin('no-udp') as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        Read(proxy.url(), duration=2).result()
        assert matches(origin, 'event=play .*transport=tcp'), origin.output()


@test
def a_redirect_to_another_host_is_not_followed():
    asked = []
    listening = socket.create_server(('127.0.0.1', 0))
    other = listening.getsockname()[1]

    def accept():
        while True:
            try:
                peer = listening.accept()[0]
                peer.settimeout(3)
                asked.append(peer.recv(4096))
                peer.close()
            except TimeoutError:
                pass
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    try:
        misbehaving(f'redirect=rtsp://127.0.0.1:{other}/x',
                    'redirected to another host or port, which the proxy does not follow')
    finally:
        listening.close()
    assert not [data for data in asked if data], asked


def hammer(proxy, path, seconds, readers=20):
    """Sends DESCRIBEs one after the other, each on a new connection, from many clients at once."""
    end = time.monotonic() + seconds
    statuses = []

    def ask():
        while time.monotonic() < end:
            statuses.append(proxy.ask('DESCRIBE', path)[0])
            time.sleep(0.02)

    threads = [threading.Thread(target=ask) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 10)
        assert not thread.is_alive()
    return statuses


def attempts_under_hammer(**settings):
    with Origin('404') as origin, Proxy({'/cam': serve(origin.url, **settings)}) as proxy:
        statuses = hammer(proxy, '/cam', 4)
        attempts = origin.count('connect')
        told = len(matches(proxy, r' mount /cam down: .*next try in'))
        assert set(statuses) == {503} and len(statuses) >= 20, set(statuses)
        assert told <= attempts <= told + 1, (told, attempts)
        # The waits are at least 0.25, 0.5, 1 and 2 s.
        assert 2 <= attempts <= 5, (attempts, proxy.output())


@test
def readers_cannot_hasten_the_next_try():
    attempts_under_hammer(linger='20s')


@test
def a_reader_that_goes_and_comes_cannot_hasten_the_next_try():
    """a reader that leaves and comes back cannot hasten the next try"""
    with Origin('404') as origin:
        with Proxy({'/cam': serve(origin.url, linger='0ms')}) as proxy:
            statuses = hammer(proxy, '/cam', 3, readers=1)
            attempts = origin.count('connect')
            assert set(statuses) == {503}, set(statuses)
            assert attempts <= 5, f'{attempts} connections in 3 s'


# ---- the description is remembered ----


def described(proxy):
    status, seconds = proxy.ask('DESCRIBE')
    assert status == 200, status
    assert seconds < 1.5, seconds  # the start time-out of QUICK is 20 s


@test
def a_description_is_remembered_while_readers_wait():
    with Origin() as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        with Read(proxy.url(), duration=60):
            wait_for_readers(proxy, 1)
            origin.kill()
            described(proxy)
            proxy.wait_for_line(r' mount /cam down: ', 6)
            described(proxy)


@test
def a_description_is_remembered_while_the_upstream_lingers():
    with Origin() as origin, Proxy({'/cam': serve(origin.url, linger='20s')}) as proxy:
        Read(proxy.url(), duration=1).result()
        origin.kill()
        proxy.wait_for_line(r' mount /cam down: ', 6)
        described(proxy)


# ---- on demand ----


@test
def the_upstream_ends_after_the_last_reader_and_the_linger_time():
    with Origin() as origin, Proxy({'/cam': serve(origin.url, linger='500ms')}) as proxy:
        Read(proxy.url(), readers=2, duration=1).result()
        assert origin.count('teardown') == 0, origin.output()
        start = time.monotonic()
        origin.wait_for('teardown', 3)
        assert time.monotonic() - start > 0.3
        proxy.wait_for_line(r' mount /cam down: no readers for 0\.5 s$')
        # The upstream starts again for the next reader.
        Read(proxy.url(), duration=1).result()
        assert origin.count('play') == 2, origin.output()


@test
def a_reader_within_the_linger_time_finds_the_upstream_running():
    with Origin() as origin, Proxy({'/cam': serve(origin.url, linger='6s')}) as proxy:
        for transport in 'udp', 'tcp', 'udp':
            Read(proxy.url(), transport=transport, duration=1).result()
        assert origin.count('play') == 1 and origin.count('connect') == 1, origin.output()
        origin.wait_for('teardown', 10)


@test
def nothing_starts_without_a_request():
    with Origin() as origin, Proxy({'/cam': serve(origin.url)}) as proxy:
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('OPTIONS', proxy.url())[0] == 200
        assert origin.count('connect') == 0, origin.output()


@test
def with_on_demand_off_the_upstream_runs_without_readers():
    with Origin() as origin, Proxy({'/cam': serve(origin.url, on_demand='no')}) as proxy:
        origin.wait_for('play', 5)
        proxy.wait_for_line(' mount /cam up: ')
        Read(proxy.url(), duration=1).result()
        time.sleep(0.7)  # longer than the linger time; a missing event prints no line
        assert origin.count('teardown') == 0 and origin.count('play') == 1, origin.output()


# ---- a clip ----


@test
def events_of_upstreams_wait_until_the_proxy_has_started():
    """no thread but the main one changes the state of mounts while they start"""
    line = 'launch:audiotestsrc is-live=true name=a{} ! rtpL16pay name=pay0'
    mounts = {f'/m{n}': {'upstream': line.format(n), 'on-demand': 'no'} for n in range(200)}
    with Proxy(mounts) as proxy:
        proxy.wait_for_line(' mount /m199 up: ', 20)
        up = next(n for n, line in enumerate(proxy.lines) if ' up: ' in line)
        assert all(' serves ' in line for line in proxy.lines[:200]), proxy.lines[:up + 1]


@test
def a_clip_is_served_whole_whatever_decoders_are_installed():
    # parsebin tells its parsers what the first decoder accepts.
    for absent in 'none', 'avdec_h264':
        with tempfile.TemporaryDirectory() as directory:
            # The registry keeps the ranks that it was created with.
            env = {'GST_REGISTRY': os.path.join(directory, 'registry.bin'),
                   'GST_PLUGIN_FEATURE_RANK': f'{absent}:NONE'}
            with Proxy(('--mount', f'/clip=file://{CLIP}'), env=env) as proxy:
                result = load('--duration', 1, '--verbose', proxy.url('/clip'))
        check(result, connected=1, refused={}, errors={}, lost=0)
        media = [track['media'] for track in result['per_reader'][0]['tracks']]
        assert media == ['video', 'other'], media


if __name__ == '__main__':
    run(at_once=4)
