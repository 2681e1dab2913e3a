# SPDX-License-Identifier: LGPL-2.1-or-later
"""Live presentations as MPEG transport streams: over HTTP to any number of readers."""

import hashlib
import http.client
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack

from livets import ENCODED, Served, clip
from proc import thread_names
from proxy import wait_until
from tap import run, test
from transportstream import check_packets, frames, media_times, offset_error, stream_of

def take(reader, seconds=None, size=None):
    data, end = b'', time.monotonic() + (seconds or 30)
    while time.monotonic() < end and (size is None or len(data) < size):
        more = reader.recv(65536)
        if not more:
            break
        data += more
    return data


@test
def frames_and_their_times_are_the_source_s():
    """over HTTP: each picture and each piece of sound is the source's, and within 5 ms of its
    offset; the first packets are the tables and a keyframe"""
    with Served() as proxy, tempfile.NamedTemporaryFile(suffix='.ts') as file:
        url = f'http://127.0.0.1:{proxy.web_port}/ts/cam'
        done = subprocess.run(['curl', '-s', '-m', '6', url, '-o', file.name], check=False)
        assert done.returncode == 28, done.returncode
        with open(file.name, 'rb') as data:
            stream = data.read()
        check_packets(stream)
        sent, source = frames(file.name), frames(clip())
        assert len(sent['v']) > 80 and len(sent['a']) > 150, {k: len(v) for k, v in sent.items()}
        known = {kind: {md5 for _, md5 in source[kind]} for kind in source}
        # The end of the stream is cut.
        for kind in 'va':
            wrong = [md5 for _, md5 in sent[kind][:-2] if md5 not in known[kind]]
            assert not wrong, (kind, len(wrong))
        assert offset_error(sent, source) < 0.005, offset_error(sent, source)


@test
def a_late_reader_begins_with_the_tables_and_a_keyframe():
    with Served() as proxy:
        first = proxy.stream()[2]
        take(first, seconds=2.5)
        second = proxy.stream()[2]
        data = take(second, size=40000)
        pids = [stream_of(data[n:n + 188]) for n in range(0, 188 * 3, 188)]
        assert pids[0] == 0 and pids[1] != 0 and data[188 * 2 + 5] & 0x40, (pids, data[376:388])
        first.close()
        second.close()
        wait_until(lambda: not proxy.readers(), 10, 'no readers')


@test
def the_api_shows_the_reader():
    with Served() as proxy:
        reader = proxy.stream()[2]
        take(reader, seconds=1)
        shown = proxy.readers()
        assert [(one['transport'], one['left-out'], one['state']) for one in shown] == [
            ('HTTP-TS', None, 'ok')], shown
        assert shown[0]['bytes'] > 10000, shown
        metrics = proxy.get('/metrics').decode()
        assert 'weir_readers{mount="/cam",transport="http-ts"} 1\n' in metrics
        assert proxy.http('DELETE', f'/v1/readers/{shown[0]["id"]}')[0] in (200, 204)
        take(reader, seconds=5)
        wait_until(lambda: not proxy.readers(), 10, 'no readers')
        reader.close()


@test
def a_codec_that_no_transport_stream_carries_is_left_out():
    with Served('vp8.webm') as proxy:
        reader = proxy.stream()[2]
        data = take(reader, size=20000)
        check_packets(data)
        assert proxy.readers()[0]['left-out'] == 'track 0: MPEG-TS cannot carry VP8', proxy.readers()
        proxy.wait_for_line(r'mount /cam: left out: track 0: MPEG-TS cannot carry VP8$')
        reader.close()
    with Served('vp8-only.webm') as proxy:
        status, head, reader = proxy.stream()
        body = reader.recv(1000).decode()
        assert status == 415 and 'track 0: MPEG-TS cannot carry VP8' in body, (head, body)
        reader.close()


@test
def sound_alone_is_a_stream():
    with Served('aac.mp4') as proxy, tempfile.NamedTemporaryFile(suffix='.ts') as file:
        reader = proxy.stream()[2]
        data = take(reader, seconds=3)
        check_packets(data)
        file.write(data)
        file.flush()
        sent, source = frames(file.name), frames(clip('aac.mp4'))
        assert len(sent['a']) > 80, len(sent['a'])
        assert {md5 for _, md5 in sent['a'][:-2]} <= {md5 for _, md5 in source['a']}
        reader.close()


@test
def a_track_that_falls_silent_holds_nobody_up():
    """a title whose sound ends after 2 s: the video goes on"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'short.mkv')
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25',
                        '-f', 'lavfi', '-i', 'sine=sample_rate=48000:duration=2', '-t', '12',
                        *ENCODED, path], check=True, stdin=subprocess.DEVNULL)
        with Served(mount={'upstream': f'file://{path}'}) as proxy:
            reader = proxy.stream()[2]
            with tempfile.NamedTemporaryFile(suffix='.ts') as file:
                file.write(take(reader, seconds=6))
                file.flush()
                times = media_times(file.name)
            assert max(times['v']) - min(times['v']) > 4, times['v'][-1]
            reader.close()


@test
def a_reader_that_stops_reading_delays_nobody():
    with Served() as proxy:
        stuck = proxy.stream(rcvbuf=4096)[2]
        reader = proxy.stream()[2]
        start = time.monotonic()
        with tempfile.NamedTemporaryFile(suffix='.ts') as file:
            file.write(take(reader, seconds=13))
            took = time.monotonic() - start
            file.flush()
            times = media_times(file.name)['v']
        assert max(times) - min(times) > took - 1.5, (max(times) - min(times), took)
        # One that takes nothing for 10 s is closed.
        wait_until(lambda: len(proxy.readers()) == 1, 15, 'the stuck reader is closed')
        stuck.close()
        reader.close()


@test
def wrong_requests_are_refused():
    with Served(mounts={'/films': {'upstream': f'file://{os.path.dirname(clip())}/'},
                        '/down': {'upstream': 'rtsp://127.0.0.1:1/x', 'start-timeout': '1s'}},
                **{'strict-queries': 'yes'}) as proxy:
        for path, expected in (('/ts/none', 404), ('/ts/', 404), ('/ts', 404), ('/ts/films/b.mp4', 404),
                               ('/ts/films', 404), ('/ts/../cam', 404), ('/ts//cam', 404),
                               ('/ts/cam%00', 404), ('/ts/cam?size=1x1', 404), ('/ts/down', 503),
                               ('/ts/' + 'x' * 1000, 404), ('/ts/' + 'x' * 9000, 414)):
            status, head, reader = proxy.stream(path)
            assert status == expected, (path, head)
            reader.close()
        connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=10)
        connection.request('HEAD', '/ts/cam')
        answer = connection.getresponse()
        assert (answer.status, answer.getheader('Content-Type')) == (200, 'video/mp2t')
        connection.close()
        connection.request('POST', '/ts/cam')
        assert connection.getresponse().status == 405
        connection.close()
        proxy.signal(15)
        assert proxy.wait(8) == 0


@test
def only_those_who_may_read_get_the_stream():
    users = [{'name': name, 'digest': 'SHA-256:' + hashlib.sha256(
        f'{name}:rtsp-proxy:S3cr3tCanary'.encode()).hexdigest(), 'permissions': [may]}
             for name, may in (('ann', {'action': 'read', 'path': '/cam'}), ('bob', {'action': 'playback'}))]
    with Served(users=users, api='off') as proxy:
        assert proxy.stream()[0] == 401
        for name, expected in (('ann', '200'), ('bob', '403')):
            done = subprocess.run(
                ['curl', '-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', '--digest', '-u',
                 f'{name}:S3cr3tCanary', f'http://127.0.0.1:{proxy.web_port}/ts/cam'],
                capture_output=True, text=True, check=False)
            assert done.stdout.endswith(expected), (name, done.stdout)


@test
def max_readers_holds():
    with Served(mount={'max-readers': 1}) as proxy:
        first = proxy.stream()
        second = proxy.stream()
        assert (first[0], second[0]) == (200, 503), second[1]
        first[2].close()
        wait_until(lambda: proxy.stream()[0] == 200, 10, 'room for a reader')


@test
def a_mount_that_is_removed_ends_its_streams():
    with Served() as proxy:
        reader = proxy.stream()[2]
        take(reader, size=50000)
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] in (200, 204)
        take(reader, seconds=10)
        wait_until(lambda: not proxy.readers(), 10, 'no readers')
        reader.close()


@test(timeout=90)
def choices_of_layers_that_make_no_difference_have_one_multiplexer():
    # All in the same order, so that the first of them has shown 64 frames before the others come.
    asked = [f'{s}.{q}.{t}' for s in range(7) for q in range(4) for t in range(8)][:200]
    with Served('long.mp4') as proxy, ExitStack() as stack:
        def read(layers):
            status, head, reader = proxy.stream(f'/ts/cam?layers={layers}')
            assert status == 200, (layers, head)
            return stack.enter_context(reader)

        first = read(asked[0])
        got = 0
        while got < 400000: # more than four seconds
            got += len(first.recv(65536))
        before = len(thread_names(proxy.pid))
        for layers in asked[1:]:
            read(layers)
        assert len(thread_names(proxy.pid)) <= before + 8, thread_names(proxy.pid)


if __name__ == '__main__':
    run(at_once=4)
