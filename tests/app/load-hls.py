# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks rtsp-load --hls: players of the proxy and of scripted servers, and what it says of them."""

import http.server
import threading
import time
from contextlib import contextmanager

from livets import Served
from loads import Load, load, refuse
from proxy import wait_until
from tap import run, test

MASTER = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlive.m3u8\n'
HEAD = ('#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6\n'
        '#EXT-X-PART-INF:PART-TARGET=0.2\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-MAP:URI="init.mp4"\n')


@contextmanager
def server(answer):
    """Serves what `answer` returns for a path: status, body, and headers. Yields the base URL."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_GET(self):
            status, body, headers = (*answer(self.path, self.headers), {})[:3]
            self.send_response(status)
            for name, value in {'Content-Length': len(body), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as web:
        web.handle_error = lambda *_: None  # a player that leaves closes its connections
        threading.Thread(target=web.serve_forever, daemon=True).start()
        try:
            yield f'http://127.0.0.1:{web.server_address[1]}'
        finally:
            web.shutdown()


class Parts:
    """A stream of parts of 10 ms. `asked` are the paths."""

    def __init__(self, late_from=None):
        self.asked, self.late_from = [], late_from

    def __call__(self, path, headers):
        self.asked.append(path)
        if path == '/':
            return 200, MASTER
        if path.startswith('/live.m3u8'):
            n = int(path.rsplit('=', 1)[1]) + 1 if '_part=' in path else 1
            time.sleep(0.01)
            parts = ''.join(f'#EXT-X-PART:DURATION=0.01,URI="p{i}",INDEPENDENT=YES\n' for i in range(n))
            return 200, HEAD + parts + f'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p{n}"\n'
        if self.late_from and path == f'/p{self.late_from}':
            time.sleep(1.5)
        return 200, 'x' * 100


@test(timeout=60)
def players_get_the_parts_of_the_proxy():
    with Served() as proxy, \
         Load('--hls', '-n', '5', '-d', '60', f'http://127.0.0.1:{proxy.web_port}/hls/cam/index.m3u8') as running:
        wait_until(lambda: len([each for each in proxy.readers() if each['bytes'] > 300000]) == 5, 40, 'media')
        result = running.finish()
    assert (result['players'], result['playing'], result['failed']) == (5, 5, 0), result
    assert result['parts'] > 10 and result['bytes'] > 5 * 250000, result
    assert 0 < result['latency_max_ms'], result


@test(timeout=60)
def parts_are_asked_for_in_order_once_each():
    parts = Parts()
    with server(parts) as url:
        result = load('--hls', '-d', '3', f'{url}/')
    media = [path for path in parts.asked if path.startswith('/p')]
    assert parts.asked[:2] == ['/', '/live.m3u8'] and '/init.mp4' in parts.asked, parts.asked[:5]
    assert media == [f'/p{n}' for n in range(len(media))] and len(media) > 1, media
    assert result['playing'] == 1, result


@test(timeout=60)
def a_late_part_is_a_stall():
    parts = Parts(late_from=5)
    with server(parts) as url:
        result = load('--hls', '-d', '5', f'{url}/')
    assert result['stalls'] >= 1, result


@test(timeout=60)
def redirects_and_cookies_are_followed():
    def answer(path, headers):
        if path == '/old' or (path == '/' and headers.get('Cookie') != 'a=b'):
            return 302, '', {'Location': '/', 'Set-Cookie': 'a=b; Path=/'}
        return parts(path, headers)

    parts = Parts()
    with server(answer) as url:
        assert load('--hls', '-d', '3', f'{url}/old')['playing'] == 1


@test(timeout=60)
def what_fails_is_said():
    for answer, line in (
            (lambda path, _: (404, ''), 'the server answers 404 to'),
            (lambda path, _: (200, 'hello'), 'the answer is no playlist'),
            (lambda path, _: (200, '#EXTM3U\n#EXTINF:1,\na.ts\n'), 'not of Low-Latency HLS'),
            (lambda path, _: (302, '', {'Location': '/'}), 'too many redirects'),
            (lambda path, _: (302, ''), 'one without a place'),
            (lambda path, _: (302, '', {'Location': 'http://192.0.2.1/'}), 'cannot be followed'),
            (lambda path, _: (200, '', {'Content-Length': 'x'}), 'the answer is malformed')):
        with server(answer) as url:
            refuse('--hls', '-d', '60', f'{url}/', line=line)


@test(timeout=60)
def a_server_that_is_silent_is_given_up():
    waits = threading.Event()
    with server(lambda path, _: (200, '') if waits.wait(20) else (200, '')) as url:
        refuse('--hls', '-d', '60', '--timeout', '1', f'{url}/', line='no answer within 1 s')
        waits.set()


@test
def wrong_arguments_are_refused():
    for words, line in ((['rtsp://h/x'], 'is not an http:// URL'), (['--mute', 'http://h/x'], '--hls goes with'),
                        (['--scheme', 'http://h/x'], 'exclude each other'), (['http://u:p@h/x'], 'without credentials'),
                        (['http://'], 'is not an HTTP URL')):
        status = 2 if 'HTTP URL' not in line and 'credentials' not in line else 1
        refuse('--hls', *words, line=line, status=status)


if __name__ == '__main__':
    run()
