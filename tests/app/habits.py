# SPDX-License-Identifier: LGPL-2.1-or-later
"""The light client reads cameras and servers that deviate from RFC 2326. A hostile server is down,
with a reason in the log, and other mounts are served."""

import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

from control import CLIP_URI, Controlled, Watch
from proxy import Proxy, matches, wait_until
from pulled import (SETTINGS, check_plays, is_down, only, play, plays, pulled, requests, status,
                    with_body, with_credentials, without)
from scripted import AUDIO, KEY_PICTURE, SDP, VIDEO, Server, rtp
from tap import Skip, run, test

# ---- descriptions ----


@test
def a_missing_content_base_is_the_requested_url():
    server = Server(play, mangle=without(b'Content-Base'))
    with pulled(server) as proxy:
        check_plays(proxy)
        assert requests(server, 'SETUP')[0][1] == server.url + '/track0'
        assert requests(server, 'PLAY')[0][1] == server.url


def controlled(control, expected, session_control='', base=None, query=''):
    """Checks the URL of SETUP. `%` in the texts stands for the host and port."""
    line = f'a=control:{control}\r\n' if control else ''
    sdp = {VIDEO: session_control + SDP[VIDEO].replace('a=control:track0\r\n', line)}
    server = Server(play, sdp=sdp)
    host = server.url[7:].partition('/')[0]
    sdp[VIDEO] = sdp[VIDEO].replace('%', host)
    server.mangle = only('DESCRIBE', lambda answer: re.sub(
        rb'Content-Base: [^\r]*\r\n', f'Content-Base: {base}\r\n'.replace('%', host).encode()
        if base else b'', sized(answer)))
    server.url += query
    with pulled(server) as proxy:
        check_plays(proxy)
        uri = requests(server, 'SETUP')[0][1]
        assert uri == expected.replace('%', host), (control, uri)


def sized(answer):
    return with_body(answer, answer.partition(b'\r\n\r\n')[2])


@test
def control_urls_of_every_kind_are_understood():
    controlled('track0', 'rtsp://%/s/track0', base='rtsp://%/s')
    controlled('track0', 'rtsp://%/s/track0', base='rtsp://%/s/')
    controlled('/track0', 'rtsp://%/s/track0', base='rtsp://%/s/')
    controlled('/s/track0', 'rtsp://%/s/track0', base='rtsp://%/s/')
    controlled('rtsp://%/other/0', 'rtsp://%/other/0', base='rtsp://%/s/')
    controlled('rtsp://10.1.2.3/s/0', 'rtsp://10.1.2.3/s/0')
    controlled('trackID=0', 'rtsp://%/s?a=b&c=d/trackID=0', query='?a=b&c=d')
    controlled('?track=0', 'rtsp://%/s?track=0')
    controlled('track0', 'rtsp://%/t/track0', 'a=control:rtsp://%/t/\r\n')
    controlled('track0', 'rtsp://%/s/track0', 'a=control:*\r\n', base='rtsp://%/s/')


@test
def a_single_track_may_have_no_url():
    controlled('*', 'rtsp://%/0', base='rtsp://%/0')
    controlled('', 'rtsp://%/0', base='rtsp://%/0')


@test
def a_wrong_ptime_and_payload_type_do_no_harm():
    sdp = {VIDEO: SDP[VIDEO].replace('a=control', 'a=ptime:0\r\na=maxptime:-1\r\na=control')}

    def send_other(session):
        def send(track, packet):
            session.send(track, packet[:1] + bytes([98]) + packet[2:])
        play(session, send=send)

    plays(Server(send_other, sdp=sdp))


@test
def the_protocol_of_a_track_may_name_its_transport():
    for protocol in 'rtp/avp', 'RTP/AVP/TCP', 'RTP/AVPF':
        plays(Server(play, sdp={VIDEO: SDP[VIDEO].replace('RTP/AVP', protocol)}))


@test
def a_description_may_end_with_a_byte_0():
    plays(Server(play, mangle=only('DESCRIBE', lambda answer: sized(answer + b'\0'))))


@test
def another_description_type_is_no_session_description():
    body = b'<html>not found</html>'
    change = only('DESCRIBE', lambda answer: with_body(answer, body))
    is_down(Server(play, mangle=change), r'.*not a session description \(SDP\)')


# ---- sessions ----


@test
def a_session_without_a_timeout_needs_no_keep_alive_soon():
    server = Server(play, mangle=lambda _, answer: re.sub(rb';timeout=\d+', b'', answer))
    with pulled(server) as proxy:
        check_plays(proxy)
        time.sleep(2.5)
        assert 'GET_PARAMETER' not in server.sessions[0].asked, server.sessions[0].asked


@test
def keep_alives_are_sent_within_the_timeout():
    server = Server(play, timeout=1)
    with pulled(server) as proxy:
        check_plays(proxy)
        wait_until(lambda: server.sessions[0].asked.count('GET_PARAMETER') >= 3, 3, 'keep-alives')


@test
def keep_alives_that_are_refused_become_options():
    for answer in '501 Not Implemented', '405 Method Not Allowed', '454 Session Not Found':
        server = Server(play, timeout=1, mangle=only('GET_PARAMETER', status(answer)))
        with pulled(server) as proxy:
            check_plays(proxy)
            asked = server.sessions[0].asked
            wait_until(lambda asked=asked: asked.count('OPTIONS') >= 4, 5, 'OPTIONS')
            assert asked.count('GET_PARAMETER') == 1, asked
            assert not matches(proxy, ' down: '), proxy.output()


@test
def keep_alives_that_are_not_answered_do_no_harm():
    server = Server(play, timeout=1, deaf_to=('GET_PARAMETER',))
    with pulled(server) as proxy:
        check_plays(proxy)
        wait_until(lambda: server.sessions[0].asked.count('GET_PARAMETER') >= 3, 5, 'keep-alives')
        assert not matches(proxy, ' down: '), proxy.output()
        proxy.stop()
        wait_until(lambda: 'TEARDOWN' in server.sessions[0].asked, 5, 'TEARDOWN')


@test
def a_keep_alive_is_options_if_the_server_does_not_list_get_parameter():
    public = only('OPTIONS', lambda answer: answer[:-2] + b'Public: DESCRIBE, SETUP, PLAY\r\n\r\n')
    server = Server(play, timeout=1, mangle=public)
    with pulled(server) as proxy:
        check_plays(proxy)
        wait_until(lambda: server.sessions[0].asked.count('OPTIONS') >= 3, 5, 'keep-alives')
        assert 'GET_PARAMETER' not in server.sessions[0].asked


@test
def packets_may_come_before_the_answer_to_play():
    def early(session):
        threading.Thread(target=play, args=(session,), daemon=True).start()
        time.sleep(0.7)

    plays(Server(early=early))


@test
def media_over_udp_may_begin_after_a_late_answer_to_play():
    def begin_late(session):
        session.left.wait(0.5)
        play(session)

    # Longer than UDP is waited for.
    server = Server(begin_late, early=lambda session: time.sleep(2))
    with pulled(server, transport='auto') as proxy:
        check_plays(proxy)
        assert len(server.sessions) == 1, server.sessions[0].asked


@test
def a_refused_range_is_left_out():
    def mangle(method, answer):
        _, _, headers = server.sessions[-1].requests[-1]
        refused = method == 'PLAY' and 'range' in headers
        return status('457 Invalid Range')(answer) if refused else answer

    server = Server(lambda session: session.asked.count('PLAY') == 2 and play(session),
                    mangle=mangle)
    plays(server)


@test
def a_wrong_rtp_info_is_ignored():
    for info in ('', 'url=;seq=;rtptime=', 'url=x;seq=1;rtptime=99999999999', ',,,;;;=',
                 'url=track0;rtptime=-5', 'url=track0;seq=1;rtptime=4000000000'):
        line = f'RTP-Info: {info}\r\n\r\n'.encode()
        plays(Server(play, mangle=only('PLAY', lambda answer, line=line: answer[:-2] + line)))


@test
def frames_may_be_split_anywhere():
    for piece in 1, 3, 7, 100:
        plays(Server(lambda session, piece=piece: play(session, piece=piece)))


@test
def other_channels_than_asked_are_used():
    change = only('SETUP', lambda answer: answer.replace(b'interleaved=0-1', b'interleaved=4-5'))

    def send_there(session):
        play(session, send=lambda _, packet: session.send(2, packet))

    server = Server(send_there, mangle=change)
    with pulled(server) as proxy:
        check_plays(proxy)
        wait_until(lambda: any(track == 2 for track, _ in server.sessions[0].rtcp), 10,
                   'a report on the other channel')


# ---- authentication ----


def demanding(server, scheme='Digest', stale=False):
    """Has the server demand another nonce in each request."""
    nonces = ['1']

    def mangle(_, answer):
        _, _, headers = server.sessions[-1].requests[-1]
        current, authorization = nonces[-1], headers.get('authorization', '')
        if f'nonce="{current}"' in authorization:
            nonces.append(str(len(nonces) + 1))
            return answer
        nonces.append(str(len(nonces) + 1))
        more = ', stale=TRUE' if stale and authorization else ''
        return status('401 Unauthorized',
                      f'WWW-Authenticate: {scheme} realm="a b", nonce="{nonces[-1]}"{more}')(answer)

    server.mangle = mangle
    return server


@test
def a_nonce_may_change_with_each_request():
    for stale in False, True:
        server = demanding(Server(play, timeout=1), stale=stale)
        with pulled(server) as proxy:
            check_plays(proxy)
            time.sleep(2)
            assert not matches(proxy, ' down: '), proxy.output()
            proxy.stop()
            asked = server.sessions[0].asked
            wait_until(lambda asked=asked: asked.count('TEARDOWN') == 2, 5, 'TEARDOWN')


@test
def wrong_credentials_are_tried_once():
    refuse = status('401 Unauthorized', 'WWW-Authenticate: Digest realm="x", nonce="y"')
    server = Server(play, mangle=lambda _, answer: refuse(answer))
    is_down(server, r'the upstream answered DESCRIBE with 401 \(unauthorized\)')
    assert server.sessions[0].asked == ['DESCRIBE'] * 2, server.sessions[0].asked


@test
def a_certificate_that_nobody_vouches_for_is_refused():
    if not shutil.which('openssl'):
        raise Skip('openssl is not on the PATH')

    class TlsServer(Server):
        def accept(self):
            return context.wrap_socket(super().accept(), server_side=True)

    with tempfile.TemporaryDirectory() as folder:
        key, certificate = (os.path.join(folder, name) for name in ('key.pem', 'certificate.pem'))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key,
                        '-out', certificate, '-days', '2', '-subj', '/CN=127.0.0.1'],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    server = TlsServer(play)
    server.url = server.url.replace('rtsp:', 'rtsps:')
    is_down(server, 'the certificate of the upstream is not trusted: .*')
    assert not server.sessions


# ---- transports ----


@test
def a_refused_udp_becomes_tcp():
    for tracks in (VIDEO,), (VIDEO, AUDIO):
        server = Server(lambda session, tracks=tracks: play(session, tracks), tracks=tracks)

        def mangle(method, answer, server=server, last=tracks[-1]):
            _, uri, headers = server.sessions[-1].requests[-1]
            if method != 'SETUP' or 'TCP' in headers['transport'] or int(uri[-1]) != last:
                return answer
            server.sessions[-1].sockets.clear()
            return status('461 Unsupported Transport')(answer)

        server.mangle = mangle
        plays(server, tracks, transport='auto')


@test
def a_track_that_is_refused_is_left_out():
    def mangle(method, answer):
        _, uri, _ = server.sessions[-1].requests[-1]
        return status('404 Not Found')(answer) if method == 'SETUP' and uri[-1] == '1' else answer

    server = Server(play, tracks=(VIDEO, AUDIO), mangle=mangle)
    plays(server)


@test
def a_server_without_any_track_left_is_down():
    is_down(Server(play, mangle=only('SETUP', status('404 Not Found'))),
            r'the upstream answered SETUP with 404 \(not found\)')


@test
def a_transport_over_udp_may_lack_ports_and_ssrc():
    server = Server(play, mangle=only('SETUP', lambda answer: re.sub(
        rb';server_port=[^\r]*', b'', answer)))
    plays(server, transport='udp')


@test
def a_missing_transport_means_the_requested_one():
    for transport in 'tcp', 'udp':
        plays(Server(play, mangle=without(b'Transport')), transport=transport)


@test
def a_wrong_source_address_does_no_harm():
    for source in '0.0.0.0', '10.1.2.3', 'x', '':
        plays(Server(play, mangle=only('SETUP', lambda answer, source=source: answer.replace(
            b';server_port', f';source={source};server_port'.encode()))), transport='udp')


@test
def a_server_that_sends_nothing_over_udp_is_asked_for_tcp():
    def only_over_tcp(session):
        if not session.sockets:
            play(session)

    server = Server(only_over_tcp)
    with pulled(server, transport='auto') as proxy:
        check_plays(proxy)
        assert 'TEARDOWN' in server.sessions[0].asked, server.sessions[0].asked
        assert len(server.sessions) == 2


@test
def media_over_udp_outlive_the_connection():
    over = threading.Event()

    def close(session):
        def go_on():
            seq = 0
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            while not over.wait(0.02):
                sender.sendto(rtp(seq, seq * 1800, KEY_PICTURE), session.addresses[VIDEO][0])
                seq += 1

        threading.Thread(target=go_on, daemon=True).start()
        time.sleep(0.2)
        session.connection.shutdown(socket.SHUT_RDWR)

    server = Server(close)
    with pulled(server, transport='udp') as proxy:
        check_plays(proxy)
        wait_until(lambda: len(server.sessions) == 2, 5, 'a new connection')
        wait_until(lambda: 'GET_PARAMETER' in server.sessions[1].asked, 5, 'a keep-alive')
        time.sleep(1)
        assert not matches(proxy, ' down: '), proxy.output()
    over.set()


@test
def a_server_that_goes_down_after_a_new_connection_is_down_soon():
    def close(session):
        for seq in range(50):
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE))
        session.connection.shutdown(socket.SHUT_RDWR)

    def go_down(answer):
        server.__exit__()
        server.sessions[1].connection.shutdown(socket.SHUT_RDWR)
        return answer

    server = Server(close, mangle=only('GET_PARAMETER', go_down))
    mount = {'upstream': server.url, **SETTINGS, 'transport': 'udp', 'read-timeout': '20s'}
    with Proxy({'/cam': mount}) as proxy:
        proxy.wait_for_line(' mount /cam down: .*: Connection refused; next try in ', 5)


@test
def packets_from_elsewhere_are_refused():
    def attack(session):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(('127.0.0.9', 0))
            for seq in range(50):
                stranger.sendto(rtp(seq, 0, b'evil' * 9, ssrc=7), session.addresses[VIDEO][0])
        play(session)

    with pulled(Server(attack), transport='udp') as proxy:
        proxy.wait_for_line(' mount /cam up: ', 10)
        with Watch(proxy) as reader:
            for _ in range(20):
                assert b'evil' not in reader.frame()[1]


# ---- requests of the server, and its end ----


@test
def requests_of_the_server_are_answered():
    def ask(session):
        threading.Thread(target=play, args=(session,), daemon=True).start()
        methods = 'OPTIONS', 'GET_PARAMETER', 'SET_PARAMETER', 'ANNOUNCE', 'PAUSE'
        for cseq, method in enumerate(methods, 40):
            body = 'v=0\r\n' if method == 'ANNOUNCE' else ''
            with session.lock:
                session.connection.sendall(
                    f'{method} * RTSP/1.0\r\nCSeq: {cseq}\r\n'
                    f'Content-Length: {len(body)}\r\n\r\n{body}'.encode())

    server = Server(ask)
    with pulled(server) as proxy:
        check_plays(proxy)
        wait_until(lambda: len(server.sessions[0].answers) == 5, 5, 'five answers')
        for cseq, answer in enumerate(server.sessions[0].answers, 40):
            assert f'CSeq: {cseq}\r\n' in answer, answer
            assert answer.startswith('RTSP/1.0 501' if cseq == 44 else 'RTSP/1.0 200'), answer
        assert not matches(proxy, ' down: '), proxy.output()


def redirecting(last):
    """Returns a server that redirects DESCRIBE until its URL ends with `last`."""
    server = Server(play)

    def mangle(method, answer):
        _, uri, _ = server.sessions[-1].requests[-1]
        if method != 'DESCRIBE' or uri.endswith(last):
            return answer
        number = len(requests(server, 'DESCRIBE'))
        return status('302 Found', f'Location: {server.url}/{number}')(answer)

    server.mangle = mangle
    return server


@test
def redirects_on_the_same_host_are_followed():
    server = redirecting('/3')
    with pulled(server) as proxy:
        check_plays(proxy)
        assert requests(server, 'SETUP')[0][1] == server.url + '/3/track0'


@test
def redirects_are_bounded():
    is_down(redirecting('/never'), 'too many redirects')


@test
def a_redirect_in_a_session_ends_it():
    def redirect(session):
        session.connection.sendall(
            b'REDIRECT * RTSP/1.0\r\nCSeq: 1\r\nLocation: rtsp://10.1.2.3/\r\n\r\n')

    is_down(Server(redirect), 'the upstream redirects the session')


def closing(method):
    """Returns a server that closes the connection instead of an answer."""
    server = Server(play)

    def mangle(asked, answer):
        if asked == method:
            server.sessions[-1].connection.shutdown(socket.SHUT_RDWR)
            return b''
        return answer

    server.mangle = mangle
    return server


@test
def a_server_that_closes_instead_of_an_answer_is_down():
    for method in 'DESCRIBE', 'SETUP', 'PLAY':
        is_down(closing(method), 'the upstream closed the connection')


@test
def a_server_may_close_instead_of_answering_teardown():
    with pulled(closing('TEARDOWN')) as proxy:
        check_plays(proxy)
        start = time.monotonic()
        assert proxy.stop() == 0
        assert time.monotonic() - start < 2


@test
def a_mount_may_be_removed_while_its_session_ends():
    def remove(server):
        mount = {'upstream': with_credentials(server.url), **SETTINGS}
        with server, Controlled({'/clip': {'upstream': CLIP_URI}}) as proxy:
            assert proxy.http('PUT', '/v1/mounts/cam', mount)[0] == 201
            proxy.wait_for_line(' mount /cam up: ', 10)
            assert proxy.http('DELETE', '/v1/mounts/cam')[0] == 200
            wait_until(lambda: 'TEARDOWN' in server.sessions[0].asked, 5, 'TEARDOWN')
            time.sleep(1.2)  # longer than the answer is waited for
            assert proxy.running()

    remove(demanding(Server(play)))
    remove(Server(play, deaf_to=('TEARDOWN',)))


# ---- hostile servers ----


def describing(body):
    return only('DESCRIBE', lambda answer: with_body(answer, body))


HEAD = b'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n'


@test
def descriptions_are_bounded():
    is_down(Server(play, mangle=describing(HEAD + b'a=x\r\n' * 20000)),
            r".*Content-Length is wrong or too large")
    is_down(Server(play, mangle=describing(HEAD + b'm=x\r\n' * 9000)), '.+')
    is_down(Server(play, mangle=describing(HEAD + b'a=control:' + b'x' * 60000)), '.+')
    many = HEAD + b''.join(b'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:%d\r\n' % n
                           for n in range(900))
    server = Server(play, mangle=describing(many))
    with pulled(server) as proxy:
        proxy.wait_for_line(' mount /cam up: .*, 8 tracks', 10)


@test
def headers_without_an_end_are_bounded():
    def flood(session):
        try:
            session.connection.sendall(b'RTSP/1.0 200 OK\r\n')
            while not session.left.is_set():
                session.connection.sendall(b'X: y\r\n' * 5000)
        except OSError:
            pass

    is_down(Server(flood), "the upstream sends invalid data: a message's headers do not end")


@test
def invalid_frames_end_the_run():
    for data in (b'\0' * 100, b'\x80' * 5000, b'HTTP/1.0 200 OK\r\n\r\n',
                 b'RTSP/1.0 200 OK\r\nContent-Length: -5\r\n\r\n'):
        is_down(Server(lambda session, data=data: session.connection.sendall(data)),
                'the upstream sends invalid data: .+')


@test
def frames_with_wrong_contents_are_dropped():
    def junk(session):
        for size in 0, 1, 11, 12, 65535:
            for channel in 0, 1, 7, 255:
                frame = struct.pack('>cBH', b'$', channel, size) + b'\xff' * size
                session.connection.sendall(frame)
        play(session)

    plays(Server(junk))


@test
def a_server_that_does_not_read_is_bounded():
    """a server that sends requests and reads no answers is down"""
    def flood(session):
        session.left.wait()

    def early(session):
        try:
            while True:
                session.connection.sendall(b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n' * 1000)
        except OSError:
            pass

    is_down(Server(flood, early=early), 'the upstream does not read what is sent to it')


if __name__ == '__main__':
    run(at_once=4)
