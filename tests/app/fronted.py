# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx with TLS in front of the HTTP listener, by the lines of docs/security.md."""

import base64
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

from hlsweb import Web
from nginx import Server
from proc import Rtsp, free_port
from proxy import wait_until
from secured import make_certificate
from tap import SLOWER, Skip, run, test

PAGE = os.path.join(os.environ['WEIR_DATA'], '../../docs/security.md')
PASSWORD = 'S3cr3tCanary'
DIGEST = 'MD5:' + hashlib.md5(f'ann:rtsp-proxy:{PASSWORD}'.encode()).hexdigest()
READ = [{'action': 'read'}]
USERS = [{'name': 'ann', 'digest': [DIGEST], 'permissions': READ},
         {'name': 'bob', 'hash': 'sha256:' + hashlib.sha256(PASSWORD.encode()).hexdigest(),
          'permissions': READ + [{'action': 'metrics'}]}]


class Front:
    """The proxy, and nginx of the page in front of it."""

    def __init__(self, in_front=True, users=None, web=None):
        if not shutil.which('curl'):
            raise Skip('curl is not installed')
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        self.pem = os.path.join(self.folder.name, 'proxy.pem')
        make_certificate(self.pem)
        self.proxy = Web(users=users or USERS, web=web or ({'tls-in-front': 'yes'} if in_front else None))
        self.port = free_port()
        with open(PAGE, encoding='utf-8') as file:
            lines = re.search(r'```nginx\n(.*?)```', file.read(), re.S)[1]
        for old, new in ((r'listen 443 ssl', f'listen 127.0.0.1:{self.port} ssl'),
                         (r'(ssl_certificate\S*) \S+;', rf'\1 {self.pem};'),
                         (r'127.0.0.1:8888', f'127.0.0.1:{self.proxy.web_port}')):
            assert re.search(old, lines), old
            lines = re.sub(old, new, lines)
        self.nginx = Server(self.folder.name, self.port, f'access_log off;\n{lines}')

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.nginx.__exit__(*details)
        self.proxy.__exit__(*details)

    def curl(self, path, *words):
        done = subprocess.run(
            ['curl', '-sS', '-m', '40', '--cacert', self.pem, '-w', '\n%{http_code}', *words,
             f'https://127.0.0.1:{self.port}{path}'], capture_output=True, text=True, check=True)
        body, _, status = done.stdout.rpartition('\n')
        return int(status), body

    def challenges(self, path):
        try:
            urllib.request.urlopen(f'https://127.0.0.1:{self.port}{path}', timeout=20,
                                   context=ssl.create_default_context(cafile=self.pem))
        except urllib.error.HTTPError as answer:
            return [line.split()[0] for line in answer.headers.get_all('WWW-Authenticate') or []]
        return None


@test(timeout=90)
def passwords_come_through_nginx():
    with Front() as front:
        for path in '/', '/watch/cam', '/hls/cam/index.m3u8':
            assert front.challenges(path) == ['Basic'], path
            for name in 'ann', 'bob':
                for way in '--basic', '--anyauth':
                    status, body = front.curl(path, way, '-u', f'{name}:{PASSWORD}')
                    assert status == 200, (path, name, way, status, body)
            assert front.curl(path, '-u', 'ann:wrong')[0] == 401
        assert front.curl('/favicon.ico')[0] == 200


@test(timeout=90)
def ffmpeg_reads_through_nginx():
    with Front() as front:
        for name in 'ann', 'bob':
            url = f'https://{name}:{PASSWORD}@127.0.0.1:{front.port}/hls/cam/plain.m3u8'
            done = subprocess.run(
                ['ffmpeg', '-v', 'error', '-i', url, '-frames:v', '5', '-f', 'null', '-'],
                capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            assert done.returncode == 0, done.stderr


@test
def only_http_of_this_machine_counts():
    with Front() as front:
        # RTSP of this machine is as open as before.
        with Rtsp(front.proxy.port) as rtsp:
            status, headers, _ = rtsp.request('DESCRIBE', front.proxy.url())
            assert status == 401 and headers['www-authenticate'].startswith('Digest'), headers
            basic = {'Authorization': 'Basic YW5uOlMzY3IzdENhbmFyeQ=='}
            assert rtsp.request('DESCRIBE', front.proxy.url(), basic)[0] == 401
        front.proxy.wait_for_line(r' read /cam: password without TLS')


@test
def without_the_key_no_password_is_taken():
    with Front(in_front=False) as front:
        assert front.challenges('/') == ['Digest']
        assert front.curl('/', '--basic', '-u', f'ann:{PASSWORD}')[0] == 401
        front.proxy.wait_for_line(r' read /: password without TLS')


@test
def a_reload_takes_the_key():
    with Front(in_front=False) as front:
        with open(front.proxy.file, encoding='utf-8') as file:
            settings = json.load(file)
        settings['http']['tls-in-front'] = 'yes'
        assert front.proxy.hang_up(json.dumps(settings)).startswith('reloaded')
        assert front.curl('/', '--basic', '-u', f'ann:{PASSWORD}')[0] == 200


TRUSTING = {'trusted-proxies': ['127.0.0.1', '2001:db8:1::/48']}
ELSEWHERE = [{**USERS[1], 'networks': ['127.0.0.2']}]  # nginx connects from 127.0.0.1


@test(timeout=90)
def nginx_names_its_clients():
    with Front(users=ELSEWHERE, web=TRUSTING) as front:
        assert front.challenges('/') == ['Basic']
        login = '-u', f'bob:{PASSWORD}'
        assert front.curl('/', '--interface', '127.0.0.2', *login)[0] == 200
        assert front.curl('/', *login)[0] == 401
        front.proxy.wait_for_line(r'access refused from 127\.0\.0\.1: user "bob", read /: wrong network')
        assert front.curl('/', '--interface', '127.0.0.3', *login)[0] == 401
        front.proxy.wait_for_line(r'access refused from 127\.0\.0\.3: user "bob", read /: wrong network')


@test(timeout=90)
def a_client_cannot_name_itself():
    """neither through the reverse proxy nor past it"""
    login = '-u', f'bob:{PASSWORD}'
    names = '-H', 'X-Forwarded-For: 127.0.0.2', '-H', 'X-Forwarded-Proto: https'
    with Front(users=ELSEWHERE, web=TRUSTING) as front:
        assert front.curl('/', '--interface', '127.0.0.4', *names, *login)[0] == 401
        front.proxy.wait_for_line(r'access refused from 127\.0\.0\.4: user "bob", read /: wrong network')
        done = subprocess.run(['curl', '-sS', '--interface', '127.0.0.5', *names, *login, front.proxy.web], capture_output=True,
                              text=True, check=True)
        assert '/watch/cam"' not in done.stdout, done
        front.proxy.wait_for_line(r'access refused from 127\.0\.0\.5: user "bob", read /: password without TLS')


@test
def odd_headers_name_nobody():
    """which of the headers of a trusted proxy count, by the address in the log"""
    login = {'Authorization': 'Basic ' + base64.b64encode(b'bob:wrong').decode()}
    cases = (
        ('198.51.100.1', {'X-Forwarded-For': '127.0.0.1, 198.51.100.1'}),
        ('198.51.100.2', {'X-Forwarded-For': '192.0.2.1, 198.51.100.2:4711, 2001:db8:1::7'}),
        ('2001:db8:2::3', {'X-Forwarded-For': '192.0.2.1,[2001:db8:2::3]:80'}),
        ('2001:db8:2::4', {'Forwarded': 'for=192.0.2.1, for="[2001:db8:2::4]:80";by=203.0.113.1;proto=https'}),
        ('198.51.100.5', {'Forwarded': 'For=198.51.100.5 ; Proto="https", for=127.0.0.1;proto=https'}))
    unreadable = ({'X-Forwarded-For': 'unknown'}, {'X-Forwarded-For': '198.51.100.6, _hidden'}, {'X-Forwarded-For': ',' * 300},
                  {'Forwarded': ';;=,"'})
    with Web(users=ELSEWHERE, web=TRUSTING) as proxy:
        for address, headers in cases:
            before = len(proxy.lines)
            proto = {} if 'Forwarded' in headers else {'X-Forwarded-Proto': 'https'}
            assert proxy.fetch('/', {**headers, **proto, **login})[0] == 401, headers
            wait_until(lambda: len(proxy.lines) > before, 10, f'a refusal of {headers}')
            assert f'access refused from {address}: ' in proxy.lines[before], (headers, proxy.lines[before:])
        before = len(proxy.lines)
        for headers in unreadable:
            proxy.fetch('/', {**headers, 'X-Forwarded-Proto': 'https', **login})
        proxy.wait_for_line(r'access refused from 127\.0\.0\.1: ')
        assert not [line for line in proxy.lines[before:] if 'refused from 127.0.0.1: ' not in line], proxy.lines[before:]
        status, _, body = proxy.fetch('/', {'X-Forwarded-For': '192.0.2.1', 'Forwarded': 'for=192.0.2.1'})
        assert status == 400 and b'of which the reverse proxy must remove one' in body, body


if __name__ == '__main__':
    run()
