# SPDX-License-Identifier: LGPL-2.1-or-later
"""Web pages of others in the browser of somebody who may read: by a name of their own that leads to
the proxy (DNS rebinding), and by requests to another site (CORS)."""

import base64
import hashlib
import socket

from chromium import Chromium
from control import CLIP_URI
from hlsweb import Web
from proxy import wait_until
from tap import run, test
from webserver import WebServer

EVIL = 'evil.example'
PASSWORD = 'S3cr3tCanary'
ANN = {'Authorization': 'Basic ' + base64.b64encode(f'ann:{PASSWORD}'.encode()).decode()}
JUNK = {'Authorization': 'Basic eDp5'}
BOTH = [{'action': 'read'}, {'action': 'playback'}, {'action': 'api'}, {'action': 'metrics'}]
PATHS = ['/', '/watch/cam', '/hls/cam/index.m3u8', '/ts/cam']


def ann(**more):
    return {'name': 'ann', 'digest': ['MD5:' + hashlib.md5(f'ann:rtsp-proxy:{PASSWORD}'.encode()).hexdigest()],
            'permissions': BOTH, **more}


def anybody(**more):
    return {'name': 'any', 'permissions': BOTH, **more}


HERE = {'networks': ['127.0.0.0/8']}
OPEN = {'basic-without-tls': 'yes', 'api-token': 't0ken'}


def status_of(proxy, path, host, headers=None):
    """Returns the status of an answer, of which no more than the head is read."""
    lines = [f'GET {path} HTTP/1.1', f'Host: {host}', 'Connection: close']
    lines += [f'{name}: {value}' for name, value in (headers or {}).items()]
    with socket.create_connection(('127.0.0.1', proxy.web_port), 60) as connection:
        connection.sendall('\r\n'.join([*lines, '', '']).encode())
        head = b''
        while b'\r\n' not in head:
            head += connection.recv(4096)
    return int(head.split()[1])


def paths_of(proxy):
    """Returns the paths that are there in this build."""
    return [path for path in PATHS if status_of(proxy, path, 'localhost') != 404]


@test(timeout=120)
def a_client_without_a_secret_must_name_this_machine():
    """the API and HTTP: on loopback and beyond, by default, by an address, and if everybody may"""
    ours = ('127.0.0.1', '[::1]:1', '192.0.2.1', 'LOCALHOST', socket.gethostname(), 'cams.example.org',
            'CAMS.example.ORG:8888')
    others = (EVIL, f'{EVIL}:80', '127.0.0.1.evil.example', 'localhost.evil.example', 'cams.example.org.evil.example',
              'xcams.example.org', 'localhost.')
    cases = [{}, {'users': [anybody(**HERE), ann()], **OPEN}, {'users': [anybody(), ann()], **OPEN},
             {'users': [anybody(), ann()], **OPEN, 'web': {'listen': '0.0.0.0:0'}, 'api': '0.0.0.0:0'}]
    for top in cases:
        with Web(CLIP_URI, hosts=['cams.example.org'], **top) as proxy:
            paths = paths_of(proxy)
            assert len(paths) > 2, paths
            for host in others:
                for path in paths:
                    for headers in {}, JUNK if 'users' in top else {}:
                        assert status_of(proxy, path, host, headers) in (401, 403), (top, path, host, headers)
                for method, path, body in ('GET', '/metrics', None), ('PUT', '/v1/mounts/x', {'upstream': CLIP_URI}):
                    status, _, answer = proxy.http(method, path, body, host=host)
                    assert status == 403 and answer['error']['where'] == 'Host', (top, status, answer)
                    assert '`hosts`' in answer['error']['message'], answer
            for host in ours:
                assert all(status_of(proxy, path, host) == 200 for path in paths), (top, host)
                assert proxy.http('GET', '/v1/health', host=host)[0] == 200, (top, host)
            status, _, body = proxy.fetch('/hls/cam/index.m3u8', {'Host': EVIL})
            assert status == 403 and b'`hosts`' in body, body
            assert [mount['path'] for mount in proxy.get('/v1/mounts')['mounts']] == ['/cam']


@test
def a_client_with_a_secret_may_use_any_name():
    with Web(CLIP_URI, users=[ann()], **OPEN) as proxy:
        for path in paths_of(proxy):
            assert status_of(proxy, path, EVIL, ANN) == 200, path
            assert status_of(proxy, path, EVIL) == 401 and status_of(proxy, path, EVIL, JUNK) == 401, path
        for headers, status in (ANN, 200), ({'Authorization': 'Bearer t0ken'}, 200), ({}, 401):
            assert proxy.http('GET', '/v1/mounts', headers=headers, host=EVIL)[0] == status, headers


def allowed(proxy, path, origin, headers=None):
    status, got, _ = proxy.fetch(path, {'Origin': origin, **(headers or {})})
    assert status == 200, (path, status)
    return got.get('access-control-allow-origin'), got.get('vary')


@test
def pages_read_what_an_address_brings_if_their_origin_is_configured():
    """other pages read only what a secret brings, or what everybody may have"""
    good, evil, master = 'https://www.example.org', f'http://{EVIL}', '/hls/cam/index.m3u8'
    for users in {}, {'users': [anybody(**HERE)], **OPEN}:
        with Web(**users) as proxy:
            assert allowed(proxy, master, evil) == (None, 'Origin')
            folder, name = proxy.begin()
            assert allowed(proxy, f'{folder}/{name}', evil) == ('*', None) # the name of the session is secret
        for origins, told in ([good], good), ([evil + '.org', good + ':444'], None), (['*'], '*'):
            with Web(**users, web={'allow-origins': origins}) as proxy:
                assert allowed(proxy, master, good) == (told, 'Origin'), origins
                assert allowed(proxy, master, evil)[0] == ('*' if told == '*' else None), origins
                preflight = proxy.fetch(master, {'Origin': evil, 'Access-Control-Request-Method': 'GET'}, 'OPTIONS')
                assert preflight[0] == 204, preflight
    with Web(users=[anybody()], **OPEN) as proxy:
        assert allowed(proxy, master, evil) == ('*', None)
    with Web(users=[ann()], **OPEN) as proxy:
        assert allowed(proxy, master, evil, ANN) == ('*', None)


def status_in(browser, url):
    """Returns the status that a page gets, and the first bytes that it reads; 0: the browser forbids it."""
    return browser.run(f'fetch("{url}").then(a => a.text().then(t => a.status + " " + t.slice(0, 7)), () => "0 ")')


@test(timeout=120)
def a_browser_gives_pages_of_others_nothing():
    with WebServer(lambda path, body: (200, '<p>page</p>', {'Content-Type': 'text/html'})) as other, \
            Web(web={'allow-origins': [f'http://good.example:{other.port}']}) as proxy, \
            Chromium('--host-resolver-rules=MAP *.example 127.0.0.1') as browser:
        def visit(url):
            browser.open(url)
            wait_until(lambda: browser.run('location.href + document.readyState') == f'{url}complete', 30, url)
        master = '/hls/cam/index.m3u8'
        visit(f'{proxy.web}/')
        assert status_in(browser, master) == '200 #EXTM3U'
        # A name of the page's own, first of its server, then of the proxy and of the API.
        visit(f'http://{EVIL}:{proxy.web_port}/')
        assert status_in(browser, master).startswith('403 '), status_in(browser, master)
        visit(f'http://{EVIL}:{proxy.api_port}/v1/health')
        assert status_in(browser, '/v1/mounts').startswith('403 '), status_in(browser, '/v1/mounts')
        # Another site.
        visit(f'http://{EVIL}:{other.port}/')
        assert status_in(browser, proxy.web + master) == '0 '
        assert status_in(browser, f'http://127.0.0.1:{proxy.api_port}/v1/mounts') == '0 '
        visit(f'http://good.example:{other.port}/')
        assert status_in(browser, proxy.web + master) == '200 #EXTM3U'


if __name__ == '__main__':
    run()
