# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-load against real servers, and against servers that misbehave."""

import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time

from loads import Load, check, load, load_at_once, refuse
from proc import free_port, free_udp_pair
from proxy import CLIP, Origin, Proxy
from scripted import AUDIO, VIDEO, Server, rtp
from tap import Skip, run, test

DEMO = f'/demo=file://{CLIP}'


def demo():
    return Proxy(('--mount', DEMO))


def flow(session, track=VIDEO):
    """Sends 25 frames a second until the reader leaves."""
    number = 0
    while not session.left.wait(0.04):
        session.send(track, rtp(number, 3600 * number, track=track))
        number += 1


@test
def the_proxy_is_read_over_udp_and_tcp():
    with demo() as proxy:
        for result in load_at_once('--readers', 20, '--duration', 2, proxy.url('/demo'),
                                   transports=('udp', 'tcp', 'mixed')):
            check(result, readers=20, connected=20, refused={}, errors={}, lost=0, reordered=0,
                  duplicates=0, invalid=0, early=0)
            assert result['packets'] > 20 * 50, result
            for name, n in (('describe', 20), ('setup', 40), ('play', 20), ('first_packet', 20)):
                assert result[f'{name}_ms']['n'] == n, result
            assert result['signal']['setups'] == 20, result


@test
def audio_can_be_left_out():
    with demo() as proxy:
        result = load('--duration', 1, '--tracks', 'video', '--verbose', proxy.url('/demo'))
        tracks = result['per_reader'][0]['tracks']
        assert [track['media'] for track in tracks] == ['video'], tracks


@test
def digest_and_basic_credentials_work():
    for auth in 'digest-sha256', 'digest', 'basic':
        with Origin(user='viewer', password='secret', auth=auth) as origin:
            words = ('--duration', 1, '--user', 'viewer')
            result = load(*words, '--password', 'secret', origin.url)
            check(result, connected=1, refused={}, errors={})
            with_user = origin.url.replace('rtsp://', 'rtsp://viewer:secret@')
            check(load('--duration', 1, with_user), connected=1)
            refuse(*words, '--password', 'wrong', origin.url, line='401.*wrong user or password')
            said = refuse('--duration', 1, origin.url, line='401 .*needs --user and --password')
            check(json.loads(said[said.index('{'):]), connected=0, refused={'401': 1}, errors={})


@test
def an_unreachable_server_is_reported():
    refuse(f'rtsp://127.0.0.1:{free_port()}/x', line="cannot connect: Connection refused")
    refuse('rtsp://no-such-host.invalid/x', line='no-such-host.invalid')


@test
def a_server_that_never_answers_is_reported():
    with socket.create_server(('127.0.0.1', 0)) as deaf:
        said = refuse('--timeout', 0.5, '--readers', 3, f'rtsp://127.0.0.1:{deaf.getsockname()[1]}/',
                      line='no answer to DESCRIBE')
    check(json.loads(said[said.index('{'):]), connected=0, errors={'timeout': 3})


@test
def a_server_that_stops_answering_is_reported():
    for method in 'SETUP', 'PLAY', 'TEARDOWN':
        with Server(flow, deaf_to=(method,)) as server:
            for transport in 'udp', 'tcp':
                refuse('--timeout', 0.5, '--duration', 1, '--transport', transport, server.url,
                       line=f'no answer to {method}')


@test
def a_server_that_goes_away_is_reported():
    def vanish(session):
        for number in range(10):
            session.send(VIDEO, rtp(number, 3600 * number))
        session.connection.shutdown(socket.SHUT_RDWR)

    for transport in 'udp', 'tcp':
        with Server(vanish) as server:
            result = load('--duration', 30, '--transport', transport, server.url, status=1)
            check(result, connected=1, errors={'closed': 1}, packets=10)


@test
def a_server_that_sends_no_media_is_reported():
    with Server() as server:
        refuse('--duration', 1.5, server.url, line='no packet arrived in 1.* s')


@test
def a_description_without_video_is_reported():
    with Server(tracks=(AUDIO,)) as server:
        for tracks in 'video', 'all':
            refuse('--tracks', tracks, server.url, line='the description has no video')
    with Server(tracks=()) as server:
        refuse(server.url, line='the description has no tracks')


@test
def a_server_that_speaks_no_rtsp_is_reported():
    for answer in b'HTTP/1.1 200 OK\r\n\r\n', b'\0\r\n\r\n', b'\x80' * 300000:
        with socket.create_server(('127.0.0.1', 0)) as server:
            with Load(f'rtsp://127.0.0.1:{server.getsockname()[1]}/') as running:
                with server.accept()[0] as connection:
                    connection.sendall(answer)
                    running.wait_for_line('bytes that are not RTSP')
                    check(running.result(1), errors={'bad-answer': 1})


@test
def a_missing_path_is_reported():
    with demo() as proxy:
        said = refuse('--readers', 3, proxy.url('/nope'), line='DESCRIBE got 404 Not Found')
        check(json.loads(said[said.index('{'):]), connected=0, refused={'404': 3})


@test
def a_full_port_range_is_reported():
    rtp_socket, rtcp_socket = free_udp_pair()
    port = rtp_socket.getsockname()[1]
    with rtp_socket, rtcp_socket, Server(flow) as server:
        refuse('--ports', f'{port}-{port + 1}', server.url, line='the range of --ports is full')


@test
def too_few_files_are_reported():
    refuse('--readers', 1000000, 'rtsp://127.0.0.1/x', line='open files.*raise it.*nr_open|ulimit')


@test
def wrong_arguments_are_refused():
    url = 'rtsp://127.0.0.1/x'
    for words in ((), ('http://127.0.0.1/',), ('--transport', 'quic', url), ('--readers', 0, url),
                  ('--arrivals', 'uniform:0', url), ('--arrivals', 'poisson', url),
                  ('--session', 'exp:', url), ('--tracks', 'audio', url), ('--ports', '9-1', url),
                  ('--probes', 2, url), ('--slow', 1, url), ('--loss', 101, url),
                  ('--duration', 0, url), ('--nonsense', url), ('--readers', 'x', url)):
        refuse(*words, line='^rtsp-load: .*--help', status=2)


@test
def mute_readers_ignore_the_media():
    with Server(flow) as server:
        results = load_at_once('--mute', '--readers', 5, '--duration', 1, server.url)
        assert all(session.left.is_set() for session in server.sessions)
    for result in results:
        check(result, connected=5, packets=0, errors={})
        assert result['signal']['setups'] == 5, result


@test
def sessions_are_kept_alive():
    with Server(flow, timeout=2) as server:
        load_at_once('--duration', 2.5, server.url)
        assert len(server.sessions) == 2
        for session in server.sessions:
            asked = session.asked
            assert asked[:3] == ['DESCRIBE', 'SETUP', 'PLAY'] and asked[-1] == 'TEARDOWN', asked
            # A request every second; a busy machine may miss one.
            assert set(asked[3:-1]) == {'OPTIONS'}, asked


@test
def slow_readers_read_nothing_and_are_not_counted():
    blocked = []

    def flood(session):
        """Sends more data than fits into the buffers of a connection that nobody reads."""
        second = struct.pack('ll', 1, 0)
        session.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, second)
        session.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100000)
        try:
            for number in range(20000):
                session.send(VIDEO, rtp(number, 3600 * number, bytes(1000)))
        except BlockingIOError:
            blocked.append(session)

    with Server(flood) as server:
        result = load('--readers', 3, '--slow', 1, '--arrivals', 'uniform:5', '--transport', 'tcp',
                      '--duration', 6, server.url)
        check(result, connected=3, packets=40000, lost=0, errors={})
        assert blocked == server.sessions[2:], blocked


@test
def probes_have_the_lowest_ports_and_are_all_that_is_measured():
    readers = 10
    with Server(flow, tracks=(VIDEO, AUDIO)) as server:
        # Other processes may use a part of the range.
        result = load('--readers', readers, '--probes', 2, '--ports', '21001-22999', '--duration',
                      1, '--verbose', server.url)
    per_reader = result['per_reader']
    ports = [[track['port'] for track in reader['tracks']] for reader in per_reader]
    assert [reader['measured'] for reader in per_reader] == [True] * 2 + [False] * 8, per_reader
    flat = [port for reader in ports for port in reader]
    assert all(port % 2 == 0 and 21001 < port < 23000 for port in flat), ports
    probes = [port for reader in ports[:2] for port in reader]
    others = [port for reader in ports[2:] for port in reader]
    assert max(probes) < min(others), ports
    check(result, connected=readers, probes=2, probe_ports=[min(probes), max(probes) + 1])
    assert result['play_ms']['n'] == 2, result
    measured = sum(track['packets'] for reader in per_reader[:2] for track in reader['tracks'])
    assert result['packets'] == measured > 0, result


@test
def the_series_has_a_point_each_second_and_ends_with_the_sums():
    with Server(flow) as server:
        result = load('--readers', 2, '--duration', 2.5, server.url)
    series = result['series']
    # A point that a busy machine misses is not made up for.
    assert 2 <= len(series) <= 4 and all(point['playing'] in (0, 1, 2) for point in series), series
    for key in 'at_s', 'packets', 'bytes', 'lost':
        values = [point[key] for point in series]
        assert values == sorted(values), (key, series)
    assert series[0]['packets'] > 0 and series[0]['at_s'] >= 1, series
    assert {key: series[-1][key] for key in ('packets', 'bytes', 'lost')} == \
        {key: result[key] for key in ('packets', 'bytes', 'lost')}, (series, result)


@test
def readers_come_and_go_one_by_one():
    with Server(flow) as server:
        result = load('--readers', 10, '--arrivals', 'uniform:10', '--session', '0.3', '--duration',
                      60, server.url)
        assert all(session.left.is_set() for session in server.sessions)
    check(result, connected=10, errors={})
    # The readers join over 0.9 s, and then the last session runs.
    assert 1.2 <= result['duration_s'] < 30, result
    assert result['signal']['per_second'] <= 10 / 0.9, result


@test
def readers_that_join_too_late_are_reported():
    with Server(flow) as server:
        said = refuse('--readers', 10, '--arrivals', 'uniform:2', '--duration', 0.7, server.url,
                      line='8 of 10 readers had not started')
    check(json.loads(said[said.index('{'):]), connected=2, errors={'late': 8})


@test
def arrival_times_depend_only_on_the_seed():
    def order(seed):
        with Server(flow) as one, Server(flow) as two:
            result = load('--readers', 30, '--zipf', 2, '--seed', seed, '--arrivals', 'poisson:200',
                          '--session', 'exp:0.1', '--duration', 60, '--verbose', one.url, two.url)
            check(result, connected=30)
            return [reader['url'] == one.url for reader in result['per_reader']]

    first = order(1)
    assert order(1) == first
    assert order(2) != first
    # The weights are 1 and 1/4.
    assert 15 < sum(first) < 30, first


@test
def readers_use_the_urls_in_turn():
    with Server(flow) as one, Server(flow) as two:
        result = load('--readers', 6, '--duration', 0.5, '--verbose', one.url, two.url)
    urls = [reader['url'] for reader in result['per_reader']]
    assert urls == [one.url, two.url] * 3, urls


@test
def added_delay_is_measured_against_the_origin():
    # With join: live, because other readers get packets from before the origin was read.
    with Origin() as origin, Proxy({'/cam': {'upstream': origin.url, 'join': 'live'}}) as proxy:
        for transport in 'udp', 'tcp':
            result = load('--readers', 3, '--duration', 3, '--transport', transport, '--against',
                          origin.url, proxy.url())
            check(result, connected=3, errors={}, lost=0, unmatched=0)
            added = result['added_delay_ms']
            assert added['n'] == result['packets'] > 100, result
            assert 0 < added['p50'] <= added['p99'] <= added['max'], added


@test
def a_stream_from_another_origin_matches_nothing():
    with Origin() as origin, Origin() as other:
        result = load('--duration', 1, '--against', origin.url, other.url)
        check(result, connected=1, added_delay_ms=None)
        assert result['unmatched'] == result['packets'] > 0, result


@test
def a_missing_origin_is_reported():
    with Server(flow) as server:
        gone = f'rtsp://127.0.0.1:{free_port()}/x'
        refuse('--duration', 1, '--against', gone, server.url, line=f'{gone}: cannot connect')


@test
def sigint_ends_it_with_a_result():
    with demo() as proxy, Load('--duration', 600, '--readers', 3, proxy.url('/demo')) as running:
        proxy.wait_for_line(' reader .* in: ')
        time.sleep(0.2)
        running.signal(signal.SIGINT)
        result = running.result()
        check(result, errors={})
        assert result['connected'] >= 1, result


@test
def gnuplot_draws_the_plot():
    if not shutil.which('gnuplot'):
        raise Skip('needs gnuplot')
    with tempfile.TemporaryDirectory() as directory, demo() as proxy:
        file = os.path.join(directory, "a 'plot'.png")
        for extra in (), ('--mute',):  # also without any value to draw
            said = load('--duration', 1, '--plot', file, *extra, proxy.url('/demo'))
            check(said, connected=1)
            with open(file, 'rb') as png:
                data = png.read()
            assert data[:8] == b'\x89PNG\r\n\x1a\n' and len(data) > 5000, len(data)
            os.remove(file)


@test
def a_plot_without_a_plotter_is_refused():
    said = refuse('--plot', '/tmp/plot.png', 'rtsp://127.0.0.1/x', line='needs gnuplot',
                  command=('env', 'PATH=/nonexistent'))
    assert '{' not in said, said


def play_five(session):
    for number in range(5):
        session.send(VIDEO, rtp(2 * number, 3600 * number))


@test
def without_json_it_prints_a_table():
    with Server(play_five) as server, Load('--duration', 1, server.url, json=False) as running:
        assert running.wait() == 0, running.output()
        for line in 'connected +1 of 1$', 'packets +5$', 'lost +4$', 'first packet +1 ':
            running.wait_for_line(line, 1)


@test
def a_terminal_shows_progress():
    terminal = (sys.executable, '-c', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)')
    with Server(flow) as server, Load('--duration', 1.5, server.url, command=terminal,
                                      json=False) as running:
        running.wait_for_line(r' 1 s  1 playing  0 refused  0 failed  \d+ packets/s .* 0 lost')
        assert running.wait() == 0, running.output()
        running.wait_for_line('connected +1 of 1', 1)


@test
def help_lists_options_and_measures():
    with Load('--help') as running:
        assert running.wait() == 0
        for word in ('Readers:', '--readers', 'Example:', '--against', 'added delay',
                     'Exit status'):
            assert word in running.output(), word


if __name__ == '__main__':
    run(at_once=8)
