# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles over HTTP: whole files and ranges, bit by bit; who may have them; slow clients, limits, and
the figures of readers."""

import hashlib
import http.client
import os
import random
import shutil
import socket
import ssl
import subprocess
import tempfile
from functools import lru_cache

from control import Controlled
from films import random_film as film
from proxy import CLIP, program, wait_until
from tap import SLOWER, Skip, run, test

PASSWORD = 'S3cr3tCanary'


SHORT = film(4, 1000000)


@lru_cache
def folder():
    directory = tempfile.TemporaryDirectory()
    films = os.path.join(directory.name, 'films')
    os.makedirs(os.path.join(films, 'sub dir'))
    shutil.copy(CLIP, os.path.join(films, 'clip.mp4'))
    shutil.copy(CLIP, os.path.join(directory.name, 'secret.mp4'))
    # A slice of 5 s is 50,000 bytes of the long film, and more than all of the short one.
    for name, data in (('short.mp4', SHORT), ('long.mp4', film(3600, 36000000)),
                       ('empty.mp4', b''), ('notes.txt', b'abc')):
        with open(os.path.join(films, name), 'wb') as file:
            file.write(data)
    shutil.copy(os.path.join(films, 'short.mp4'), os.path.join(films, 'sub dir', 'short.mp4'))
    return directory, films


class Served(Controlled):
    """A proxy that serves the folder as /films, also over HTTP."""

    def __init__(self, mount=None, scheme='http', **top):
        listen = {'http': 'listen', 'https': 'tls-listen'}[scheme]
        super().__init__({'/films': {'upstream': f'file://{folder()[1]}/', **(mount or {})}},
                         http={listen: '127.0.0.1:0'}, **top)
        self.web_port = int(self.wait_for_line(rf' titles {scheme}://[\d.]+:(\d+)')[1])

    def connect(self, timeout=20):
        return http.client.HTTPConnection('127.0.0.1', self.web_port, timeout=timeout)

    def fetch(self, path, method='GET', headers=None, connection=None):
        """Returns status, headers and body of an answer."""
        own = connection or self.connect()
        own.request(method, path, headers=headers or {})
        answer = own.getresponse()
        body = answer.read()
        if not connection:
            own.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body

    def raw(self, data=b'', timeout=20):
        connection = socket.create_connection(('127.0.0.1', self.web_port), timeout=timeout)
        connection.sendall(data)
        return connection

    def readers(self):
        return self.get('/v1/readers')['readers']


def tail(connection):
    """Returns what comes until the end of the connection."""
    data = b''
    while more := connection.recv(65536):
        data += more
    return data


def begin_long(proxy):
    """Returns a connection on which the long title has begun to come."""
    connection = proxy.raw(b'GET /films/long.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    head = b''
    while b'\r\n\r\n' not in head:
        head += connection.recv(1024)
    assert head.startswith(b'HTTP/1.1 200 '), head
    return connection


# ---- what is sent ----

@test
def a_title_is_sent_unchanged():
    with Served() as proxy:
        for path in '/films/short.mp4', '/films/sub%20dir/short.mp4':
            status, headers, body = proxy.fetch(path)
            assert (status, body) == (200, SHORT), (status, len(body))
            assert headers['content-type'] == 'video/mp4', headers
            assert headers['accept-ranges'] == 'bytes', headers
        assert proxy.fetch('/films/notes.txt')[2] == b'abc'
        status, headers, body = proxy.fetch('/films/empty.mp4')
        assert (status, headers['content-length'], body) == (200, '0', b'')


@test
def a_head_request_gets_the_headers():
    with Served() as proxy:
        status, headers, body = proxy.fetch('/films/short.mp4', 'HEAD')
        assert (status, body) == (200, b'')
        assert headers['content-length'] == str(len(SHORT)), headers


@test
def ranges_are_sent():
    data = SHORT
    size = len(data)
    with Served() as proxy:
        connection = proxy.connect()
        dice = random.Random(1)
        ranges = [(0, 0), (0, size - 1), (size - 1, size - 1)]
        ranges += [tuple(sorted(dice.choices(range(size), k=2))) for _ in range(30)]
        for first, last in ranges:
            status, headers, body = proxy.fetch('/films/short.mp4', connection=connection,
                                                headers={'Range': f'bytes={first}-{last}'})
            assert (status, body) == (206, data[first:last + 1]), (status, first, last)
            assert headers['content-range'] == f'bytes {first}-{last}/{size}', headers
        status, headers, _ = proxy.fetch('/films/short.mp4', headers={'Range': f'bytes={size}-'})
        assert (status, headers['content-range']) == (416, f'bytes */{size}'), headers
        connection.close()


@test
def a_client_that_has_the_title_gets_304():
    with Served() as proxy:
        _, headers, _ = proxy.fetch('/films/short.mp4', 'HEAD')
        for name, value in (('If-None-Match', headers['etag']),
                            ('If-Modified-Since', headers['last-modified'])):
            status, _, body = proxy.fetch('/films/short.mp4', headers={name: value})
            assert (status, body) == (304, b''), name
        for version, status in (headers['etag'], 206), ('"old"', 200):
            got = proxy.fetch('/films/short.mp4',
                              headers={'Range': 'bytes=1-2', 'If-Range': version})
            assert got[0] == status, (version, got[0])


@test
def other_names_of_the_machine_are_refused_on_loopback():
    with Served() as proxy:
        # No page can let another machine have an address.
        for host in ('localhost', 'LOCALHOST:80', f'127.0.0.1:{proxy.web_port}', '[::1]:80', '192.0.2.1',
                     socket.gethostname()):
            assert proxy.fetch('/films/notes.txt', headers={'Host': host})[0] == 200, host
        for host in 'evil.example', 'localhost.evil.example:80', '[::1', '':
            assert proxy.fetch('/films/notes.txt', headers={'Host': host})[0] in (400, 403), host
        with proxy.raw(b'GET /films/notes.txt HTTP/1.0\r\n\r\n') as connection:
            assert b' 200 OK' in tail(connection)


@test
def requests_may_follow_each_other_at_once():
    request = b'GET /films/notes.txt HTTP/1.1\r\nHost: localhost\r\n'
    with Served() as proxy:
        with proxy.raw((request + b'\r\n') * 5 + request + b'Connection: close\r\n\r\n') as sent:
            got = tail(sent)
        assert got.count(b'HTTP/1.1 200 OK\r\n') == 6 and got.count(b'\r\n\r\nabc') == 6, got


@test
def a_long_title_comes_at_its_rate():
    with Served() as proxy, begin_long(proxy) as connection:
        got = len(connection.recv(1 << 20))
        wait_until(lambda: proxy.readers()[0]['bytes'] >= 100000, 10, 'two slices have left')
        reader = proxy.readers()[0]
        # A third slice is due after 5 s, a fourth one after 10 s.
        assert reader['bytes'] <= 3 * 52000, reader
        assert (reader['transport'], reader['mount']) == ('HTTP', '/films'), reader
        assert got > 0
        text = proxy.get('/metrics').decode()
        assert 'weir_readers{mount="/films",transport="http"} 1\n' in text
        assert 'weir_http_connections 1\n' in text
        assert 'weir_sent_bytes_total{mount="/films"} ' in text


@test
def a_piece_for_a_swarm_comes_without_waiting_for_its_time():
    """50 s of a title at once, while a range that does not ask for it, and one too long for a piece,
    come at the title's rate"""
    with Served() as proxy:
        piece = {'Range': 'bytes=1000000-1499999', 'Weir-Pace': 'off'}
        assert proxy.fetch('/films/long.mp4', headers=piece)[2] == film(3600, 36000000)[1000000:1500000]
        wait_until(lambda: not proxy.readers(), 10, 'the piece has been counted')
        for headers in ('Range: bytes=1000000-1499999\r\n',
                        f'Range: bytes=0-{16 << 20}\r\nWeir-Pace: off\r\n', 'Weir-Pace: off\r\n'):
            with proxy.raw(f'GET /films/long.mp4 HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n'.encode()):
                wait_until(lambda: [reader for reader in proxy.readers() if reader['bytes'] >= 50000], 10,
                           'the first slice has left')
                # A second slice is due after 5 s, a third one after 10 s.
                assert proxy.readers()[0]['bytes'] <= 2 * 52000, (headers, proxy.readers())
            wait_until(lambda: not proxy.readers(), 10, 'the reader has left')


@test
def a_player_gets_the_pictures_of_the_file():
    if not shutil.which('ffmpeg'):
        raise Skip('ffmpeg is not on the PATH')

    def pictures(source, *words):
        done = subprocess.run(['ffmpeg', '-nostdin', '-loglevel', 'error', *words, '-i', source,
                               '-an', '-f', 'framemd5', '-'], capture_output=True, timeout=60 * SLOWER,
                              check=True)
        return done.stdout

    with Served() as proxy:
        url = f'http://127.0.0.1:{proxy.web_port}/films/clip.mp4'
        assert pictures(url) == pictures(CLIP)
        assert pictures(url, '-ss', '3') == pictures(CLIP, '-ss', '3')


@test
def titles_come_over_tls():
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, 'proxy.pem')
        subprocess.run([program(), 'make-certificate', '--host', '127.0.0.1', file], check=True,
                       capture_output=True)
        with Served(scheme='https', tls={'certificate': file, 'listen': '127.0.0.1:0'}) as proxy:
            context = ssl.create_default_context(cafile=file)
            connection = http.client.HTTPSConnection('127.0.0.1', proxy.web_port, timeout=20,
                                                     context=context)
            for _ in range(2):
                assert proxy.fetch('/films/short.mp4', connection=connection)[2] == SHORT
            connection.close()


# ---- what is not ----

@test
def wrong_requests_are_refused():
    cases = [('GET', '/films/none.mp4', 404), ('GET', '/films', 404), ('GET', '/films/', 404),
             ('GET', '/films/sub%20dir', 404), ('GET', '/other/clip.mp4', 404),
             ('GET', '/films/../secret.mp4', 404), ('GET', '/films/%2e%2e/secret.mp4', 404),
             ('GET', '/films/..%2fsecret.mp4', 404), ('GET', '/films/short.mp4?delay=1', 404),
             ('POST', '/films/short.mp4', 405), ('DELETE', '/films/short.mp4', 405)]
    with Served() as proxy:
        for method, path, status in cases:
            got = proxy.fetch(path, method)
            assert got[0] == status, (method, path, got[0])
        for text, status in ((b'GET /films/short.mp4 HTTP/2.0\r\n\r\n', 505),
                             (b'GET /films/short.mp4 HTTP/1.1\r\n\r\n', 400),
                             (b'nonsense\r\n\r\n', 400), (b'GET /' + b'x' * 5000, 414),
                             (b'GET / HTTP/1.1\r\nA: ' + b'x' * 5000, 400),
                             (b'GET / HTTP/1.1\r\n' + b'A: b\r\n' * 100, 400)):
            with proxy.raw(text) as connection:
                got = tail(connection)
            assert got.startswith(b'HTTP/1.1 %d ' % status), (text[:40], got[:40])
        assert proxy.fetch('/films/notes.txt')[2] == b'abc'


def users(*permissions):
    digests = [f'{name}:' + kind(f'viewer:rtsp-proxy:{PASSWORD}'.encode()).hexdigest()
               for name, kind in (('SHA-256', hashlib.sha256), ('MD5', hashlib.md5))]
    return [{'name': 'viewer', 'digest': digests, 'permissions': list(permissions)}]


@test
def a_client_needs_the_permission():
    may = {'action': 'playback', 'path': '/films'}
    with Served(users=users(may), api='off') as proxy:
        status, headers, _ = proxy.fetch('/films/short.mp4')
        assert status == 401 and headers['www-authenticate'], headers
        # A stranger does not find out which titles exist.
        assert proxy.fetch('/films/none.mp4')[0] == 401
        if shutil.which('curl'):
            for user, code in (f'viewer:{PASSWORD}', 200), ('viewer:wrong', 401):
                got = subprocess.run(
                    ['curl', '-s', '--digest', '-u', user, '-o', os.devnull, '-w', '%{http_code}',
                     f'http://127.0.0.1:{proxy.web_port}/films/notes.txt'],
                    capture_output=True, timeout=30 * SLOWER, check=True)
                assert got.stdout == b'%d' % code, (user, got.stdout)
    with Served(users=users({'action': 'playback', 'path': '/films/short.mp4'}), api='off') as proxy:
        if shutil.which('curl'):
            for name, code in ('short.mp4', b'200'), ('notes.txt', b'403'):
                got = subprocess.run(
                    ['curl', '-s', '--digest', '-u', f'viewer:{PASSWORD}', '-o', os.devnull, '-w',
                     '%{http_code}', f'http://127.0.0.1:{proxy.web_port}/films/{name}'],
                    capture_output=True, timeout=30 * SLOWER, check=True)
                assert got.stdout == code, (name, got.stdout)


@test
def a_reader_beyond_the_limit_gets_503():
    with Served({'max-readers': 1}) as proxy, begin_long(proxy) as connection:
        status, headers, body = proxy.fetch('/films/notes.txt')
        assert status == 503 and b'max-readers' in body and headers['retry-after'], (status, body)
        connection.close()
        wait_until(lambda: proxy.fetch('/films/notes.txt')[0] == 200, 10, 'the place is free')


@test
def a_connection_beyond_the_limit_gets_503():
    with Served(limits={'connections': 2}) as proxy, begin_long(proxy), begin_long(proxy):
        with proxy.raw() as connection:
            assert tail(connection).startswith(b'HTTP/1.1 503 ')


@test
def slow_clients_are_closed():
    limits = {'idle-timeout': '200ms', 'request-timeout': '300ms'}
    with Served(limits=limits) as proxy:
        with proxy.raw() as connection:
            assert tail(connection) == b''
        with proxy.raw(b'GET /films/notes.txt HTTP/1.1\r\n') as connection:
            assert tail(connection).startswith(b'HTTP/1.1 408 ')
        # After an answer, the next request has the idle time, too.
        with proxy.raw(b'GET /films/notes.txt HTTP/1.1\r\nHost: localhost\r\n\r\n') as connection:
            assert tail(connection).endswith(b'abc')
        wait_until(lambda: proxy.metric('http_connections') == 0, 10, 'all connections are gone')


@test
def the_api_ends_a_reader():
    with Served() as proxy, begin_long(proxy) as connection:
        number = proxy.readers()[0]['id']
        assert proxy.http('DELETE', f'/v1/readers/{number}')[0] == 200
        tail(connection)
        wait_until(lambda: not proxy.readers(), 10, 'the reader has left')


@test
def the_proxy_ends_with_readers():
    with Served() as proxy, begin_long(proxy), proxy.raw(), proxy.raw(b'GET'):
        proxy.signal(15)
        assert proxy.wait(10) == 0


@test
def many_readers_need_few_threads():
    with Served(limits={'connections': 400}) as proxy:
        readers = [begin_long(proxy) for _ in range(200)]
        assert proxy.metric('http_connections') == 200
        threads = os.listdir(f'/proc/{proxy.pid}/task')
        assert len(threads) <= 16, len(threads)
        for reader in readers:
            reader.close()
        wait_until(lambda: proxy.metric('http_connections') == 0, 10, 'all have left')


@test
def the_listener_is_configured():
    for text, problem in (('http: on', 'expected {listen: ADDR:PORT}'),
                          ('http: {}', 'expected {listen: ADDR:PORT}'),
                          ('http: {listen: 8888}', 'is not ADDR:PORT'),
                          ('http: {listen: "127.0.0.1:0", port: 1}', 'unknown key'),
                          ('http: {tls-listen: "127.0.0.1:0"}', 'set tls')):
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            file.write(f'{text}\nmounts: {{/films: {{upstream: "file:///tmp/"}}}}\n')
            file.flush()
            done = subprocess.run([program(), '--config', file.name, '--check-config'],
                                  capture_output=True, timeout=20 * SLOWER, check=False)
        assert done.returncode != 0 and problem.encode() in done.stderr, (text, done.stderr)


run()
