# SPDX-License-Identifier: LGPL-2.1-or-later
"""JSON Web Tokens: clients with a token of a known key get in, and the token is shown nowhere."""

import os
import ssl
import subprocess
import tempfile
import time
from functools import lru_cache

from control import CLIP_URI, Controlled, Watch, config
from jose import Key, key_set
from proc import Rtsp
from proxy import Origin, Read, ffmpeg_reads, wait_until
from tap import Skip, run, test
from webserver import WebServer

CAM = {'/cam': {'upstream': CLIP_URI, 'cache': {'time': '5s'}}, '/other': {'upstream': CLIP_URI}}
READ_CAM = 'read', '/cam'
QUIET = 10 # s between two loads of the key set


@lru_cache
def key(number):
    return Key(number)


def keys_of(*numbers):
    """Returns a function for WebServer that serves these keys."""
    return lambda *_: (200, key_set(*map(key, numbers)))


def describe(proxy, token=None, path='/cam', headers=None):
    query = f'?token={token}' if token else ''
    return proxy_ask(proxy, 'DESCRIBE', path + query, headers)


def proxy_ask(proxy, method, path, headers=None):
    with Rtsp(proxy.port) as rtsp:
        return rtsp.request(method, proxy.url(path), headers)[0]


def with_keys(answer, **settings):
    """Returns a key server, and a proxy for its keys."""
    server = WebServer(answer)
    proxy = Controlled(CAM, jwt={'jwks': f'{server.base}/jwks', **settings})
    proxy.wait_for_line(r' jwt: \d+ keys loaded')
    return server, proxy


@test
def a_token_of_the_query_lets_clients_in_over_udp_and_tcp():
    with WebServer(keys_of(1)) as server, Origin() as origin, Controlled(
            {'/cam': {'upstream': origin.url}}, jwt={'jwks': f'{server.base}/jwks'}) as proxy:
        proxy.wait_for_line(r' jwt: 1 keys loaded')
        url = proxy.url(f'/cam?token={key(1).token(READ_CAM)}')
        for transport in 'udp', 'tcp':
            Read(url, transport=transport, duration=2).result()
            ffmpeg_reads(url, transport)
        assert Read(proxy.url(), duration=1).result(status=2)['readers'][0]['status'] == 'status-401'


@test
def a_token_is_shown_nowhere_and_does_not_split_a_presentation():
    server, proxy = with_keys(keys_of(1))
    tokens = [key(1).token(READ_CAM, jti=number) for number in range(3)]
    with server, proxy:
        readers = [Watch(proxy, '/cam?delay=0&token=' + tokens[0]),
                   Watch(proxy, f'/cam?token={tokens[1]}&delay=0')]
        describe(proxy, tokens[2] + 'x')
        describe(proxy, tokens[2], '/nothing')
        describe(proxy, tokens[2], headers={'Authorization': f'Bearer {tokens[2]}'})
        shown = proxy.output()
        for path in '/v1/mounts', '/v1/mounts/cam', '/v1/readers', '/v1/graph', '/metrics':
            shown += str(proxy.get(path))
        assert len(proxy.get('/v1/mounts/cam')['presentations']) == 1, proxy.get('/v1/mounts/cam')
        for reader in readers:
            reader.take()
        for token in tokens:
            for part in token.split('.')[1:]:
                assert part not in shown, shown


@test
def setup_needs_the_token_of_its_own_connection():
    """the connection remembers the token of DESCRIBE, and no other connection does"""
    server, proxy = with_keys(keys_of(1))
    setup = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
    with server, proxy:
        url = proxy.url('/cam')
        with Rtsp(proxy.port) as rtsp, Rtsp(proxy.port) as stranger:
            token = key(1).token(READ_CAM)
            assert rtsp.request('DESCRIBE', f'{url}?token={token}')[0] == 200
            assert stranger.request('SETUP', f'{url}/stream=0', setup)[0] == 401
            assert rtsp.request('SETUP', f'{url}/stream=0', setup)[0] == 200
            assert rtsp.request('PLAY', url)[0] == 200
        with Rtsp(proxy.port) as rtsp:
            token = key(1).token(READ_CAM)
            assert rtsp.request('DESCRIBE', f'{url}?token={token}')[0] == 200
            other = proxy.url('/other/stream=0')
            assert rtsp.request('SETUP', other, setup)[0] == 403


@test
def wrong_tokens_are_refused_with_a_log_line():
    server, proxy = with_keys(keys_of(1), issuer='us', audience='weir')
    good = {'iss': 'us', 'aud': ['weir', 'other']}
    cases = [
        (key(1).token(READ_CAM, **good), 200, None),
        (None, 401, None),
        ('x.y.z', 401, None),
        (key(1).token(READ_CAM, lasts=-60, **good), 401, None),
        (key(1).token(READ_CAM, iss='them', aud='weir'), 401, 'wrong token: other issuer'),
        (key(1).token(READ_CAM, iss='us'), 401, 'wrong token: other audience'),
        (key(2).token(READ_CAM, **good), 401, 'wrong token: unknown key'),
        (key(1).sign({'exp': 2 ** 40, **good}, {'alg': 'none'}), 401, 'wrong token: not signed by'),
        (key(1).sign({'exp': 2 ** 40, **good}, {'alg': 'HS256'}), 401, 'wrong token: not signed by'),
        (key(1).token(READ_CAM, **good)[:-4] + 'AAAA', 401, 'wrong token: wrong signature'),
        (key(1).token(('read', '/other'), **good), 403, 'no permission in the token'),
        (key(1).token(('playback', '/cam'), **good), 403, 'no permission in the token'),
        (key(1).token(**good), 403, 'no permission in the token'),
        (key(1).token(('read', ''), **good), 200, None),
        (key(1).token(('read', '~^c'), **good), 200, None),
    ]
    with server, proxy:
        for token, status, reason in cases:
            seen = len(proxy.lines)
            assert describe(proxy, token) == status, (token, status)
            if reason:
                proxy.wait_for_line(rf' access refused from 127\.0\.0\.1: .*read /cam: {reason}',
                                    start=seen)


@test
def a_token_comes_in_the_header_too():
    server, proxy = with_keys(keys_of(1))
    with server, proxy:
        token = key(1).token(READ_CAM)
        assert describe(proxy, headers={'Authorization': f'Bearer {token}'}) == 200
        assert describe(proxy, headers={'Authorization': f'bearer  {token}'}) == 200
        assert describe(proxy, headers={'Authorization': f'Bearer {token}x'}) == 401


@test
def a_token_may_admit_to_the_api_and_the_metrics():
    with WebServer(keys_of(1)) as server, Controlled(
            CAM, jwt={'jwks': f'{server.base}/jwks'}, **{'api-token': 'secret'}) as proxy:
        proxy.wait_for_line(r' jwt: 1 keys loaded')
        api, metrics, read = (key(1).token((action, '')) for action in ('api', 'metrics', 'read'))
        cases = [('/v1/mounts', 'secret', 200), ('/v1/mounts', api, 200), ('/metrics', api, 403),
                 ('/metrics', metrics, 200), ('/v1/mounts', metrics, 403), ('/v1/mounts', read, 403),
                 ('/v1/mounts', api + 'x', 401), ('/v1/mounts', 'wrong', 401)]
        for path, token, status in cases:
            got = proxy.http('GET', path, headers={'Authorization': f'Bearer {token}'})[0]
            assert got == status, (path, status, got)
        assert proxy.http('GET', f'/v1/mounts?token={api}')[0] == 200
        assert proxy.http('GET', '/v1/mounts')[0] == 401
        assert api.split('.')[2] not in proxy.output()


@test
def keys_rotate_without_a_restart():
    old, new = (key(number).token(READ_CAM) for number in (1, 2))  # keys take a while to make
    begun = time.monotonic()
    server, proxy = with_keys(keys_of(1))

    def check_loads():
        most = 1 + (time.monotonic() - begun) // QUIET
        assert len(server.requests) <= most, (len(server.requests), most)
        return most

    with server, proxy:
        assert describe(proxy, old) == 200
        server.answer = keys_of(2)
        # The set was loaded a moment ago: a stranger's key ids must not load it again and again.
        for _ in range(5):
            status = describe(proxy, new)
            assert status == 401 or check_loads() > 1, status
        check_loads()
        wait_until(lambda: describe(proxy, new) == 200, 20, 'the new key is known')
        assert check_loads() > 1 and len(server.requests) > 1
        assert describe(proxy, old) == 401


@test
def a_file_of_keys_is_read_again_at_a_reload():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'jwks.json')
        settings = {'jwt': {'jwks': file, 'permissions-claim': 'mediamtx_permissions'}}

        def write(number):
            with open(file, 'w', encoding='utf-8') as keys:
                keys.write(key_set(key(number)))

        def token(number):
            return key(number).token(('read', 'cam'), claim='mediamtx_permissions')

        write(1)
        with Controlled(CAM, **settings) as proxy:
            assert describe(proxy, token(1)) == 200
            write(2)
            assert proxy.hang_up(config(CAM, **settings)).startswith('reloaded')
            assert describe(proxy, token(2)) == 200
            assert describe(proxy, token(1)) == 401
            with open(file, 'w', encoding='utf-8') as keys:
                keys.write('{}')
            assert proxy.hang_up(config(CAM, **settings)).startswith('not reloaded')
            assert describe(proxy, token(2)) == 200


@test
def a_key_server_that_is_down_delays_and_admits_nobody():
    with WebServer(lambda *_: (500, '')) as server, Controlled(
            CAM, jwt={'jwks': f'{server.base}/jwks'}) as proxy:
        proxy.wait_for_line(r' jwt: the keys were not loaded, .*: the server answered 500')
        assert describe(proxy, key(1).token(READ_CAM)) == 503
        assert describe(proxy) == 401
        server.answer = keys_of(1)
        wait_until(lambda: describe(proxy, key(1).token(READ_CAM)) == 200, 20, 'keys are loaded')


@test
def a_key_server_with_an_unknown_certificate_is_not_trusted():
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ('certificate.pem', 'key.pem')]
        try:
            subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-out',
                            names[0], '-keyout', names[1], '-days', '2', '-subj', '/CN=127.0.0.1',
                            '-addext', 'subjectAltName=IP:127.0.0.1'], check=True,
                           capture_output=True)
        except FileNotFoundError:
            raise Skip('openssl is not on the PATH') from None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*names)
        with WebServer(keys_of(1), context) as server, Controlled(
                CAM, jwt={'jwks': f'{server.base}/jwks'}) as proxy:
            proxy.wait_for_line(r' jwt: the keys were not loaded, .*certificate', 60)
            assert describe(proxy, key(1).token(READ_CAM)) == 503
            assert not server.requests


if __name__ == '__main__':
    run(at_once=4)
