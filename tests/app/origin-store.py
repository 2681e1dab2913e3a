# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles on HTTP servers and S3-compatible ones, over RTSP and HTTP: nginx, versitygw if it is on
the PATH, and servers that fail."""

import hashlib
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from nginx import Nginx
from proc import Proc, Rtsp, free_port
from proxy import CLIP, program
from secured import make_certificate
from tap import SLOWER, Skip, run, test
from title_proxy import PICTURES, TitleProxy, check_rtsp, clip, pictures

NOISE = random.Random(18).randbytes(5_300_000)  # six blocks of 1 MiB, of no known format
BLOCKS = 6


def make_files(folder):
    os.makedirs(os.path.join(folder, 'sub'))
    with open(os.path.join(folder, 'noise.bin'), 'wb') as file:
        file.write(NOISE)
    shutil.copy(CLIP, os.path.join(folder, 'a.mp4'))
    shutil.copy(CLIP, os.path.join(folder, 'sub', 'b c+ü.mp4'))


class Origin:
    """An HTTP server of files in memory, which can be told how to fail."""

    def __init__(self, files=None, certificate=None):
        self.files = files or {'/noise.bin': NOISE, '/a.mp4': clip()}
        self.status = None     # of all answers, in place of the file
        self.ranges = True
        self.delay = 0         # s before each block
        self.silent = 0        # 1: blocks are not answered; 2: nothing is
        self.ends = threading.Event()
        self.reply = None      # bytes of all answers, or a function that gets the socket
        self.asked = []
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                origin.answer(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(('127.0.0.1', 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f'http{"s" if certificate else ""}://127.0.0.1:{self.server.server_port}/'
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, request):
        data = self.files.get(request.path)
        wanted = re.fullmatch(r'bytes=(\d+)-(\d+)', request.headers.get('Range', ''))
        first, last = (int(wanted[1]), int(wanted[2])) if wanted else (0, len(data) - 1)
        tag = '"' + hashlib.md5(data or b'').hexdigest() + '"'
        self.asked.append((request.path, first, last))
        if self.silent > (first == last):
            self.ends.wait(20)
            request.close_connection = True
            return
        if last > first:
            self.ends.wait(self.delay)
        if self.reply:
            request.close_connection = True
            if callable(self.reply):
                self.reply(request.connection)
            else:
                request.wfile.write(self.reply)
            return
        status = self.status or (404 if data is None else 206 if self.ranges else 200)
        if request.headers.get('If-Match', tag) != tag:
            status = 412
        body = data[first:last + 1] if status == 206 else data if status == 200 else b''
        request.send_response(status)
        if status == 206:
            request.send_header('Content-Range', f'bytes {first}-{last}/{len(data)}')
        request.send_header('ETag', tag)
        request.send_header('Content-Length', str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.server.shutdown()
        self.server.server_close()


class Front(TitleProxy):
    """A proxy that serves these origins at /films."""

    def __init__(self, *urls, others=None, **settings):
        super().__init__({'upstreams': list(urls), 'connect-timeout': '2s', 'read-timeout': '3s',
                          **settings}, others)

    def describe(self, path):
        """Returns the status of a DESCRIBE."""
        with Rtsp(self.port) as rtsp:
            return rtsp.request('DESCRIBE', self.url(path))[0]

    def fetch(self, path, headers=None):
        return super().fetch(path, headers, may_be_cut=True)

    def reads(self):
        """Returns {disk: reads}; disk 0 is the cache."""
        text = self.get('/metrics').decode()
        return {int(disk): int(n) for disk, n in re.findall(
            r'^weir_store_disk_reads_total\{mount="/films",disk="(\d)"\} (\d+)$', text, re.M)}


def check_http(proxy):
    dice = random.Random(3)
    assert proxy.fetch('/films/noise.bin') == (200, NOISE)
    for _ in range(10):
        first = dice.randrange(len(NOISE))
        last = min(first + dice.randrange(1_500_000), len(NOISE) - 1)  # over two blocks or so
        got = proxy.fetch('/films/noise.bin', {'Range': f'bytes={first}-{last}'})
        assert got == (206, NOISE[first:last + 1]), (first, last, got[0], len(got[1]))
    assert proxy.fetch('/films/a.mp4') == (200, clip())


@test
def bytes_of_nginx_come_unchanged_over_http():
    with Nginx(make_files) as nginx, Front(nginx.url) as proxy:
        check_http(proxy)
        assert proxy.fetch('/films/sub/b%20c%2B%C3%BC.mp4') == (200, clip())
        for path in '/films/none.mp4', '/films/..%2fnginx.conf', '/films/sub', '/films':
            assert proxy.fetch(path)[0] == 404, path


@test
def a_second_reader_is_served_from_memory():
    with Nginx(make_files) as nginx, Front(nginx.url) as proxy:
        proxy.fetch('/films/noise.bin')
        assert nginx.asked() == BLOCKS, nginx.asked()
        proxy.fetch('/films/noise.bin')
        assert nginx.asked() == BLOCKS, nginx.asked()


@test
def pictures_of_nginx_come_unchanged_over_rtsp():
    with Nginx(make_files) as nginx, Front(nginx.url) as proxy:
        check_rtsp(proxy)


@test
def a_folder_keeps_blocks_over_a_restart_within_its_bound():
    with tempfile.TemporaryDirectory() as folder, Nginx(make_files) as nginx:
        cache = {'bytes': '4M', 'spill': folder}
        with Front(nginx.url, cache=cache) as proxy:
            proxy.fetch('/films/noise.bin')
            assert nginx.asked() == BLOCKS, nginx.asked()
        kept = [os.path.join(where, name) for where, _, names in os.walk(folder)
                for name in names if name != 'lock']
        assert 2 <= len(kept) and sum(map(os.path.getsize, kept)) <= 4 << 20, kept
        with open(kept[0], 'r+b') as file:
            file.write(b'damaged')
        with Front(nginx.url, cache=cache) as proxy:
            assert proxy.fetch('/films/noise.bin') == (200, NOISE)
            assert proxy.reads()[0] >= len(kept) - 1, proxy.reads()
            assert nginx.asked() < 2 * BLOCKS, nginx.asked()


@test
def an_origin_that_answers_500_is_not_noticed():
    with Origin() as good, Origin() as bad, Front(bad.url, good.url) as proxy:
        assert proxy.fetch('/films/noise.bin', {'Range': 'bytes=0-9'})[0] == 206
        bad.status = 500
        assert proxy.fetch('/films/noise.bin') == (200, NOISE)


@test
def an_origin_that_is_gone_is_not_noticed():
    with Origin() as good, Front(f'http://127.0.0.1:{free_port()}/', good.url) as proxy:
        assert proxy.fetch('/films/noise.bin') == (200, NOISE)


@test
def an_origin_that_does_not_answer_is_avoided():
    with Origin() as good, Origin() as bad, Front(bad.url, good.url) as proxy:
        bad.silent = 1
        begin = time.monotonic()
        assert proxy.fetch('/films/noise.bin') == (200, NOISE)
        assert [first for _, first, last in bad.asked if last > first], 'it was not asked'
        bad.silent = 2
        assert proxy.fetch('/films/a.mp4') == (200, clip())
        assert time.monotonic() - begin < 30  # the titles' own time is 5 s


@test
def an_origin_that_is_down_is_answered_with_502_and_its_reason_logged():
    with Nginx(make_files) as nginx, Front(nginx.url) as proxy:
        assert proxy.fetch('/films/noise.bin', {'Range': 'bytes=0-9'})[0] == 206
        nginx.stop()
        for path in '/films/noise.bin', '/films/a.mp4', '/films/none.mp4':
            assert proxy.fetch(path)[0] == 502, path
        proxy.wait_for_line(f'a title cannot be opened: {nginx.url}noise.bin: .*Connection refused')
        assert proxy.describe('/films/a.mp4') == 502


@test
def an_origin_that_does_not_answer_is_answered_with_504_and_delays_no_other_mount():
    with tempfile.TemporaryDirectory() as folder, Origin() as origin:
        make_files(os.path.join(folder, 'files'))
        others = {'/other': {'upstream': f'file://{folder}/files/'}}
        with Front(origin.url, others=others, **{'connect-timeout': '8s'}) as proxy:
            origin.silent = 2
            answers = []
            waiting = [threading.Thread(target=lambda: answers.append(
                proxy.fetch('/films/noise.bin')[0])) for _ in range(4)]
            for thread in waiting:
                thread.start()
            while len(origin.asked) < 2:  # two titles of a store are opened at the same time
                time.sleep(0.01)
            assert proxy.fetch('/other/noise.bin') == (200, NOISE)
            assert answers == [], 'the other mount has waited'
            for thread in waiting:
                thread.join()
            assert set(answers) <= {503, 504} and answers.count(504) >= 2, answers
            proxy.wait_for_line('it has not answered in time')


@test
def readers_of_a_slow_origin_get_all_their_bytes_and_delay_nobody():
    with Nginx(make_files) as nginx:
        others = {'/other': {'upstream': f'file://{nginx.files}/'}}
        with Front(nginx.url + 'slow/', others=others) as proxy:
            answers = []
            readers = [threading.Thread(target=lambda: answers.append(
                proxy.fetch('/films/noise.bin'))) for _ in range(8)]
            for reader in readers:
                reader.start()
            while sum(proxy.reads().values()) < 1:
                time.sleep(0.01)
            assert proxy.fetch('/other/noise.bin') == (200, NOISE)
            assert answers == [], 'the other mount has waited'
            for reader in readers:
                reader.join()
            assert answers == [(200, NOISE)] * 8, [(status, len(got)) for status, got in answers]
            assert nginx.asked() == BLOCKS, nginx.asked()


@test
def a_slow_origin_of_two_is_avoided():
    films = {f'/{n}': NOISE for n in range(6)}
    with Origin(films) as good, Origin(films) as slow, Front(slow.url, good.url) as proxy:
        slow.delay = 1
        for name in films:
            assert proxy.fetch('/films' + name) == (200, NOISE), name
        reads = proxy.reads()
        assert reads[2] > 3 * reads.get(1, 0), reads


@test
def both_origins_are_read():
    with Origin() as first, Origin() as second, Front(first.url, second.url) as proxy:
        begin = time.monotonic()
        while not (first.asked and second.asked) or time.monotonic() - begin < 1:
            readers = [threading.Thread(target=proxy.fetch, args=('/films/noise.bin',))
                       for _ in range(4)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        assert set(proxy.reads()) >= {1, 2}, proxy.reads()


@test
def an_origin_without_ranges_is_refused():
    with Origin() as origin, Front(origin.url) as proxy:
        origin.ranges = False
        assert proxy.fetch('/films/noise.bin')[0] == 502
        proxy.wait_for_line('it sends whole files only; a server with ranges is needed')


@test
def a_redirect_is_not_followed():
    with Nginx(make_files) as nginx, Front(nginx.url + 'moved/') as proxy:
        assert proxy.fetch('/films/a.mp4')[0] == 502
        proxy.wait_for_line(r'it redirects \(302\); write the URL of the server itself')


@test
def a_title_that_is_replaced_ends_and_comes_anew():
    before = NOISE * 5
    after = bytes(reversed(before))
    with Origin({'/film': before}) as origin, Front(origin.url, cache={'bytes': '2M'}) as proxy:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            client.settimeout(30)
            client.connect(('127.0.0.1', proxy.web_port))
            client.sendall(b'GET /films/film HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
            got = client.recv(1000)
            origin.files['/film'] = after
            while data := client.recv(1 << 16):
                got += data
        got = got.split(b'\r\n\r\n', 1)[1]
        assert got == before[:len(got)], 'bytes of two titles were mixed'
        assert len(got) < len(before), 'nothing was left to be fetched'
        proxy.wait_for_line('the file was replaced')
        assert proxy.fetch('/films/film') == (200, after)


@test
def answers_that_are_wrong_are_refused_and_endless_ones_end():
    def answer(*lines, body=b'x'):
        return '\r\n'.join(['HTTP/1.1 206 OK', *lines, '', '']).encode() + body

    def drip(connection):
        connection.sendall(b'HTTP/1.1 206 OK\r\n')
        while not origin.ends.wait(0.1):
            connection.sendall(b'X: y\r\n')

    with Origin() as origin, Front(origin.url, **{'connect-timeout': '1s'}) as proxy:
        for reply, reason in [
                (answer('Content-Range: bytes 5-5/9', 'Content-Length: 1'), 'another range'),
                (answer('Content-Range: bytes 0-0/*', 'Content-Length: 1'), 'another range'),
                (answer('Content-Range: bytes 0-9/10', 'Content-Length: 10'), 'another range'),
                (answer('Content-Range: bytes 9-0/10', 'Content-Length: 1'), 'another range'),
                (answer('Content-Length: 1'), 'another range'),
                (answer(f'Content-Range: bytes 0-0/{1 << 62}', 'Content-Length: 1'), '1 TiB'),
                (answer('Content-Range: bytes 0-0/9', 'Content-Length: 1', body=b''), 'cannot be'),
                (b'RTSP/1.0 200 OK\r\n\r\n', 'cannot be opened'),
                (b'HTTP/1.1 206 OK\r\n' + b'X: y\r\n' * 300000 + b'\r\n', 'cannot be opened'),
                (drip, 'not answered in time')]:
            origin.reply, seen = reply, len(proxy.lines)
            status = proxy.fetch('/films/noise.bin', {'Range': 'bytes=0-9'})[0]
            assert status == (504 if reply is drip else 502), (reason, status)
            proxy.wait_for_line(reason, start=seen)
        origin.reply = None
        assert proxy.fetch('/films/noise.bin') == (200, NOISE)


@test
def certificates_are_checked():
    with tempfile.TemporaryDirectory() as folder:
        pem = os.path.join(folder, 'origin.pem')
        fingerprint = make_certificate(pem)
        with Origin(certificate=pem) as origin:
            for keys, status in [({}, 502), ({'tls-ca': pem}, 206), ({'tls-verify': False}, 206),
                                 ({'tls-fingerprint': fingerprint}, 206),
                                 ({'tls-ca': pem, 'tls-fingerprint': '00' * 32}, 502)]:
                with Front(origin.url, **{'connect-timeout': '20s', **keys}) as proxy:
                    got = proxy.fetch('/films/noise.bin', {'Range': 'bytes=0-9'})[0]
                    assert got == status, (keys, got)
                    if status == 502:
                        proxy.wait_for_line('the certificate of the upstream is not')


@test
def the_api_cannot_name_origins():
    with Origin() as origin, Front(origin.url, cache={'bytes': '8M'}) as proxy:
        got = proxy.http('PUT', '/v1/mounts/other', {'upstream': origin.url})
        assert got[0] == 400 and 'configuration file only' in str(got[2]), got
        assert proxy.http('PATCH', '/v1/mounts/films', {'max-titles': 7})[0] == 200
        shown = proxy.get('/v1/mounts/films')['config']
        assert shown['cache'] == {'bytes': '8192K'} and 'keys-file' not in shown, shown
        assert proxy.fetch('/films/noise.bin', {'Range': 'bytes=0-9'})[0] == 206


@test
def bad_settings_are_named():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'proxy.yaml')
        keys = os.path.join(folder, 'keys')
        with open(keys, 'w', encoding='utf-8') as file:
            file.write('[default]\naws_access_key_id = A\naws_secret_access_key = B\n')
        for text, reason in [
                ('upstream: http://u:p@host/x', 'must not contain a user'),
                ('upstream: https://u:p@host/', 'must not contain a user'),
                ('upstream: https://host/?a=b', 'must not contain a query'),
                ('upstream: https:///x/', 'not a URL like'),
                ('upstreams: [http://a/, http://b/, http://c/]', 'is a folder: remove'),
                ('upstreams: [http://a/, rtsp://b/]', 'is a folder: remove'),
                (f'upstream: http://a/\n    keys-file: {keys}', 'chmod 600'),
                (f'upstream: http://a/\n    keys-file: {keys}.none', 'No such file'),
                ('upstream: rtsp://a/\n    cache: {bytes: 4M}', 'expected {time: TIME}')]:
            with open(path, 'w', encoding='utf-8') as file:
                file.write(f'mounts:\n  /films:\n    {text}\n')
            done = subprocess.run([program(), '--config', path, '--check-config'],
                                  capture_output=True, timeout=20 * SLOWER, check=False)
            assert done.returncode != 0 and reason in done.stderr.decode(), (text, done.stderr)


class S3(Proc):
    """versitygw, with a bucket of the files of a folder."""

    KEYS = '[default]\naws_access_key_id = {0}\naws_secret_access_key = {1}\n'

    def __init__(self):
        path = shutil.which('versitygw')
        if not path:
            raise Skip('no S3-compatible server (versitygw) is on the PATH')
        self.folder = tempfile.TemporaryDirectory()
        make_files(os.path.join(self.folder.name, 'root', 'films'))
        self.port = free_port()
        super().__init__(path, '--access', 'AKID', '--secret', 'SECRETKEY', '--port',
                         f'127.0.0.1:{self.port}', 'posix', os.path.join(self.folder.name, 'root'))
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    break
            time.sleep(0.05)
        self.url = f'http://127.0.0.1:{self.port}/films/'

    def keys(self, secret):
        path = os.path.join(self.folder.name, 'keys-' + secret)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(self.KEYS.format('AKID', secret))
        os.chmod(path, 0o600)
        return path


@test
def titles_in_a_bucket_are_served():
    with S3() as s3, Front(s3.url, **{'keys-file': s3.keys('SECRETKEY')}) as proxy:
        check_http(proxy)
        assert proxy.fetch('/films/sub/b%20c%2B%C3%BC.mp4') == (200, clip())
        assert proxy.fetch('/films/none.mp4')[0] == 404
        expected = pictures(CLIP)
        got = pictures(proxy.url('/films/a.mp4'), '-rtsp_transport', 'tcp')
        assert got == expected[:len(got)] and len(got) > PICTURES - 10, (len(got), len(expected))


@test
def wrong_keys_are_named():
    with S3() as s3, Front(s3.url, **{'keys-file': s3.keys('WRONG')}) as proxy:
        assert proxy.fetch('/films/a.mp4')[0] == 502
        proxy.wait_for_line(r'it refuses access \(403\); check keys-file')


if __name__ == '__main__':
    run()
