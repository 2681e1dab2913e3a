# SPDX-License-Identifier: LGPL-2.1-or-later
"""What real cameras send: numbers, sessions, descriptions and bytes that the standards do not
foresee. Readers see every picture, and the API and the log say what was put right."""

import base64
import hashlib
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading

from camera import FRAME, GOP, check_film, ffmpeg, film, payloads, send_film
from control import Controlled, Watch
from proc import Rtsp
from proxy import matches, wait_until
from pulled import (SETTINGS, check_plays, only, play, plays, pulled, requests, status, with_body,
                    with_credentials)
from sanitized import stock_environment
from scripted import AUDIO, SDP, SSRC, VIDEO, Server, rtp
from tap import SLOWER, run, test


def camera(change=None, **settings):
    """Returns a server that sends the film with these numbers."""
    film()  # which takes a while
    return Server(lambda session: send_film(session, change), **settings)


def watched(server, **settings):
    settings = {key.replace('_', '-'): value for key, value in settings.items()}
    return Controlled({'/cam': {'upstream': with_credentials(server.url), **SETTINGS, **settings}})


def ingest(proxy):
    return proxy.get('/v1/mounts/cam')['ingest']


def numbers(proxy, count):
    """Returns (SSRC, sequence number, timestamp) of the packets that a reader gets."""
    got = []
    with Watch(proxy) as reader:
        while len(got) < count:
            channel, packet = reader.frame()
            if channel == 0:
                seq, timestamp, ssrc = struct.unpack_from('>HII', packet, 2)
                got.append((ssrc, seq, timestamp))
    return got


def check_steady(proxy, count=400):
    """Checks that a reader sees one SSRC, numbers without a gap, and timestamps at most a
    picture apart."""
    got = numbers(proxy, count)
    for (ssrc, seq, timestamp), (next_ssrc, next_seq, next_timestamp) in zip(got, got[1:]):
        assert ssrc == next_ssrc and (next_seq - seq) & 0xffff == 1, (seq, next_seq)
        # Less than a picture while a reader catches up.
        assert 0 <= (next_timestamp - timestamp) & 0xffffffff <= FRAME, next_timestamp - timestamp


# ---- numbers ----


@test
def another_ssrc_in_each_gop_is_one_stream():
    for transport in 'tcp', 'udp':
        with camera(lambda _, picture: {'ssrc': SSRC + picture // GOP}) as server, \
                watched(server, transport=transport) as proxy:
            proxy.wait_for_line(' mount /cam up: ', 10)
            check_film(proxy.url())
            check_steady(proxy)
            assert ingest(proxy)['refused']['other-ssrc'] == 0, ingest(proxy)


@test
def ssrcs_whose_numbers_begin_anew_are_one_stream():
    def change(seq, picture):
        gop = picture // GOP
        return {'ssrc': SSRC + gop, 'seq': seq + 777 * gop, 'timestamp': picture * FRAME + gop ** 7}

    with camera(change) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        check_film(proxy.url())
        got = numbers(proxy, 400)
        assert len({ssrc for ssrc, _, _ in got}) == 1
        assert all((after[1] - before[1]) & 0xffff == 1 for before, after in zip(got, got[1:])), got


@test
def a_second_sender_is_refused_counted_and_logged():
    def both(session):
        def send_twice(seq, picture):
            session.send(VIDEO, struct.pack('>BBHII', 0x80, 96, seq + 999 & 0xffff, 0, 7) + b'\x41evil')
            return {'seq': seq, 'timestamp': picture * FRAME}
        send_film(session, send_twice)

    # The packets of the second one begin the stream: it has the first SSRC.
    with Server(both) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam: packets from its upstream: .* [1-9][0-9]* dropped because '
                            'another SSRC sent at the same time', 20)
        wait_until(lambda: ingest(proxy)['refused']['other-ssrc'] > 50, 10, '51 foreign packets')
        assert len({ssrc for ssrc, _, _ in numbers(proxy, 200)}) == 1


@test
def sequence_numbers_over_tcp_may_be_anything():
    changes = {
        'a jump back by 200 in each second': lambda seq, _: {'seq': seq - 200 * (seq // 100)},
        'a restart each 50 packets': lambda seq, _: {'seq': 1000 + seq if seq < 50 else seq % 50},
        'constant': lambda seq, _: {'seq': 7},
        'backwards': lambda seq, _: {'seq': -seq},
    }
    for name, change in changes.items():
        with camera(change) as server, watched(server) as proxy:
            proxy.wait_for_line(' mount /cam up: ', 10)
            check_film(proxy.url())
            check_steady(proxy)
            assert ingest(proxy)['renumbered'] > 0, name
            assert ingest(proxy)['lost'] == 0, name
            proxy.wait_for_line(' mount /cam: packets from its upstream: .* whose sequence numbers '
                                'went back, renumbered', 20)
            assert not matches(proxy, ' down: '), proxy.output()


@test
def single_odd_timestamps_are_moved_next_to_their_neighbours():
    for hours in -9800, 37600:
        def change(_, picture, hours=hours):
            return {'timestamp': picture * FRAME + (hours * 90000 if picture % 50 == 30 else 0)}

        for transport in 'tcp', 'udp':
            with camera(change) as server, watched(server, transport=transport) as proxy:
                proxy.wait_for_line(' mount /cam up: ', 10)
                check_steady(proxy)
                check_film(proxy.url())
                wait_until(lambda proxy=proxy: ingest(proxy)['restamped'] > 0, 10, 'a count')
                proxy.wait_for_line(' mount /cam: packets from its upstream: .* whose timestamp '
                                    'jumped, moved next to their neighbours', 20)


# ---- parameter sets ----


def sets_of(size):
    """Returns the parameter sets of the film of this size as a description has them."""
    units = [unit for unit in film(size)[0][0] if unit[0] & 31 in (7, 8)]
    return ','.join(base64.b64encode(unit).decode() for unit in units)


@test
def readers_are_told_the_newest_parameter_sets():
    small, large = sets_of('320x240'), sets_of('640x480')
    grow = threading.Event()
    sdp = {VIDEO: SDP[VIDEO] + f'a=fmtp:96 packetization-mode=1;sprop-parameter-sets={small}\r\n'}

    def send(session):
        seq = 0
        for size in '320x240', '640x480':
            while not session.left.is_set() and (size == '640x480' or not grow.is_set()):
                seq = send_gop(session, size, seq)

    with Server(send, sdp=sdp) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        assert f'sprop-parameter-sets={small}' in sdp_of(proxy), sdp_of(proxy)
        with Watch(proxy) as reader:
            grow.set()
            wait_until(lambda: f'sprop-parameter-sets={large}' in sdp_of(proxy), 20, 'new sets')
            assert 'packetization-mode=1' in sdp_of(proxy) and small not in sdp_of(proxy)
            reader.take(100)  # the first reader stays
        got = ffmpeg('-rtsp_transport', 'tcp', '-i', proxy.url(), '-frames:v', '30', '-f',
                     'framemd5', '-').stdout.decode()
        assert '640x480' in got, got


def send_gop(session, size, seq):
    """Sends a GOP of the film of this size, from packet number `seq` on. Returns the next number."""
    for picture in film(size)[0][:GOP]:
        parts = payloads(picture)
        for part, payload in enumerate(parts):
            packet = bytearray(rtp(seq, send_gop.timestamp, payload))
            packet[1] |= 0x80 if part == len(parts) - 1 else 0
            session.send(VIDEO, bytes(packet))
            seq += 1
        send_gop.timestamp += FRAME
        if session.left.wait(0.04):
            break
    return seq


send_gop.timestamp = 0


# ---- long packets ----


@test
def long_packets_are_split_for_readers_over_udp():
    film(size='640x480')
    with Server(lambda session: send_film(session, most=60000, size='640x480')) as server, \
            watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        for transport in 'tcp', 'udp':
            check_film(proxy.url(), 30, transport=transport, size='640x480')
        assert ingest(proxy)['split'] > 0 and ingest(proxy)['long'] == 0, ingest(proxy)
        with Watch(proxy) as reader:
            sizes = [len(packet) for channel, packet in (reader.frame() for _ in range(200))]
            assert max(sizes) <= 1400, max(sizes)


@test
def long_packets_of_other_codecs_are_counted_and_logged():
    def send_long(session):
        send_sound(session, [0], size=4000)

    with Server(send_long, sdp={VIDEO: ALAW}) as server, watched(server) as proxy:
        proxy.wait_for_line(r' mount /cam: packets from its upstream: .* longer than 1460 bytes '
                            r'\(readers over UDP need IP fragments; let them use TCP\)', 20)
        assert ingest(proxy)['long'] > 0 and ingest(proxy)['split'] == 0, ingest(proxy)


# ---- bytes and ends ----


class Spoiled:
    """A connection that sends what `spoil` makes of each frame, whose number it gets."""

    def __init__(self, connection, spoil):
        self.connection, self.spoil, self.n = connection, spoil, 0

    def sendall(self, data):
        if data[:1] == b'$':
            self.n += 1
            data = self.spoil(self.n, data)
        self.connection.sendall(data)

    def __getattr__(self, name):
        return getattr(self.connection, name)


def spoiling(spoil):
    """Returns a server that sends the film in frames that are spoiled."""
    def send(session):
        session.connection = Spoiled(session.connection, spoil)
        send_film(session)

    film()
    return Server(send)


@test
def stray_bytes_between_packets_are_skipped_counted_and_logged():
    for stray in b'\0\0\0\0', b'GET', b'\xff' * 300:
        with spoiling(lambda n, data, stray=stray: data + (stray if n % 100 == 0 else b'')) as server, \
                watched(server) as proxy:
            proxy.wait_for_line(' mount /cam up: ', 10)
            check_film(proxy.url())
            wait_until(lambda proxy=proxy: ingest(proxy)['skipped'] > 0, 20, 'a count')
            proxy.wait_for_line(' mount /cam: packets from its upstream: .* times that stray bytes '
                                'between packets were skipped', 20)
            assert not matches(proxy, ' down: '), proxy.output()


@test
def a_connection_survives_half_a_packet():
    with spoiling(lambda n, data: data[:len(data) // 2] if n % 200 == 0 else data) as server, \
            watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        wait_until(lambda: ingest(proxy)['skipped'] > 1, 30, 'two packets that were cut')
        assert not matches(proxy, ' down: '), proxy.output()


BYE = struct.pack('>BBHIBBHI', 0x80, 201, 1, SSRC, 0x81, 203, 1, SSRC)


@test
def a_bye_is_believed_only_if_nothing_follows():
    def say_bye(session):
        def change(seq, _):
            if seq % 50 == 0:
                session.send(VIDEO, BYE, rtcp=True)
            return {'seq': seq}

        send_film(session, change, stop=150)
        session.send(VIDEO, BYE, rtcp=True)

    film()
    with Server(say_bye) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        check_film(proxy.url())
        assert not matches(proxy, ' down: '), proxy.output()
        proxy.wait_for_line(' mount /cam down: .*: the upstream ended; next try in ', 10)


@test
def the_back_off_begins_anew_after_a_good_run():
    def go(session):
        send_film(session, stop=100)
        session.connection.shutdown(socket.SHUT_RDWR)

    film()
    with Server(go) as server, watched(server) as proxy:
        line = r' mount /cam down: .*next try in ([\d.]+) s'
        wait_until(lambda: len(matches(proxy, line)) == 3, 20, 'three ends')
        waits = [float(each[1]) for each in matches(proxy, line)]
        assert all(wait <= 0.5 for wait in waits), waits


# ---- authentication ----


def digest(server, algorithm, challenges):
    """Has the server insist on a digest with qop, by this algorithm."""
    hashed = hashlib.sha256 if algorithm == 'SHA-256' else hashlib.md5
    seen = set()

    def hex_of(*parts):
        return hashed(':'.join(parts).encode()).hexdigest()

    def mangle(method, answer):
        _, uri, headers = server.sessions[-1].requests[-1]
        got = dict(re.findall(r'(\w+)="?([^",]+)', headers.get('authorization', '')))
        if got.get('qop') == 'auth' and got.get('algorithm', 'MD5') == algorithm:
            secret = hex_of('user', 'x', 'word')
            expected = hex_of(secret, got['nonce'], got['nc'], got['cnonce'], 'auth',
                              hex_of(method, uri))
            if got['response'] == expected and (got['cnonce'], got['nc']) not in seen:
                seen.add((got['cnonce'], got['nc']))
                return answer
        return status('401 Unauthorized', *(f'WWW-Authenticate: {each}' for each in challenges))(answer)

    server.mangle = mangle
    return server


@test
def a_digest_with_qop_is_answered():
    for algorithm in 'MD5', 'SHA-256':
        plays(digest(Server(play, timeout=1), algorithm, [
            f'Digest realm="x", qop="auth", nonce="n", algorithm="{algorithm}"']))


@test
def a_digest_that_the_server_does_not_accept_gives_way_to_the_next():
    sha, md5 = (f'Digest realm="x", qop="auth", nonce="n", algorithm={name}'
                for name in ('SHA-256', 'MD5'))
    plays(digest(Server(play), 'MD5', [sha, md5]))
    plays(demand_plain(Server(play), [sha, 'Digest realm="x", nonce="n"']))


def demand_plain(server, challenges):
    """Has the server accept a digest by MD5 without qop only."""
    def mangle(_, answer):
        _, _, headers = server.sessions[-1].requests[-1]
        authorization = headers.get('authorization', '')
        if authorization and 'SHA-256' not in authorization and 'qop' not in authorization:
            return answer
        return status('401 Unauthorized', *(f'WWW-Authenticate: {each}' for each in challenges))(answer)

    server.mangle = mangle
    return server


# ---- descriptions, sessions and transports ----


@test
def a_description_may_lack_its_first_lines():
    film()
    for body in (b'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track0\r\n',
                 b's=x\nt=0 0\nm=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:track0\n'):
        change = only('DESCRIBE', lambda answer, body=body: with_body(answer, body))
        with Server(send_film, mangle=change) as server, watched(server) as proxy:
            proxy.wait_for_line(' mount /cam up: ', 10)
            check_film(proxy.url(), 30)


def after_options(method, answer):
    """Has the server give the session in its answer to OPTIONS, and demand it in DESCRIBE."""
    _, _, headers = after_options.server.sessions[-1].requests[-1]
    if method == 'OPTIONS':
        return answer.replace(b'Session: abc', b'Session: 777')
    if method == 'DESCRIBE' and headers.get('session') != '777':
        return status('454 Session Not Found')(answer)
    return answer


@test
def a_session_of_the_answer_to_options_is_kept():
    after_options.server = Server(play, mangle=after_options)
    plays(after_options.server)


@test
def a_transport_may_lack_unicast_and_have_blanks():
    def changed(line):
        def mangle(method, answer):
            if method != 'SETUP':
                return answer
            ports = re.search(rb'(client_port=[^;\r]*);.*?(server_port=[^;\r]*)', answer)
            return re.sub(rb'Transport: [^\r]*', b'Transport: ' + line % ports.groups(), answer)
        return mangle

    for line in (b'RTP/AVP;%s;%s', b'RTP/AVP; unicast; %s; %s', b' RTP/AVP ;unicast; %s ;%s; ssrc=4317f',
                 b'RTP/AVP/UDP; Unicast;%s;%s;x-vendor=1', b'RTP/AVP;%s;%s;mode="PLAY"'):
        with pulled(Server(play, mangle=changed(line)), transport='udp') as proxy:
            check_plays(proxy)
            assert not matches(proxy, 'GStreamer'), proxy.output()


@test
def channels_behind_a_blank_are_those_of_the_packets():
    def send(session):
        session.connection = Spoiled(session.connection, lambda _, data: b'$\4' + data[2:])
        send_film(session)

    film()
    with Server(send, mangle=lambda _, answer: re.sub(rb';interleaved=[^;\r]*', b'; interleaved=4-5', answer)) \
            as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        check_film(proxy.url(), 30)


@test
def a_bad_answer_to_udp_is_followed_by_tcp():
    def mangle(method, answer):
        _, _, headers = server.sessions[-1].requests[-1]
        if method != 'SETUP' or 'TCP' in headers['transport']:
            return answer
        return re.sub(rb'Transport: [^\r]*',
                      b'Transport: RTP/AVP;multicast;destination=239.1.1.1;port=5000-5001', answer)

    server = Server(play, mangle=mangle)
    plays(server, transport='auto')
    assert 'TCP' in requests(server, 'SETUP')[-1][2]['transport']


@test
def a_refused_describe_is_named_with_its_time():
    def closing(text):
        def mangle(method, answer):
            session = server.sessions[-1]
            answer = status(text)(answer)
            session.connection.sendall(answer)
            session.connection.shutdown(socket.SHUT_RDWR)
            return b''
        return mangle

    for text in '400 Bad Request', '404 Not Found':
        server = Server(play, mangle=closing(text))
        words = text.partition(' ')[2].lower()
        reason = f'the upstream answered DESCRIBE with {text[:3]} ({words})'
        with server, watched(server) as proxy:
            proxy.wait_for_line(f' mount /cam down: .*: {re.escape(reason)}; next try in ', 10)
            upstream = proxy.get('/v1/mounts/cam')['upstreams'][0]
            assert upstream['reason'].endswith(reason) and upstream['failed'], upstream


@test
def a_server_that_refuses_describe_and_closes_is_asked_for_options_first():
    def mangle(method, answer):
        session = server.sessions[-1]
        if method == 'DESCRIBE' and 'OPTIONS' not in session.asked:
            session.connection.sendall(status('400 Bad Request')(answer))
            session.connection.shutdown(socket.SHUT_RDWR)
            return b''
        return answer

    server = Server(play, mangle=mangle)
    plays(server)


# ---- tracks ----

ALAW = 'm=audio 0 RTP/AVP 0 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=control:track0\r\n'


def send_sound(session, types, stop=None, size=160):
    """Sends 20 ms of sound a packet, of these payload types in turn."""
    try:
        for seq in range(stop or 100000):
            packet = bytearray(rtp(seq, seq * size, b'\xd5' * size))
            packet[1] = types[seq % len(types)]
            session.send(VIDEO, bytes(packet))
            if session.left.wait(0.02):
                return
    except OSError:
        pass


def launch(line, *words):
    """Runs a launch line to its end. Returns what it prints."""
    done = subprocess.run(['gst-launch-1.0', *words, *line.split()], capture_output=True, text=True,
                          timeout=60 * SLOWER, check=False, env=stock_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sdp_of(proxy, path='/cam'):
    with Rtsp(proxy.port) as rtsp:
        code, _, sdp = rtsp.request('DESCRIBE', proxy.url(path))
        assert code == 200, code
        return sdp.decode()


def describes(proxy, text):
    """Tells whether the description has the text. At the very change there is none, or its clients
    are closed."""
    try:
        with Rtsp(proxy.port) as rtsp:
            code, _, sdp = rtsp.request('DESCRIBE', proxy.url('/cam'))
    except ConnectionError:
        return False
    assert code in (200, 503), code
    return code == 200 and text in sdp.decode()


def check_type(proxy, payload, encoding):
    """Checks that the description names this type, that packets have it, and that ffmpeg decodes
    them."""
    assert re.search(rf'm=audio 0 RTP/AVP {payload}\r', sdp_of(proxy)), sdp_of(proxy)
    with Watch(proxy) as reader:
        for _ in range(10):
            channel, packet = reader.frame()
            assert channel != 0 or packet[1] & 0x7f == payload, packet
    got = ffmpeg('-rtsp_transport', 'tcp', '-i', proxy.url(), '-t', '1', '-f', 'framemd5', '-')
    assert encoding in sdp_of(proxy) and got.stdout.count(b'\n0,') > 10, got


@test
def a_sender_may_use_another_format_of_its_line():
    for transport in 'tcp', 'udp':
        server = Server(lambda session: send_sound(session, [8]), sdp={VIDEO: ALAW})
        with server, watched(server, transport=transport) as proxy:
            proxy.wait_for_line(' mount /cam up: ', 10)
            check_type(proxy, 8, 'PCMA')


@test
def a_sender_may_use_another_number_of_the_same_format():
    sdp = {VIDEO: 'm=video 0 RTP/AVP 98 96\r\na=rtpmap:98 H264/90000\r\na=rtpmap:96 H264/90000\r\n'
                  'a=control:track0\r\n'}
    with camera(sdp=sdp) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        check_film(proxy.url(), 30)
        with Watch(proxy) as reader:
            assert all(reader.frame()[1][1] & 0x7f == 98 for _ in range(30))


@test
def formats_that_alternate_and_extra_ones_are_dropped_counted_and_logged():
    for types, name in (([0, 8], 'two formats'), ([0, 0, 0, 101], 'keys')):
        server = Server(lambda session, types=types: send_sound(session, types),
                        sdp={VIDEO: ALAW})
        with server, watched(server) as proxy:
            proxy.wait_for_line(' mount /cam: packets from its upstream: .* dropped because the '
                                'description does not name their payload type', 20)
            check_type(proxy, 0, 'PCMU')
            assert ingest(proxy)['refused']['payload-type'] > 0, name
            assert not matches(proxy, 'tracks changed'), proxy.output()


@test
def long_packets_are_split_by_the_format_that_comes():
    sdp = {VIDEO: 'm=video 0 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\na=rtpmap:97 H265/90000\r\n'
                  'a=control:track0\r\n'}

    def send_pictures(session):
        try:
            for seq in range(100000):
                packet = bytearray(rtp(seq, seq * FRAME, b'\x26\1' + bytes(3000)))
                packet[1] = 97 | 0x80
                session.send(VIDEO, bytes(packet))
                if session.left.wait(0.04):
                    return
        except OSError:
            pass

    with Server(send_pictures, sdp=sdp) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        wait_until(lambda: describes(proxy, 'H265/90000'), 10, 'another description')
        with Watch(proxy) as reader:
            for _ in range(9):
                channel, packet = reader.frame()
                assert channel != 0 or packet[12] >> 1 & 63 == 49, packet[:20] # FU of RFC 7798


@test
def a_sender_may_change_its_format():
    def change(session):
        send_sound(session, [0], stop=50)
        session.left.wait(0.6)
        send_sound(session, [8])

    server = Server(change, sdp={VIDEO: ALAW})
    with server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        assert 'PCMU' in sdp_of(proxy) or ' RTP/AVP 0' in sdp_of(proxy)
        wait_until(lambda: describes(proxy, ' RTP/AVP 8'), 10, 'another description')
        check_type(proxy, 8, 'PCMA')


def types_of(proxy, n):
    """Returns (channel, payload type) of some packets of the mount, or None if the reader is closed."""
    try:
        with Watch(proxy) as reader:
            frames = [reader.frame() for _ in range(n)]
    except ConnectionError:
        return None
    return {(channel, packet[1] & 0x7f) for channel, packet in frames if channel % 2 == 0}


@test
def two_tracks_may_change_their_formats_at_once():
    def send_both(session, payload, stop):
        for seq in range(stop):
            packet = bytearray(rtp(seq, seq * 160, b'\xd5' * 160))
            packet[1] = payload
            for track in VIDEO, AUDIO:
                session.send(track, bytes(packet))
            if session.left.wait(0.02):
                return

    def change(session):
        try:
            send_both(session, 0, 50)
            session.left.wait(0.6)
            send_both(session, 8, 100000)
        except OSError:
            pass

    sdp = {VIDEO: ALAW, AUDIO: ALAW.replace('track0', 'track1')}
    for transport in 'udp', 'tcp':
        with Server(change, (VIDEO, AUDIO), sdp=sdp) as server, \
                watched(server, transport=transport) as proxy:
            proxy.wait_for_line(' mount /cam up: .* 2 tracks', 10)
            # A reader that comes between the two descriptions is closed.
            wait_until(lambda: types_of(proxy, 20) == {(0, 8), (2, 8)}, 10, 'packets of both new formats')
            assert sdp_of(proxy).count(' RTP/AVP 8\r') == 2, sdp_of(proxy)


@test
def talk_back_and_nameless_formats_are_left_out():
    video = SDP[VIDEO]
    sound = 'm=audio 0 RTP/AVP 8\r\na=control:track1\r\n'
    back = 'm=audio 0 RTP/AVP 107 0\r\na=rtpmap:107 AAC/16000\r\na=control:track2\r\na=sendonly\r\n'
    none = 'm=audio 0 RTP/AVP (null)\r\na=control:track3\r\n'
    only_sound = sound + 'a=sendonly\r\n'
    for text, expected in ((video + sound + back, 2), (video + none, 1), (video + only_sound, 2),
                           (video + back + sound, 2)):
        server = Server(play, sdp={VIDEO: text})
        with server, watched(server) as proxy:
            proxy.wait_for_line(f' mount /cam up: .*, {expected} tracks', 10)
            assert sdp_of(proxy).count('\nm=') == expected
            assert len(requests(server, 'SETUP')) == expected, requests(server, 'SETUP')
            assert bool(matches(proxy, r' upstream \S+: an audio track \(payload type 107\) is left '
                                'out')) == (back in text), proxy.output()


@test
def many_tracks_that_are_left_out_have_few_lines():
    sound = 'm=audio 0 RTP/AVP 8\r\na=control:track1\r\n'
    back = 'm=audio 0 RTP/AVP 0\r\na=sendonly\r\n'
    with Server(play, sdp={VIDEO: SDP[VIDEO] + back * 500 + sound}) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: .*, 2 tracks', 10)
        assert 0 < len(matches(proxy, ' is left out: ')) < 20, proxy.output()[-2000:]


@test
def the_size_of_large_jpeg_pictures_is_described():
    """GStreamer decodes JPEG of 2560x1440, whose size only the description has."""
    pictures = 'm=video 0 RTP/AVP 26\r\na=x-dimensions:2560,1440\r\na=framesize:26 2560-1440\r\n' \
               'a=control:track0\r\n'
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'packets')
        launch(f'videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=2560,height=1440 ! jpegenc '
               f'! rtpjpegpay ! rtpstreampay ! filesink location={path}')
        with open(path, 'rb') as file:
            data = file.read()
    packets = []
    while data:
        size = int.from_bytes(data[:2], 'big')
        packets.append(data[2:2 + size])
        data = data[2 + size:]

    def send_pictures(session):
        seq = 0
        try:
            while not session.left.wait(0.1):
                for packet in packets:
                    head = struct.pack('>HI', seq & 0xffff, seq // len(packets) * 9000)
                    session.send(VIDEO, packet[:2] + head + packet[8:])
                    seq += 1
        except OSError:
            pass

    with Server(send_pictures, sdp={VIDEO: pictures}) as server, watched(server) as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        assert 'a=x-dimensions:2560,1440' in sdp_of(proxy), sdp_of(proxy)
        out = launch(f'rtspsrc location={proxy.url()} protocols=tcp ! rtpjpegdepay ! jpegdec ! identity '
                     'eos-after=3 ! fakesink', '-v')
        assert 'width=(int)2560, height=(int)1440' in out, out


if __name__ == '__main__':
    run(at_once=4, shared=[film])
