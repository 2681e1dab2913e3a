# SPDX-License-Identifier: LGPL-2.1-or-later
"""The external check: a server decides about clients, and one that does not answer admits nobody."""

import base64
import os
import socket
import ssl
import subprocess
import tempfile
import threading

from control import CLIP_URI, Controlled, config
from proc import Rtsp
from proxy import Origin, Read, ffmpeg_reads, program, wait_until
from tap import run, test
from webserver import WebServer

CAM = {'/cam': {'upstream': CLIP_URI, 'cache': {'time': '5s'}}}
USER, PASSWORD = 'viewer', 'S3cr3tCanary'
BASIC = {'Authorization': 'Basic ' + base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}


def only_user(_path, asked):
    return (200 if (asked['user'], asked['password']) == (USER, PASSWORD) else 401), ''


def only_token(_path, asked):
    return (204 if asked['token'] == PASSWORD else 401), ''


def proxy_of(server, mounts=None, path='/check', **settings):
    return Controlled(mounts or CAM, **{'basic-without-tls': True, 'external-auth': {
        'url': server.base + path, **settings}})


def describe(proxy, path='/cam', headers=None):
    with Rtsp(proxy.port) as rtsp:
        return rtsp.request('DESCRIBE', proxy.url(path), headers)[0]


@test
def the_check_is_asked_as_operators_know_it():
    with WebServer(lambda *_: (200, '')) as server, proxy_of(server) as proxy:
        assert describe(proxy, '/cam?delay=0&token=T%26', {'User-Agent': 'me/1', **BASIC}) == 200
        path, asked = server.requests[0]
        assert path == '/check'
        assert len(asked.pop('id')) == 36
        assert asked == {
            'user': USER, 'password': PASSWORD, 'token': 'T&', 'ip': '127.0.0.1', 'action': 'read',
            'path': 'cam', 'protocol': 'rtsp', 'query': 'delay=0', 'userAgent': 'me/1'}


@test
def clients_send_a_password_when_the_check_refuses_without():
    with WebServer(only_user) as server, Origin() as origin, proxy_of(
            server, {'/cam': {'upstream': origin.url}}) as proxy:
        url = proxy.url().replace('rtsp://', f'rtsp://{USER}:{PASSWORD}@')
        for transport in 'udp', 'tcp':
            server.requests.clear()
            Read(url, transport=transport, duration=2).result()
            passwords = [asked['password'] for _, asked in server.requests]
            assert passwords == ['', PASSWORD], passwords
            ffmpeg_reads(url, transport)
        assert Read(proxy.url(), duration=1).result(status=2)['readers'][0]['status'] == 'status-401'
        assert PASSWORD not in proxy.output() + str(proxy.get('/v1/readers')), proxy.output()


class OverTls(Rtsp):
    def __init__(self, port, pem):
        plain = socket.create_connection(('127.0.0.1', port), 10)
        self.socket = ssl.create_default_context(cafile=pem).wrap_socket(
            plain, server_hostname='127.0.0.1')
        self.cseq, self.session, self.frames, self._buffer = 0, None, [], b''


@test
def a_password_is_passed_on_only_if_it_came_over_tls():
    with tempfile.TemporaryDirectory() as folder, WebServer(only_user) as server:
        pem = os.path.join(folder, 'proxy.pem')
        subprocess.run([program(), 'make-certificate', '--host', '127.0.0.1', pem], check=True,
                       capture_output=True)
        with Controlled(CAM, **{'tls': {'listen': '127.0.0.1:0', 'certificate': pem},
                                'external-auth': {'url': server.base}}) as proxy:
            port = int(proxy.wait_for_line(r' serves rtsps://[\d.]+:(\d+)/')[1])
            with OverTls(port, pem) as rtsp:
                url = f'rtsps://127.0.0.1:{port}/cam'
                status, headers, _ = rtsp.request('DESCRIBE', url)
                assert (status, headers['www-authenticate'][:6]) == (401, 'Basic '), headers
                assert rtsp.request('DESCRIBE', url, BASIC)[0] == 200
            assert {asked['protocol'] for _, asked in server.requests} == {'rtsp'}
            server.requests.clear()
            assert describe(proxy) in (401, 403)
            assert describe(proxy, headers=BASIC) in (401, 403)
            assert all(not asked['password'] for _, asked in server.requests), server.requests


@test
def a_token_goes_to_the_check_from_query_and_header():
    with WebServer(only_token) as server, Origin() as origin, proxy_of(
            server, {'/cam': {'upstream': origin.url}}) as proxy:
        url = proxy.url(f'/cam?token={PASSWORD}')
        for transport in 'udp', 'tcp':
            server.requests.clear()
            Read(url, transport=transport, duration=2).result()
            assert len(server.requests) == 1, server.requests
            ffmpeg_reads(url, transport)
        assert describe(proxy, headers={'Authorization': f'Bearer {PASSWORD}'}) == 200
        assert describe(proxy, '/cam?token=x') == 401
        assert PASSWORD not in proxy.output(), proxy.output()


@test
def bearer_may_carry_user_and_password():
    with WebServer(only_user) as server, proxy_of(server) as proxy:
        assert describe(proxy, headers={'Authorization': f'Bearer {USER}:{PASSWORD}'}) == 200
        assert describe(proxy, headers={'Authorization': f'Bearer {USER}:x'}) == 401


@test
def only_an_answer_from_200_to_299_lets_in():
    answers = [(200, 200), (204, 200), (299, 200), (401, 401), (404, 401), (403, 403), (500, 503),
               (503, 503), (301, 503), (302, 503), (307, 503), (308, 503)]
    status = None

    def answer(path, _asked):
        if path != '/check':
            return 200, ''
        return status, '', {'Location': '/elsewhere'}

    with WebServer(answer) as server, proxy_of(server) as proxy:
        for status, expected in answers:
            assert describe(proxy, headers=BASIC) == expected, (status, expected)
        assert {path for path, _ in server.requests} == {'/check'}, server.requests
        proxy.wait_for_line(r' external-auth: \S+/check: the server answered 500')
        status = 403
        assert describe(proxy) == 401


@test
def a_server_that_does_not_answer_refuses_and_delays_nobody_else():
    def answer(path, asked):
        return server.hang() if asked['user'] else (200, '')

    with WebServer(answer) as server, proxy_of(server, timeout='1500ms') as proxy:
        with Rtsp(proxy.port) as slow:
            slow.cseq = 1
            slow.send((f'DESCRIBE {proxy.url()} RTSP/1.0\r\nCSeq: 1\r\n'
                       f'Authorization: {BASIC["Authorization"]}\r\n\r\n').encode())
            wait_until(lambda: server.requests, 10, 'the check is asked')
            for _ in range(5):
                assert describe(proxy) == 200
            assert slow.answer()[0] == 503
        proxy.wait_for_line(r' external-auth: \S+/check: no answer in time')


@test
def a_server_that_is_down_refuses():
    with WebServer(lambda *_: (200, '')) as server:
        base = server.base
    with Controlled(CAM, **{'external-auth': {'url': base}}) as proxy:
        assert describe(proxy) == 503


@test
def an_answer_is_remembered_for_the_connection_that_asked():
    allowed = [True]
    with WebServer(lambda *_: (200 if allowed[0] else 401, '')) as server, proxy_of(
            server) as proxy:
        with Rtsp(proxy.port) as rtsp:
            for _ in range(3):
                assert rtsp.request('DESCRIBE', proxy.url(), BASIC)[0] == 200
            assert len(server.requests) == 1
            allowed[0] = False
            assert describe(proxy, headers=BASIC) == 401
            # A refusal is not remembered.
            assert describe(proxy, headers=BASIC) == 401
            assert len(server.requests) == 3


@test
def the_check_is_not_asked_about_excluded_actions():
    with WebServer(lambda *_: (200, '')) as server, proxy_of(server, exclude=['read']) as proxy:
        assert describe(proxy, headers=BASIC) in (401, 403)
        assert not server.requests


@test
def a_reload_changes_the_check():
    with WebServer(lambda *_: (200, '')) as server, WebServer(
            lambda *_: (401, '')) as other, proxy_of(server) as proxy:
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
            settings = {'external-auth': {'url': other.base}}
            assert proxy.hang_up(config(CAM, **settings)).startswith('reloaded')
            assert rtsp.request('DESCRIBE', proxy.url())[0] != 200
            assert len(server.requests) == 1 and len(other.requests) == 1


@test
def twenty_clients_at_once_are_all_answered():
    with WebServer(only_user) as server, proxy_of(server) as proxy:
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(describe(proxy, headers=BASIC)))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 20, statuses


if __name__ == '__main__':
    run()
