# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients see of broadcasts of titles and of live mounts: descriptions, and packets by unicast
and on multicast groups; ordinary players notice nothing. The multicast stays in a network of this
process."""

import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import time
from contextlib import ExitStack

from control import Controlled, config, rss_kib
from films import SECONDS, Player, annex_b, ffmpeg, film_pictures, folder, path_of, pictures, url_of
from good import SANITIZED
from multicast import enter_network, join
from proc import Proc, Rtsp
from proxy import wait_until
from sanitized import stock_environment
from tap import Skip, run, test
from tspackets import AUDIO_PID, VIDEO_PID, packet, pes, table_packets

GROUP, PORT = '239.7.7.7', 15004
SUPPORTED = {'Supported': 'x-weir-schedule'}
RANGES = {'Content-Type': 'application/x-weir-ranges'}
FPS = 25
SHOW = ['-an', '-vsync', 'passthrough', '-frames:v']  # each picture once


HAS_NETWORK = enter_network()


def live(port=PORT):
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    return {'/cam': {'upstream': f'file://{path_of("film.mp4")}', 'on-demand': False,
                     'broadcast': {'groups': GROUP, 'port': port, 'iface': 'lo', 'ttl': 0}},
            '/other': {'upstream': f'file://{path_of("film.mp4")}'}}


def records(body):
    """Yields (number, track, packet) of an answer."""
    at = 0
    while at < len(body):
        number, track, size = struct.unpack_from('>IHH', body, at)
        assert at + 8 + size <= len(body), (at, size)
        yield number, track, body[at + 8:at + 8 + size]
        at += 8 + size


def seq_of(packet):
    return struct.unpack_from('>H', packet, 2)[0]


class Client(Rtsp):
    """A client that knows broadcasts."""

    def __init__(self, proxy, path='/cam'):
        super().__init__(proxy.port, timeout=20)
        self.url = proxy.url(path)

    def describe(self, headers=None):
        return self.request('DESCRIBE', self.url, {**SUPPORTED, **(headers or {})})

    def describe_soon(self):
        """Describes a title when it is prepared. Returns the headers and the description."""
        for _ in range(60):
            status, headers, body = self.describe()
            if status != 503:
                break
            time.sleep(int(headers['retry-after']))
        assert status == 200, (status, body)
        return headers, body.decode()

    def ask(self, text, status=200, headers=None):
        """Asks for packets. Returns the answer's records, or its reason."""
        answer = self.request('GET_PARAMETER', self.url, {**RANGES, **(headers or {})},
                              text.encode())
        assert answer[0] == status, answer
        if status != 200:
            assert answer[1]['content-type'] == 'text/plain', answer
            return answer[2].decode()
        assert answer[1]['content-type'] == 'application/x-weir-packets', answer
        got = list(records(answer[2]))
        assert len(got) <= 256 and len(answer[2]) <= 256 << 10, (len(got), len(answer[2]))
        return got


def wait_until_up(proxy):
    proxy.wait_for_line(r' mount /cam up')


@test
def a_live_mount_describes_its_group():
    with Controlled(live()) as proxy, Client(proxy) as client:
        wait_until_up(proxy)
        status, headers, body = client.describe()
        sdp = body.decode()
        assert status == 200 and headers['supported'] == 'x-weir-schedule', headers
        assert headers['content-base'] == proxy.url('/cam/') and 'GMT' in headers['expires'], headers
        known = re.search(r'^a=x-weir-schedule:1 id=([0-9a-f]+) scheme=live now=[\d.]+ play=[\d.]+ '
                          r'frames=0 frame=\d+\r$', sdp, re.M)
        assert known and headers['etag'] == f'"{known[1]}"', (headers, sdp)
        assert f'a=x-weir-channel:0 group={GROUP} port={PORT} ttl=0\r\n' in sdp, sdp
        assert f'a=source-filter: incl IN IP4 {GROUP} 127.0.0.1\r\n' in sdp, sdp
        assert sdp.index('a=x-weir-channel') < sdp.index('m=') and sdp.count('\nm=') == 2, sdp
        # The tracks are those of the ordinary description, and can be set up.
        status, _, body = client.request('DESCRIBE', client.url)
        ordinary = body.decode()
        assert status == 200 and 'x-weir' not in ordinary and 'source-filter' not in ordinary
        for what in ('rtpmap', 'fmtp', 'control:stream'):
            pattern = rf'^a={what}.*$'
            assert re.findall(pattern, sdp, re.M) == re.findall(pattern, ordinary, re.M), what
        status, headers, _ = client.request(
            'SETUP', f'{client.url}/stream=0',
            {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})
        assert status == 200, headers
        # The tracks are synchronised by their timestamps of one instant.
        clocks = [int(n) for n in re.findall(r'^a=rtpmap:\d+ [^/]+/(\d+)', sdp, re.M)]
        offsets = set()
        with join(GROUP, PORT) as receiver, join(GROUP, PORT + 2) as audio:
            receiver.recv(2000)
            audio.recv(2000)
            for _ in range(3):
                sdp = client.describe()[2].decode()
                times = [int(n) for n in re.findall(r'^a=x-weir-rtptime:(\d+)', sdp, re.M)]
                assert len(times) == len(clocks) == 2, sdp
                offset = (times[0] / clocks[0] - times[1] / clocks[1])
                offsets.add(round(offset % (2**32 / clocks[0]) % (2**32 / clocks[1]), 3))
                for _ in range(30):
                    now = struct.unpack_from('>I', receiver.recv(2000), 4)[0]
                # The group is at that instant, more or less.
                behind = (now - times[0] + 2**31) % 2**32 - 2**31
                assert abs(behind) < 10 * clocks[0], (now, times)
        assert max(offsets) - min(offsets) < 0.002, offsets
        # Without a broadcast, the header changes nothing.
        with Client(proxy, '/other') as other:
            status, headers, body = other.describe()
            assert status == 200 and 'supported' not in headers and b'x-weir' not in body
        # Nor does it with choices, which the group has not.
        with Client(proxy, '/cam?layers=0.0.0') as chosen:
            status, headers, body = chosen.describe()
            assert status == 200 and 'supported' not in headers and b'x-weir' not in body
            assert 'no broadcast' in chosen.ask('live', 415)
        # A wrong value is one for any client.
        with Client(proxy, '/cam?delay=3') as wrong:
            assert wrong.describe()[0] == 404
            wrong.ask('live', 404)


QUERIES = '?_=123', '?tcp', '?transportmode=unicast&profile=Profile_1', '?', '?token=S3cr3t', '?a=b/c'


@test
def queries_that_a_mount_does_not_offer_change_no_broadcast():
    """a live mount's broadcast is described and read, and its tracks are set up, by any such URL"""
    with Controlled(live()) as proxy:
        wait_until_up(proxy)
        for query in QUERIES:
            with Client(proxy, '/cam' + query) as client:
                status, headers, body = client.describe()
                assert status == 200 and b'\na=x-weir-schedule:1 ' in body, (query, status, body)
                # Clients append the tracks to it, so it has no query, and no secret of one.
                assert headers['content-base'] == proxy.url('/cam/'), headers
                assert client.ask('live'), query
            for url in '/cam/stream=0', f'/cam{query}/stream=0', f'/cam/stream=0{query}':
                with Client(proxy, '/cam' + query) as client:
                    assert client.describe()[0] == 200
                    status = client.request('SETUP', proxy.url(url), {
                        'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})[0]
                    assert status == 200, (url, status)
        with Client(proxy, '/cam/') as client:
            assert client.describe()[1]['content-base'] == proxy.url('/cam/')
        assert 'reloaded' in proxy.hang_up(config(live(), **{'strict-queries': True}))
        for query in QUERIES:
            with Client(proxy, '/cam' + query) as client:
                allowed = query in ('?', '?token=S3cr3t')
                assert client.describe()[0] == (200 if allowed else 404), query


def receive(receiver, got):
    packet = receiver.recv(2000)
    seq = seq_of(packet)
    assert got.get(seq, packet) == packet, f'packet {seq} differs from the one that came by unicast'
    got[seq] = packet
    return seq


def fetch_until(client, got, seq):
    """Gets the packets from the newest join point up to `seq` by unicast. Returns the first."""
    first = last = None
    while last is None or 0 < (seq - last) % 65536 < 32768:
        answer = client.ask('live' if first is None else f'0 {(last + 1) % 65536}-{seq}')
        video = [(number, packet) for number, track, packet in answer if track == 0]
        if not video or (first is not None and video[0][0] != (last + 1) % 65536):
            # The window has moved on to a newer join point.
            first = last = None
            continue
        for number, packet in video:
            assert seq_of(packet) == number and got.get(number, packet) == packet, number
            got[number] = packet
        first = video[0][0] if first is None else first
        last = video[-1][0]
    return first


def in_order(got, first, last):
    numbers = [(first + i) % 65536 for i in range((last - first) % 65536 + 1)]
    assert all(number in got for number in numbers), [n for n in numbers if n not in got][:5]
    return [got[number] for number in numbers]


@test(timeout=180)
def a_client_of_the_group_has_a_picture_at_once_and_misses_nothing():
    """unicast from the last keyframe on, then the group: all packets, and the film's pictures"""
    film = film_pictures()
    with Controlled(live()) as proxy:
        wait_until_up(proxy)
        for _ in range(4):
            with join(GROUP, PORT) as receiver, Client(proxy) as client:
                # It comes at any time of a group of pictures.
                for _ in range(random.randrange(60)):
                    receiver.recv(2000)
                assert client.describe()[0] == 200
                got = {}
                joined = receive(receiver, got)
                first = fetch_until(client, got, joined)
                # On a busy machine, a later picture is the newest one by now.
                while 0 < (first - joined) % 65536 < 32768:
                    joined = receive(receiver, got)
                packets = in_order(got, first, joined)
                # The unicast packets begin a picture that needs no other one.
                kinds = [(packet[12] & 31, packet[13] & 31) for packet in packets[:4]]
                assert kinds[0][0] in (7, 24), kinds
                pictures_left = 2 * FPS
                while pictures_left:
                    last = receive(receiver, got)
                    pictures_left -= got[last][1] >> 7
                packets = in_order(got, first, last)
                shown = pictures(['-f', 'h264', '-i', '-'],
                                 annex_b([(0, 0, 0, packet[12:]) for packet in packets]))
                assert len(shown) >= 2 * FPS, len(shown)
                # The film begins anew at its end.
                at = film.index(shown[0])
                assert at % FPS == 0, at
                expected = (film[at:] + film)[:len(shown)]
                assert shown == expected, (at, len(shown))


@test
def wrong_requests_for_packets_are_refused():
    with Controlled(live()) as proxy, Client(proxy) as client:
        wait_until_up(proxy)
        for text in ('', ' \n', 'x', 'live 1', 'live\n0 1-2', '0', '0 1', '0 1-', '0 -1', '0 1-2-3',
                     '0-1 2', '0  1-2', '0 65536-1', '-1 1-2', '0 1-2\nx', 'x' * 60000, '\0',
                     '0 1-2\n' * 300):
            client.ask(text, 400)
        assert 'no track 2' in client.ask('2 1-2', 457)
        client.ask('0 1-2', 406, {'Accept': 'text/plain'})
        for accept in ('*/*', 'application/*', 'text/plain, application/x-weir-packets;q=1'):
            client.ask('live', headers={'Accept': accept})
        client.url = proxy.url('/other')
        assert 'no broadcast' in client.ask('live', 415)
        client.url = proxy.url('/nothing')
        client.ask('live', 404)
        # Other parameters are answered as ever.
        cam = proxy.url('/cam')
        assert client.request('GET_PARAMETER', cam)[0] == 200
        assert client.request('GET_PARAMETER', cam, {'Content-Type': 'text/parameters'},
                              b'x\r\n')[0] == 451
        client.url = cam
        assert client.describe({'Accept': 'text/plain'})[0] == 406
        # Ranges that the window does not hold are left out.
        number = client.ask('live')[-1][0]
        assert client.ask(f'1 {(number + 20000) % 65536}-{(number + 20010) % 65536}') == []


@test
def the_door_guards_the_packets():
    users = [{'name': 'a', 'hash': 'sha256:' + 64 * '0',
              'permissions': [{'action': 'read', 'path': '/cam'}]}]
    with Controlled(live(), users=users, **{'basic-without-tls': True}) as proxy, \
            Client(proxy) as client:
        wait_until_up(proxy)
        status, headers, _ = client.request('GET_PARAMETER', client.url, RANGES, b'live')
        assert status == 401 and 'www-authenticate' in headers, headers
        assert client.describe()[0] == 401


@test
def a_reload_moves_the_group_and_no_reader_notices():
    film = film_pictures()
    with Controlled(live()) as proxy, join(GROUP, PORT) as before, \
            join(GROUP, PORT + 16) as after:
        wait_until_up(proxy)
        before.recv(2000)
        player = subprocess.Popen(
            ['ffmpeg', '-nostdin', '-loglevel', 'error', '-rtsp_transport', 'tcp', '-i',
             proxy.url('/cam'), *SHOW, str(4 * FPS), '-f', 'framemd5', '-'],
            stdout=subprocess.PIPE, text=True)
        proxy.wait_for_line(r' reader .* in: /cam')
        assert 'reloaded' in proxy.hang_up(config(live(PORT + 16)))
        after.recv(2000)
        lines = player.communicate(timeout=40)[0].splitlines()
        shown = [line.split(',')[-1].strip() for line in lines if not line.startswith('#')]
        at = film.index(shown[0])
        assert len(shown) == 4 * FPS and shown == (film[at:] + film)[:len(shown)], len(shown)
        with Client(proxy) as client:
            assert f'port={PORT + 16} ' in client.describe()[2].decode()
        # Nothing more comes on the old port.
        before.setblocking(False)
        try:
            while True:
                before.recv(2000)
        except BlockingIOError:
            pass
        for _ in range(50):
            after.recv(2000)
        try:
            assert not before.recv(2000)
        except BlockingIOError:
            pass
        stats = proxy.get('/v1/mounts/cam')['broadcast']
        assert stats['channels'] == 1 and stats['sent-packets'] > 0, stats
        # Without the key, there is no group.
        assert 'reloaded' in proxy.hang_up(config({'/cam': {'upstream': live()['/cam']['upstream'],
                                                            'on-demand': False}}))
        assert 'broadcast' not in proxy.get('/v1/mounts/cam')


@test
def ordinary_players_notice_nothing():
    film = film_pictures()
    with Controlled(live()) as proxy, join(GROUP, PORT) as receiver:
        wait_until_up(proxy)
        receiver.recv(2000)
        for transport in ('tcp', 'udp'):
            lines = ffmpeg('-rtsp_transport', transport, '-i', proxy.url('/cam'), *SHOW, '30', '-f',
                           'framemd5', '-').decode().splitlines()
            shown = [line.split(',')[-1].strip() for line in lines if not line.startswith('#')]
            at = film.index(shown[0])
            assert len(shown) == 30 and shown == (film[at:] + film)[:30], transport


# ---- titles ----

FILM = '/films/film.mp4'


def titles(**keys):
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    return {'/films': {'upstream': url_of(folder()[1]), 'broadcast': {
        'groups': '239.7.8.0/29', 'scheme': 'gdb', 'first': '5s', 'port': PORT, 'iface': 'lo',
        'ttl': 0, **keys}}}


def fetch_track(client, track, count):
    """Returns all packets of a track, by number."""
    packets = []
    while len(packets) < count:
        got = client.ask(f'{track} {len(packets)}-{count - 1}')
        assert got, len(packets)
        for number, of, packet in got:
            assert (number, of) == (len(packets), track), (number, of, len(packets))
            assert seq_of(packet) == number % 65536, (number, seq_of(packet))
            packets.append(packet)
    return packets


@test
def a_title_is_described_when_it_is_prepared():
    """the same packets have the same id, also after a restart"""
    ids = set()
    for _ in range(2):
        with Controlled(titles()) as proxy, Client(proxy, FILM) as client:
            assert 'film.mp4' in client.ask('0 0-1', 404)
            status, headers, body = client.describe()
            assert status == 503 and int(headers['retry-after']) >= 1, headers
            assert b'being prepared' in body and headers['content-type'] == 'text/plain', body
            headers, sdp = client.describe_soon()
            known = re.search(r'^a=x-weir-schedule:1 id=([0-9a-f]+) scheme=gdb .* frames=(\d+) '
                              r'frame=40000000\r$', sdp, re.M)
            assert known and headers['etag'] == f'"{known[1]}"', (headers, sdp)
            ids.add(known[1])
            # 5 s, 10 s and the rest.
            assert int(known[2]) == 20 * FPS, known[2]
            assert sdp.count('\na=x-weir-channel:') == 3 and sdp.count('\na=x-weir-send:') == 3, sdp
            assert f'\na=source-filter: incl IN IP4 239.7.8.0 127.0.0.1\r' in sdp, sdp
            # Its tracks can be played by unicast.
            assert headers['content-base'] == client.url + '/', headers
            status, setup, _ = client.request(
                'SETUP', f'{client.url}/stream=0',
                {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})
            assert status == 200, setup
            assert client.request('PLAY', client.url)[0] == 200
            assert client.frame()[1]
            stats = proxy.get('/v1/mounts/films')['broadcast']
            assert stats['titles'] == 1 and stats['preparing'] == 0 and stats['rate'] > 0, stats
            assert stats['admitted'] >= 1 and stats['refused-preparing'] >= 1, stats
    assert len(ids) == 1, ids


@test(timeout=180)
def packets_by_unicast_are_those_of_the_groups():
    """all packets of a title by their numbers: the film's pictures; groups send the same packets"""
    with Controlled(titles()) as proxy, Client(proxy, FILM) as client:
        _, sdp = client.describe_soon()
        counts = [int(n) for n in re.findall(r'^a=x-weir-packets:(\d+)', sdp, re.M)]
        assert len(counts) == 2, sdp
        video = fetch_track(client, 0, counts[0])
        fetch_track(client, 1, counts[1])
        shown = pictures(['-f', 'h264', '-i', '-'],
                         annex_b([(0, 0, 0, packet[12:]) for packet in video]))
        assert shown == film_pictures(), len(shown)
        for number in range(3):
            with join(f'239.7.8.{number}', PORT) as receiver:
                for _ in range(20):
                    packet = receiver.recv(2000)
                    assert packet == video[seq_of(packet)], (number, seq_of(packet))
        client.ask(f'0 {counts[0] - 1}-{counts[0]}', 457)
        client.ask('2 0-1', 457)
        for text in ('', 'live', '0 5-4', '0', '0 1-2\n\n0 1-2', '0 1-2\nx', '\0', '0 1-2\n' * 300):
            assert client.request('GET_PARAMETER', client.url, RANGES, text.encode())[0] in (
                400, 457), text
        got = client.ask('1 3-3\r\n0 7-9\n0 7-7')
        assert [(number, track) for number, track, _ in got] == [(3, 1), (7, 0), (8, 0), (9, 0),
                                                                 (7, 0)], got


@test
def one_answer_at_a_time_is_in_memory_for_a_client_that_does_not_read():
    """requests wait until their client has taken the last answer, and none is lost"""
    with Controlled(titles()) as proxy:
        with Client(proxy, FILM) as client:
            _, sdp = client.describe_soon()
            last = int(re.search(r'^a=x-weir-packets:(\d+)', sdp, re.M)[1]) - 1
        asked = 30

        def send(client):
            text = f'0 {max(last - 255, 0)}-{last}'.encode()
            head = (f'GET_PARAMETER {proxy.url(FILM)} RTSP/1.0\r\nCSeq: 1\r\n'
                    f'Content-Type: {RANGES["Content-Type"]}\r\nContent-Length: {len(text)}\r\n\r\n')
            client.send(head.encode() + text)

        limits = {'requests-per-second': 1000}
        assert 'reloaded' in proxy.hang_up(config(titles(), limits=limits))
        with Client(proxy, FILM) as client:
            client.describe_soon()
        with Rtsp(proxy.port, kernel=4096, timeout=20) as slow:
            for _ in range(asked):
                send(slow)
            # Another client is served meanwhile.
            with Client(proxy, FILM) as client:
                assert len(client.ask('0 0-9')) == 10
            for _ in range(asked):
                status, _, body = slow.answer()
                assert status == 200, status
                assert [number for number, _, _ in records(body)][-1] <= last


@test
def a_pool_or_rate_that_does_not_suffice_is_told():
    for keys, reason in (({'groups': '239.7.8.0/31'}, 'group'), ({'rate': '64k'}, 'limit')):
        with Controlled(titles(**keys)) as proxy, Client(proxy, FILM) as client:
            for _ in range(60):
                status, headers, body = client.describe()
                if status != 503:
                    break
                time.sleep(int(headers['retry-after']))
            assert status == 453 and reason in body.decode(), (status, body)
            # The title can be played by unicast.
            assert client.request('DESCRIBE', client.url)[0] == 200


@test
def titles_that_cannot_be_broadcast_are_told():
    with Controlled(titles()) as proxy:
        with Client(proxy, '/films/none.mp4') as client:
            for _ in range(2):
                assert client.describe()[0] == 404
            client.ask('0 0-1', 404)
        stats = proxy.get('/v1/mounts/films')['broadcast']
        assert stats['refused-preparing'] == 0 and stats['refused-other'] == 2, stats
        for path in ('/films', '/films/', '/films/../film.mp4', '/films/%00', '/films/' + 'a' * 1500):
            with Client(proxy, path) as client:
                assert client.describe()[0] == 404, path
                client.ask('0 0-1', 404)


def put_uneven_title(directory):
    """Writes a title with one picture and a million small pieces of sound."""
    picture = (b'\0\0\0\1\x09\x10\0\0\0\1\x67\x42\xc0\x0a\xda\x0f\x0a\x69\xa8\x10'
               b'\0\0\0\1\x68\xce\x3c\x80\0\0\0\1\x65\x88' + b'x' * 50)
    sound = b'\xff\xf1\x50\x80\x01\x3f\xfc\1\1' * 18
    with open(os.path.join(directory, 'uneven.ts'), 'wb') as file:
        file.write(b''.join(table_packets((0x1b, VIDEO_PID, b''), (0x0f, AUDIO_PID, b''))))
        file.write(packet(VIDEO_PID, pes(90000, picture)))
        for n in range(60000):
            time_of = 90000 + n * 18 * 1024 * 90000 // 44100
            file.write(packet(AUDIO_PID, pes(time_of, sound, 0xc0), counter=n))


@test
def packets_that_wait_for_another_track_take_limited_memory():
    with tempfile.TemporaryDirectory() as directory:
        put_uneven_title(directory)
        mounts = titles()
        mounts['/films']['upstream'] = url_of(directory)
        with Controlled(mounts) as proxy, Client(proxy, '/films/uneven.ts') as client:
            before = rss_kib(proxy)
            assert client.describe()[0] == 503
            proxy.wait_for_line(r'/films/uneven\.ts: cannot be broadcast: the file has one track '
                                r'more than 64 MiB behind another; interleave its tracks$', 20)
            # A sanitizer also keeps freed memory.
            more = (700 if SANITIZED else 128) << 10
            assert rss_kib(proxy, 'VmHWM') < before + more, rss_kib(proxy, 'VmHWM')


@test
def titles_are_for_those_who_may_play_them_back():
    users = [{'name': 'any', 'permissions': [{'action': 'read', 'path': '/films'}]}]
    with Controlled(titles(), users=users) as proxy, Client(proxy, FILM) as client:
        assert client.describe()[0] in (401, 403)
        assert client.request('GET_PARAMETER', client.url, RANGES, b'0 0-1')[0] in (401, 403)


@test(timeout=180)
def a_reload_ends_the_groups_of_titles_and_no_reader_notices():
    other = '239.7.8.64/29'
    with Controlled(titles()) as proxy, Client(proxy, FILM) as client, \
            join('239.7.8.0', PORT) as before:
        client.describe_soon()
        before.recv(2000)
        with Player(proxy) as player:
            player.play()
            player.read(5)
            assert 'reloaded: 1 changed' in proxy.hang_up(config(titles(groups=other)))
            # What the kernel holds of the old group, and then the end.
            before.settimeout(3)
            try:
                while True:
                    before.recv(2000)
            except TimeoutError:
                pass
            _, sdp = client.describe_soon()
            assert 'group=239.7.8.64 ' in sdp and 'group=239.7.8.0 ' not in sdp, sdp
            with join('239.7.8.64', PORT) as after:
                after.recv(2000)
            # Another key leaves the groups as they are.
            channels = re.findall(r'^a=x-weir-send.*$', sdp, re.M)
            changed = titles(groups=other)
            changed['/films']['max-readers'] = 7
            assert 'reloaded: 1 changed' in proxy.hang_up(config(changed))
            assert re.findall(r'^a=x-weir-send.*$', client.describe_soon()[1], re.M) == channels
            player.read(6 * FPS)
            shown = player.pictures()
            assert shown == film_pictures()[:len(shown)] and len(shown) >= 6 * FPS, len(shown)


@test
def the_api_refuses_groups_that_another_mount_has():
    with Controlled(titles(), **{'file-roots': [folder()[1]]}) as proxy:
        cast = {'upstream': url_of(folder()[1]), 'broadcast': {
            'groups': '239.7.8.4/30', 'port': PORT, 'iface': 'lo', 'ttl': 0}}
        status, _, body = proxy.http('PUT', '/v1/mounts/more', cast)
        assert status == 400 and '/films sends on 239.7.8.0/29' in str(body), (status, body)
        cast['broadcast']['port'] = PORT + 16
        status, _, body = proxy.http('PUT', '/v1/mounts/more', cast)
        assert status in (200, 201), (status, body)
        shown = proxy.get('/v1/mounts/more')
        assert shown['config']['broadcast']['groups'] == '239.7.8.4/30', shown
        assert shown['broadcast']['titles'] == 0, shown
        status, _, body = proxy.http('PATCH', '/v1/mounts/more', {'broadcast': None})
        assert status == 200 and 'broadcast' not in proxy.get('/v1/mounts/more'), (status, body)


@test
def ordinary_players_of_a_title_notice_nothing():
    with Controlled(titles()) as proxy, Client(proxy, FILM) as client:
        client.describe_soon()
        status, headers, body = client.request('DESCRIBE', client.url)
        assert status == 200 and b'x-weir' not in body and 'etag' not in headers, headers
        shown = pictures(['-rtsp_transport', 'tcp', '-t', '5', '-i', proxy.url(FILM)])
        assert shown == film_pictures()[:len(shown)] and len(shown) > 4 * FPS, len(shown)


def check_shown(shown, who):
    """Expects the film's pictures, from a keyframe on; the last one may be cut."""
    film = film_pictures()
    assert len(shown) > FPS, (who, len(shown))
    at = film.index(shown[0])
    assert at % FPS == 0 and shown[:-1] == (film[at:] + film)[:len(shown) - 1], (who, at)


class Other(Proc):
    """A player of others that writes H.264 into a file, until it is ended."""

    def __init__(self, url, transport, directory, words, name):
        super().__init__(*words, cwd=directory, env=stock_environment())
        self.who, self.file = (words[0], url, transport), os.path.join(directory, name)
        self.size = 2 * os.path.getsize(path_of('film.h264')) // SECONDS

    def check(self):
        """Waits for two seconds of the film, and ends the player."""
        wait_until(lambda: os.path.exists(self.file) and os.path.getsize(self.file) > self.size, 50,
                   self.who)
        self.stop()
        check_shown(pictures(['-f', 'h264', '-i', self.file]), self.who)


def others(url, directory):
    for transport in 'tcp', 'udp':
        at = os.path.join(directory, url.replace('/', '_') + transport)
        os.mkdir(at)
        yield Other(url, transport, at, ['openRTSP', *(['-t'] if transport == 'tcp' else []), url],
                    'video-H264-1')
        yield Other(url, transport, at,
                    ['gst-launch-1.0', 'rtspsrc', f'location={url}', f'protocols={transport}',
                     '!', 'rtph264depay', '!', 'video/x-h264,stream-format=byte-stream', '!', 'filesink',
                     'location=rtspsrc.h264', 'buffer-mode=unbuffered'], 'rtspsrc.h264')


@test(timeout=180)
def players_of_others_play_streams_and_titles():
    """over TCP and UDP: openRTSP, rtspsrc and playbin"""
    if not shutil.which('openRTSP'):
        raise Skip('openRTSP is not installed')
    with Controlled({**live(), **titles()}) as proxy, tempfile.TemporaryDirectory() as directory:
        wait_until_up(proxy)
        for path in '/cam', FILM:
            url = proxy.url(path)
            with ExitStack() as stack:
                running = [stack.enter_context(player) for player in others(url, directory)]
                watched = stack.enter_context(Proc(
                    'gst-launch-1.0', '-v', 'playbin', f'uri={url}',
                    'video-sink=fakesink silent=false', 'audio-sink=fakesink',
                    env=stock_environment()))
                wait_until(lambda: watched.output().count('last-message = chain') > FPS, 50, url)
                for player in running:
                    player.check()


if __name__ == '__main__':
    run()
