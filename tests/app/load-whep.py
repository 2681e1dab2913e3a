# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks rtsp-load --whep: readers of the proxy and of scripted servers, and what it says of them."""

import hashlib
import hmac
import http.server
import json
import re
import socket
import struct
import threading
import zlib
from contextlib import contextmanager

from hlsweb import Web
from loads import Load, refuse
from proc import free_port
from proxy import wait_until
from tap import run, test

PASSWORD = 'p' * 24
FINGERPRINT = ':'.join(['AB'] * 32)
COOKIE = 0x2112a442


def whep(**top):
    return Web(webrtc={'listen': '127.0.0.1:0'}, **top)


def answer(*candidates, setup='passive', fingerprint=FINGERPRINT, media='m=video 9 UDP/TLS/RTP/SAVPF 96'):
    lines = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', media, 'c=IN IP4 0.0.0.0', 'a=rtpmap:96 H264/90000',
             'a=ice-ufrag:them', f'a=ice-pwd:{PASSWORD}', f'a=fingerprint:sha-256 {fingerprint}', f'a=setup:{setup}',
             *(f'a=candidate:1 1 {each} typ host' for each in candidates)]
    return '\r\n'.join(lines) + '\r\n'


def udp(port, ip='127.0.0.1'):
    return f'udp 2130706431 {ip} {port}'


@contextmanager
def server(body, status=201, headers=None):
    """Answers each POST. `body` may be a function of the offer. Yields the URL, and the requests."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def take(self):
            offer = self.rfile.read(int(self.headers.get('Content-Length', 0))).decode()
            asked.append((self.command, self.path, self.headers, offer))
            is_post = self.command == 'POST'
            text = (body(offer) if callable(body) else body) if is_post else ''
            self.send_response(status if is_post else 200)
            for name, value in ({'Location': '/x/whep/1', **(headers or {})} if is_post else {}).items():
                if value is not None:
                    self.send_header(name, value)
            self.send_header('Content-Length', str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_DELETE = take

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        try:
            yield f'http://127.0.0.1:{web.server_address[1]}/x/whep', asked
        finally:
            web.shutdown()


def attribute(kind, value):
    return struct.pack('>HH', kind, len(value)) + value + bytes(-len(value) % 4)


def attributes(message):
    found, at = {}, 20
    while at < len(message):
        kind, size = struct.unpack_from('>HH', message, at)
        found[kind] = message[at + 4:at + 4 + size]
        at += 4 + size + -size % 4
    return found


def seal(message):
    """Ends a message with MESSAGE-INTEGRITY and FINGERPRINT."""
    message = message[:2] + struct.pack('>H', len(message) + 4) + message[4:]
    message += attribute(8, hmac.new(PASSWORD.encode(), message, hashlib.sha1).digest())
    message = message[:2] + struct.pack('>H', len(message) - 12) + message[4:]
    return message + attribute(0x8028, struct.pack('>I', zlib.crc32(message) ^ 0x5354554e))


class Agent:
    """Answers STUN, and keeps all that comes."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        self.checks, self.others = [], []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            message, (ip, port) = self.socket.recvfrom(2048)
            if message[0] > 3:
                self.others.append(message)
                continue
            self.checks.append(message)
            place = struct.pack('>BBH', 0, 1, port ^ COOKIE >> 16) + struct.pack(
                '>I', struct.unpack('>I', socket.inet_aton(ip))[0] ^ COOKIE)
            self.socket.sendto(seal(struct.pack('>HHI', 0x101, 0, COOKIE) + message[8:20] + attribute(0x20, place)),
                               (ip, port))


@test(timeout=90)
def readers_get_the_media_of_the_proxy():
    with whep() as proxy:
        with Load('--whep', '-n', '5', '-d', '60', f'{proxy.web}/cam/whep') as running:
            wait_until(lambda: len([each for each in proxy.get('/v1/readers')['readers']
                                    if each['bytes'] > 100000]) == 5, 60, 'media')
            result = running.finish()
        # The sessions are ended: without DELETE the proxy would wait for a peer that is silent.
        wait_until(lambda: not proxy.get('/v1/readers')['readers'], 5, 'the readers to leave')
    for key, value in {'readers': 5, 'playing': 5, 'keyframes': 5, 'failed': 0, 'forged': 0, 'foreign': 0,
                       'duplicates': 0}.items():
        assert result[key] == value, (key, result)
    assert result['packets'] > 500 and result['bytes'] > 500000, result
    assert result['lost'] == 0 and result['delivered'] == 100, result
    assert 0 < result['answer_p50_ms'] <= result['dtls_p50_ms'] <= result['keyframe_max_ms'], result
    assert result['first_packet_p50_ms'] <= result['keyframe_p50_ms'], result


@test(timeout=90)
def the_server_is_told_when_packets_came():
    with whep() as proxy:
        with Load('--whep', '--twcc', '-n', '2', '-d', '60', f'{proxy.web}/cam/whep') as running:
            wait_until(lambda: [each['layers']['line'] and each['layers']['line']['state']
                                for each in proxy.get('/v1/readers')['readers']] == ['clear'] * 2, 60, 'feedback')
            assert all(each['layers']['estimate'] > 100000 for each in proxy.get('/v1/readers')['readers'])
            result = running.finish()
    assert result['playing'] == result['keyframes'] == 2, result
    assert result['lost'] == result['failed'] == result['forged'] == result['foreign'] == 0, result
    refuse('--twcc', 'rtsp://127.0.0.1/cam', line='--twcc goes with --whep only', status=2)


def post(proxy, offer):
    return proxy.fetch('/cam/whep', {'Content-Type': 'application/sdp'}, 'POST', offer)[2].decode()


class Path:
    """Forwards datagrams between a reader and `port`. `change` returns what to send of a packet of media."""

    def __init__(self, change):
        self.near, self.far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.near.bind(('127.0.0.1', 0))
        self.change, self.reader, self.n = change, None, 0
        self.port = self.near.getsockname()[1]

    def begin(self, port):
        self.far.connect(('127.0.0.1', port))
        for way in self.go, self.come:
            threading.Thread(target=way, daemon=True).start()

    def go(self):
        while True:
            packet, self.reader = self.near.recvfrom(2048)
            self.far.send(packet)

    def come(self):
        while True:
            packet = self.far.recv(2048)
            is_media = packet[0] >= 128 and not 192 <= packet[1] <= 223
            for each in self.change(packet) if is_media else [packet]:
                self.n += is_media
                self.near.sendto(each, self.reader)


def played_over(path):
    def relay(offer):
        text = post(proxy, offer)
        found = re.search(r'a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 (\d+)', text)
        path.begin(int(found[1]))
        return text.replace(f' {found[1]} typ', f' {path.port} typ')

    with whep() as proxy, server(relay) as (url, _), Load('--whep', '-d', '60', url) as running:
        wait_until(lambda: path.n > 300, 40, 'media')
        return running.finish()


@test(timeout=90)
def losses_and_disorder_are_counted():
    seen, held = [], []

    def change(packet):
        video = packet[1] & 127 < 111
        seen.append(video)
        n = sum(seen)
        if not video or n > 100:
            return [packet]
        if n % 20 == 5:
            return []
        if n % 20 == 10:
            held.append(packet)
            return []
        if n % 20 == 11:
            return [packet, held.pop()]
        return [packet, packet] if n % 20 == 15 else [packet]

    result = played_over(Path(change))
    assert (result['lost'], result['reordered'], result['duplicates']) == (5, 5, 5), result
    assert (result['keyframes'], result['failed'], result['forged']) == (1, 0, 0), result
    assert 0 < 100 - result['delivered'] < 10, result


@test(timeout=60)
def a_wrong_certificate_is_seen():
    def relay(offer):
        return re.sub(r'(fingerprint:sha-256) \S+', rf'\1 {FINGERPRINT}', post(proxy, offer))

    with whep() as proxy, server(relay) as (url, asked):
        proxy.begin()  # the mount runs
        refuse('--whep', '-d', '60', url, line='reader 1: DTLS: .* fingerprint', timeout=40)
    assert [(method, path) for method, path, *_ in asked] == [('POST', '/x/whep'), ('DELETE', '/x/whep/1')], asked


@test(timeout=60)
def checks_are_those_of_a_controlling_agent():
    agent = Agent()
    with server(answer(udp(agent.port))) as (url, asked):
        refuse('--whep', '-d', '60', '--timeout', '1', url, line='no end of the DTLS handshake within 1 s')
    own = re.search(r'a=ice-ufrag:(\S+)', asked[0][3])[1]
    found = attributes(agent.checks[0])
    assert found[0x06] == f'them:{own}'.encode() and found[0x25] == b'' and 0x24 in found and 0x802a in found, found
    assert agent.checks[0] == seal(agent.checks[0][:-32]), 'the integrity is wrong'
    assert agent.others and agent.others[0][0] == 22, 'no ClientHello came'


@test(timeout=60)
def of_several_candidates_one_is_nominated():
    agent, deaf = Agent(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    deaf.bind(('127.0.0.1', 0))
    with server(answer('tcp 1 127.0.0.1 9', udp(9, 'x.local'), udp(deaf.getsockname()[1]), udp(agent.port))) as (url, _):
        refuse('--whep', '-d', '60', '--timeout', '1', url, line='no end of the DTLS handshake within 1 s')
    assert [0x25 in attributes(each) for each in agent.checks[:2]] == [False, True], agent.checks
    assert 0x25 not in attributes(deaf.recv(2048))
    deaf.close()


@test(timeout=60)
def what_fails_is_said():
    good = udp(9)
    for body, how, line in (
            ('no such mount\n', {'status': 404}, 'the server answers 404 to POST: no such mount'),
            ('', {}, 'the answer is no description|the answer has no track'),
            ('hello', {}, 'the answer is no description|the answer has no track'),
            (answer(good, media='m=video 0 UDP/TLS/RTP/SAVPF 96'), {}, 'the answer has no track'),
            (answer(good, fingerprint='AB:CD'), {}, 'the answer has no fingerprint by SHA-256'),
            (answer('tcp 1 127.0.0.1 9', udp(9, 'x.local')), {}, 'has no candidate of UDP'),
            (answer(good).replace('ice-pwd', 'x'), {}, 'has no ice-ufrag and ice-pwd'),
            (answer(good), {'headers': {'Location': None}}, 'the answer has no Location'),
            (answer(good), {'headers': {'Content-Length': 'x'}}, 'the POST failed: the answer is malformed')):
        with server(body, **how) as (url, _):
            refuse('--whep', '-d', '60', url, line=line)
    refuse('--whep', '-d', '60', f'http://127.0.0.1:{free_port()}/whep', line='POST failed: Connection refused')


@test(timeout=60)
def failures_are_counted_by_their_kind():
    with server(answer(udp(9))) as (url, asked):
        said = refuse('--whep', '-n', '3', '-d', '60', '--timeout', '1', url,
                      line="reader 3: no answer to STUN from the server's candidates within 1 s")
        result = json.loads(said[said.index('{'):])
        assert (result['failed'], result['failed_ice'], result['failed_http']) == (3, 3, 0), result
        assert sorted(method for method, *_ in asked) == ['DELETE'] * 3 + ['POST'] * 3, asked


@test(timeout=60)
def credentials_are_sent():
    with server('', status=403) as (url, asked):
        refuse('--whep', '-d', '60', '--user', 'u', '--password', 'p', url, line='answers 403')
    assert asked[0][2]['Authorization'] == 'Basic dTpw', asked
    assert asked[0][2]['Content-Type'] == 'application/sdp', asked


@test
def wrong_arguments_are_refused():
    for words, line in ((['rtsp://h/x'], 'is not an http:// URL'), (['--mute', 'http://h/x'], '--whep goes with'),
                        (['--hls', 'http://h/x'], 'exclude each other')):
        refuse('--whep', *words, line=line, status=2)


if __name__ == '__main__':
    run()
