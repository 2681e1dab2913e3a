# SPDX-License-Identifier: LGPL-2.1-or-later
"""What real cameras send: numbers, sessions, descriptions and bytes that the standards do not
foresee. Readers see every picture, and the API and the log say what was put right."""

import hashlib
import re
import socket
import struct

from camera import FRAME, GOP, check_film, film, send_film
from control import Controlled, Watch
from proxy import matches, wait_until
from pulled import (SETTINGS, check_plays, only, play, plays, pulled, requests, status, with_body,
                    with_credentials)
from scripted import SSRC, VIDEO, Server
from tap import run, test


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
        assert ingest(proxy)['refused']['other-ssrc'] > 50, ingest(proxy)
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


if __name__ == '__main__':
    run()
