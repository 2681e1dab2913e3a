# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may read, play back, and use the API: users, their passwords and permissions, and the log."""

import base64
import ctypes
import hashlib
import http.client
import itertools
import json
import os
import pty
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time

from proc import Proc, Rtsp, free_port, interop
from proxy import CLIP, Read, environment, matches, program, wait_until
from sanitized import stock_environment
from tap import SLOWER, TIMEOUT, Skip, run, test
from webserver import WebServer

CLONE_NEWNET = 0x40000000
OTHER = '192.0.2.1'  # not loopback; of the namespace
PASSWORD = 'S3cr3tCanary'
REALM = 'rtsp-proxy'
PAGE = os.path.join(os.environ['WEIR_DATA'], '../../docs/security.md')
WRONG_IDS = int(os.environ.get('WEIR_WRONG_IDS', 2000))
CONNECTIONS = 16  # that try session ids at the same time
WRONG_PASSWORDS = int(os.environ.get('WEIR_WRONG_PASSWORDS', 500))


def enter_namespace():
    """Gives this process a network of its own, with an address that is not loopback. Returns
    whether it has one."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    for command in ('link set lo up', f'addr add {OTHER}/32 dev lo'):
        subprocess.run(['ip', *command.split()], check=True)
    return True


HAS_OTHER = enter_namespace()


def need_other():
    if not HAS_OTHER:
        raise Skip('needs root, for an address that is not loopback')


def digest_of(user, password, algorithm=hashlib.md5):
    return algorithm(f'{user}:{REALM}:{password}'.encode()).hexdigest()


def sha256(password):
    return 'sha256:' + hashlib.sha256(password.encode()).hexdigest()


def digests(user, password=PASSWORD):
    return [f'SHA-256:{digest_of(user, password, hashlib.sha256)}',
            f'MD5:{digest_of(user, password)}']


VIEWER = {'name': 'viewer', 'digest': digests('viewer'),
          'permissions': [{'action': 'read', 'path': '/cam'}, {'action': 'metrics'}]}
BOSS = {'name': 'boss', 'digest': digests('boss'),
        'permissions': [{'action': action} for action in ('read', 'playback', 'api')]}


class Guarded(Proc):
    """A proxy with these users and keys, which serves a clip as /cam and /b."""

    def __init__(self, users=None, mounts=None, env=None, **keys):
        self.file = tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8')
        self.port, self.api_port = free_port(), free_port()
        self.settings = {'listen': f'0.0.0.0:{self.port}', 'api': f'127.0.0.1:{self.api_port}',
                         'mounts': mounts or {path: {'upstream': f'file://{os.path.realpath(CLIP)}'}
                                              for path in ('/cam', '/b')}}
        self.write(users=users, **keys)
        super().__init__(program(), '--config', self.file.name, env=environment(env))
        try:
            self.wait_for_line(r' serves rtsp://', 30)
        except BaseException:
            self.kill()
            self.dump()
            raise

    def __exit__(self, kind, error, trace):
        super().__exit__(kind, error, trace)
        assert kind or self.stop() == 0, self.output()

    def write(self, **keys):
        self.settings.update(keys)
        settings = {key: value for key, value in self.settings.items() if value is not None}
        self.file.seek(0)
        self.file.truncate()
        json.dump(settings, self.file)  # JSON is YAML too
        self.file.flush()

    def reload(self, **keys):
        self.write(**keys)
        start = len(self.lines)
        self.signal(signal.SIGHUP)
        self.wait_for_line(r' reloaded: ', start=start)

    def url(self, path='/cam', host='127.0.0.1', userinfo=''):
        return f'rtsp://{userinfo}{host}:{self.port}{path}'

    def http(self, path, user=None, password=PASSWORD, headers=None):
        headers = dict(headers or {})
        if user:
            headers['Authorization'] = basic(user, password)
        connection = http.client.HTTPConnection('127.0.0.1', self.api_port, timeout=20)
        connection.request('GET', path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader('WWW-Authenticate') or '', answer.read().decode()

    def counts(self):
        """Returns the value of each metric of the door."""
        return dict(re.findall(r'^weir_access_(\S+(?: \S+"})?) (\d+)$',
                               self.http('/metrics', 'viewer')[2], re.M))


def basic(user, password=PASSWORD):
    return 'Basic ' + base64.b64encode(f'{user}:{password}'.encode()).decode()


def challenges(answer):
    """Returns the nonces of a raw answer by algorithm, and all its challenges."""
    lines = re.findall(r'(?i)^www-authenticate: (.*?)\r?$', answer, re.M)
    nonces = {re.search(r'algorithm=([\w-]+)', line)[1]: re.search(r'nonce="(\w+)"', line)[1]
              for line in lines if line.startswith('Digest')}
    return nonces, lines


class Client(Rtsp):
    """Keeps the raw heads of answers, because a head may have several challenges."""

    head = ''

    def _read_until(self, end):
        data = super()._read_until(end)
        self.head = data.decode()
        return data

    def challenge(self, url, method='DESCRIBE'):
        status = self.request(method, url)[0]
        assert status == 401, status
        return challenges(self.head)[0]['MD5']

    def describe(self, url, user='viewer', password=PASSWORD, nonce=None, **how):
        nonce = nonce or self.challenge(url)
        method = how.pop('method', 'DESCRIBE')
        return self.request(method, url, {'Authorization': response(
            method, url, nonce, user, password, **how)})[0]


def response(method, url, nonce, user='viewer', password=PASSWORD, algorithm='MD5', nc=None,
             uri=None, realm=REALM):
    """Returns the header Authorization, by RFC 7616."""
    make = hashlib.md5 if algorithm == 'MD5' else hashlib.sha256

    def hashed(*parts):
        return make(':'.join(parts).encode()).hexdigest()

    uri = uri or url
    middle = [nonce, nc, 'cn', 'auth'] if nc else [nonce]
    given = hashed(hashed(user, realm, password), *middle, hashed(method, uri))
    more = f', qop=auth, nc={nc}, cnonce="cn"' if nc else ''
    return (f'Digest username="{user}", realm="{realm}", nonce="{nonce}", uri="{uri}", '
            f'response="{given}", algorithm={algorithm}{more}')


def status_of(proxy, path='/cam', user=None, host='127.0.0.1', **how):
    with Client(proxy.port, host=host) as client:
        url = proxy.url(path, host)
        return client.describe(url, user, **how) if user else client.request('DESCRIBE', url)[0]


@test
def without_users_only_this_machine_is_admitted():
    need_other()
    with Guarded() as proxy:
        told = proxy.wait_for_line(r' only clients on this machine are admitted, .* write: (.*)$')
        assert status_of(proxy) == 200
        assert status_of(proxy, host=OTHER) == 403
        assert status_of(proxy, '/unknown', host=OTHER) == 403
        proxy.wait_for_line(rf'access refused from {OTHER}: user "", read /cam: no user has this')
        words = told[1].removeprefix('users: ')
        for key in 'name', 'permissions', 'action':
            words = words.replace(f'{key}:', f'"{key}":')
        words = re.sub(r': (\w+)', r': "\1"', words)
        proxy.reload(users=json.loads(words))
        assert status_of(proxy, host=OTHER) == 200
        assert status_of(proxy, '/unknown', host=OTHER) == 404
        proxy.reload(users=None)
        assert status_of(proxy, host=OTHER) == 403


@test
def digest_with_both_algorithms_is_offered_and_taken():
    with Guarded([VIEWER]) as proxy:
        url = proxy.url()
        with Client(proxy.port) as client:
            assert client.request('OPTIONS', url)[0] == 200
            assert client.request('DESCRIBE', url)[0] == 401
            nonces, lines = challenges(client.head)
            assert [re.search(r'algorithm=(\S+?)(,|$)', line)[1] for line in lines] == [
                'SHA-256', 'MD5'], lines
            assert len(nonces['MD5']) == 32 and nonces['MD5'] == nonces['SHA-256'], lines
            nonce = nonces['MD5']
            assert client.describe(url, nonce=nonce) == 200
            assert client.describe(url, nonce=nonce, algorithm='SHA-256') == 200
            assert client.describe(url, nonce=nonce, uri='/cam') == 200
            assert client.describe(url, nonce=nonce, uri='rtsp://elsewhere/cam/') == 200
            for wrong in ({'password': 'x'}, {'user': 'nobody'}, {'realm': 'x'},
                          {'uri': proxy.url('/b')}):
                assert client.describe(url, nonce=nonce, **wrong) == 401, wrong
                assert 'stale' not in client.head, wrong
            proxy.wait_for_line(r' access refused from 127\.0\.0\.1: user "nobody", read /cam: '
                                'unknown user')


@test
def a_digest_that_is_replayed_is_refused():
    with Guarded([VIEWER]) as proxy, Client(proxy.port) as one, Client(proxy.port) as two:
        url = proxy.url()
        nonce = one.challenge(url)
        for nc, status in ('00000001', 200), ('00000001', 401), ('00000003', 200), ('00000002', 401):
            assert one.describe(url, nonce=nonce, nc=nc) == status, nc
        assert 'stale=true' in one.head, one.head
        # The nonce of another connection.
        two.challenge(url)
        assert two.describe(url, nonce=nonce) == 401
        assert 'stale=true' in two.head, two.head
        assert two.describe(url, nonce=challenges(two.head)[0]['MD5']) == 200
        assert not matches(proxy, 'access refused'), proxy.output()


@test
def each_setup_is_checked():
    """a running stream is not set up without credentials, nor with those for another mount"""
    with Guarded([VIEWER]) as proxy, Read(proxy.url(userinfo=f'viewer:{PASSWORD}@')) as reader:
        proxy.wait_for_line(r' reader \S+ in: /cam')
        tcp = {'Transport': 'RTP/AVP/TCP;interleaved=0-1'}
        track = proxy.url('/cam/stream=0')
        with Client(proxy.port) as client:
            assert client.request('SETUP', track, tcp)[0] == 401
            assert client.session is None, client.head
            nonce = challenges(client.head)[0]['MD5']
            for wrong in ({'password': 'x'}, {'uri': proxy.url('/b')}):
                header = response('SETUP', track, nonce, **wrong)
                assert client.request('SETUP', track, {**tcp, 'Authorization': header})[0] == 401
            assert client.session is None, client.head
            header = response('SETUP', track, nonce)
            assert client.request('SETUP', track, {**tcp, 'Authorization': header})[0] == 200
            # The session makes the connection a reader; other mounts still need a permission.
            assert client.request('PLAY', proxy.url())[0] == 200
            other = proxy.url('/b/stream=0')
            header = response('SETUP', other, nonce)
            assert client.request('SETUP', other, {**tcp, 'Authorization': header})[0] == 403
        assert reader.result()['totals']['lost'] == 0


@test
def malformed_credentials_are_refused():
    with Guarded([VIEWER], **{'basic-without-tls': 'yes'}) as proxy:
        right = response('DESCRIBE', proxy.url(), 'x')
        # Different addresses, so that none is slowed down.
        for number, header in enumerate([
                'x', 'Digest', 'Digest ', 'Digest ,,,=', 'Digest username', 'Basic', 'Basic !', 'Basic eA==',
                'Bearer', 'Bearer x', right + ', nonce="y"', right.replace('MD5', 'MD5-sess'),
                right.replace('uri="', 'uri="\\'), right + ', qop=auth-int', right[:60],
                'Digest username="' + 'x' * 900 + '"', 'Digest username="\xff", nonce="1"']):
            with socket.create_connection(('127.0.0.1', proxy.port), 20,
                                          source_address=(f'127.0.1.{number + 1}', 0)) as raw:
                raw.sendall(f'DESCRIBE {proxy.url()} RTSP/1.0\r\nCSeq: 1\r\n'
                            f'Authorization: {header}\r\n\r\n'.encode('latin1'))
                answer = raw.recv(4096).decode()
            assert answer.startswith('RTSP/1.0 401 '), (header, answer)
        proxy.wait_for_line(r' access refused from 127\.0\.1\.\d+: ')


@test
def basic_is_taken_if_the_file_says_so():
    hashed = hash_password(PASSWORD)
    user = {'name': 'viewer', 'hash': hashed['hash'],
            'permissions': [{'action': 'read'}, {'action': 'metrics'}]}
    with Guarded([user]) as proxy:
        given = {'Authorization': basic('viewer')}
        with Client(proxy.port) as client:
            assert client.request('DESCRIBE', proxy.url(), given)[0] == 403
        proxy.wait_for_line(r'read /cam: password without TLS')
        proxy.reload(**{'basic-without-tls': 'yes'})
        with Client(proxy.port) as client:
            # The requests behind one that waits for the hash are answered in their order.
            client.send(b''.join(f'{method} {proxy.url()} RTSP/1.0\r\nCSeq: {cseq}\r\n'
                                 f'Authorization: {header}\r\n\r\n'.encode()
                                 for cseq, (method, header) in enumerate([
                                     ('DESCRIBE', basic('viewer')), ('OPTIONS', 'x'),
                                     ('DESCRIBE', basic('viewer', 'x')),
                                     ('DESCRIBE', basic('viewer')), ('OPTIONS', 'x')])))
            got = [client.answer() for _ in range(5)]
            assert [(each[0], int(each[1]['cseq'])) for each in got] == [
                (200, 0), (200, 1), (401, 2), (200, 3), (200, 4)], got
            assert challenges(client.head)[1] == []
        assert status_with(proxy, basic('nobody')) == 401
        assert status_with(proxy, basic('viewer', '')) == 401


def status_with(proxy, header, path='/cam'):
    with Client(proxy.port) as client:
        return client.request('DESCRIBE', proxy.url(path), {'Authorization': header})[0]


def hash_password(password, *words):
    """Returns what `rtsp-proxy hash-password` prints, by key."""
    done = subprocess.run([program(), 'hash-password', *words], input=password + '\n',
                          capture_output=True, text=True, timeout=20 * SLOWER, check=True)
    found = dict(line.split(': ', 1) for line in done.stdout.splitlines())
    return {'hash': json.loads(found['hash']),
            'digest': found.get('digest', '[]')[1:-1].split(', ')}


@test
def hash_password_prints_secrets_that_work():
    made = hash_password(PASSWORD, '--user', 'viewer')
    assert made['digest'] == digests('viewer'), made
    assert made['hash'] != hash_password(PASSWORD)['hash']
    for words, given, status in (('x',), 'x\n', 2), ((), '', 1), ((), 'x' * 1025, 1):
        done = subprocess.run([program(), 'hash-password', *words], input=given,
                              capture_output=True, text=True, timeout=20 * SLOWER)
        assert (done.returncode, done.stdout) == (status, ''), done


@test
def hash_password_shows_no_password_on_the_terminal():
    ours, theirs = pty.openpty()
    with os.fdopen(ours, 'rb+', buffering=0) as terminal:
        child = subprocess.Popen([program(), 'hash-password', '-u', 'viewer'], stdin=theirs,
                                 stdout=subprocess.PIPE, stderr=theirs, text=True)
        shown = ''
        for prompt in 'Password: ', 'Again: ':
            while not shown.endswith(prompt):
                shown += terminal.read(1024).decode()
            wait_until(lambda: not termios.tcgetattr(ours)[3] & termios.ECHO, 5, 'echo is off')
            terminal.write(f'{PASSWORD}\n'.encode())
        printed, _ = child.communicate(timeout=20)
        os.set_blocking(ours, False)
        shown += (terminal.read(1024) or b'').decode()
    os.close(theirs)
    assert child.returncode == 0 and digest_of('viewer', PASSWORD) in printed, printed
    assert PASSWORD not in shown, shown


@test
def permissions_are_for_actions_and_paths():
    need_other()
    with tempfile.TemporaryDirectory() as films:
        shutil.copy(CLIP, os.path.join(films, 'a.mp4'))
        clip = {'upstream': f'file://{os.path.realpath(CLIP)}'}
        mounts = {'/cam': {**clip, 'cache': {'time': '10s'}}, '/cam2': clip, '/b/c': clip,
                  '/films': {'upstream': f'file://{films}/'}}

        def user(name, *permissions, **keys):
            return {'name': name, 'digest': digests(name),
                    'permissions': [dict(zip(('action', 'path'), each)) for each in permissions],
                    **keys}

        users = [user('exact', ('read', '/cam')), user('glob', ('read', '/cam*')),
                 user('above', ('read', '/b')), user('film', ('playback', '/films/a.mp4')),
                 user('films', ('playback', '/films')), user('shift', ('playback', '/cam')),
                 user('away', ('read',), networks=['192.0.2.0/24']),
                 {'name': 'any', 'networks': [OTHER], 'permissions': [{'action': 'read',
                                                                       'path': '/cam2'}]}]
        with Guarded(users, mounts) as proxy:
            for name, path, status in [
                    ('exact', '/cam', 200), ('exact', '/cam2', 403), ('exact', '/cam/x', 404),
                    ('exact', '/cam?delay=5', 403), ('exact', '/films/a.mp4', 403),
                    ('shift', '/cam?delay=5', 200), ('shift', '/cam', 403),
                    ('glob', '/cam2', 200), ('glob', '/b/c', 403), ('above', '/b/c', 200),
                    ('film', '/films/a.mp4', 200), ('films', '/films/a.mp4', 200),
                    ('films', '/films/b.mp4', 404), ('film', '/films/b.mp4', 403),
                    ('film', '/films/../films/a.mp4', 403), ('away', '/cam', 401)]:
                assert status_of(proxy, path, name) == status, (name, path, status)
            assert status_of(proxy, '/cam2', host=OTHER) == 200
            assert status_of(proxy, '/cam', host=OTHER) == 401
            assert status_of(proxy, '/cam', 'away', host=OTHER) == 200
            proxy.wait_for_line(r'user "exact", read /cam2: no permission')
            proxy.wait_for_line(r'user "away", read /cam: wrong network')


@test
def a_seek_into_the_past_needs_a_permission():
    users = [VIEWER, BOSS]
    mounts = {'/cam': {'upstream': f'file://{os.path.realpath(CLIP)}', 'cache': {'time': '20s'}}}
    with Guarded(users, mounts) as proxy:
        for user, status in ('viewer', 403), ('boss', 200):
            with Client(proxy.port) as client:
                url = proxy.url()
                nonce = client.challenge(url)

                def ask(method, target, **headers):
                    headers = {name.title(): value for name, value in headers.items()}
                    return client.request(method, target, {**headers, 'Authorization': response(
                        method, target, nonce, user)})[0]

                assert ask('DESCRIBE', url) == 200
                assert ask('SETUP', url + '/stream=0',
                           transport='RTP/AVP/TCP;interleaved=0-1') == 200
                assert ask('PLAY', url, range='npt=0-') == 200
                past = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(time.time() - 2))
                assert ask('PLAY', url, range=f'clock={past}-') == status, user


@test
def a_stranger_cannot_find_out_which_paths_exist():
    with Guarded([VIEWER]) as proxy:
        heads = []
        for path in '/cam', '/unknown', '/cam/x', '/':
            with Client(proxy.port) as client:
                client.challenge(proxy.url(path))
                heads.append(re.sub(r'nonce="\w+"|Date: .*', '', client.head))
        assert len(set(heads)) == 1, heads
        assert status_of(proxy, '/unknown', 'viewer') == 403


class Listener:
    """A TCP server that counts connections, as an upstream."""

    def __init__(self):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.count = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.socket.accept()[0].close()
            except OSError:
                return
            self.count += 1

    def url(self):
        return f'rtsp://127.0.0.1:{self.socket.getsockname()[1]}/x'


@test
def nothing_starts_for_who_is_refused():
    upstream = Listener()
    mounts = {'/cam': {'upstream': upstream.url(), 'start-timeout': '2s'}}
    with Guarded([VIEWER, BOSS], mounts) as proxy:
        for method, url, more in [
                ('DESCRIBE', proxy.url(), {}),
                ('SETUP', proxy.url() + '/stream=0', {'Transport': 'RTP/AVP/TCP;interleaved=0-1'}),
                ('SETUP', proxy.url() + '/stream=0', {'Transport': 'RTP/AVP;client_port=9000-9001'}),
                ('PLAY', proxy.url(), {}), ('PLAY', proxy.url(), {'Range': 'clock=20200101T000000Z-'}),
                ('RECORD', proxy.url(), {}), ('GET_PARAMETER', proxy.url(), {}),
                ('TEARDOWN', proxy.url(), {}), ('ANNOUNCE', proxy.url(), {})]:
            for header in None, 'wrong', 'forbidden':
                with Client(proxy.port) as client:
                    headers = dict(more)
                    if header:
                        headers['Authorization'] = response(
                            method, url, client.challenge(proxy.url()), password='x')
                    assert client.request(method, url, headers)[0] >= 400 or method in (
                        'GET_PARAMETER',), (method, header)
            proxy.reload()  # another connection cannot overtake it
        assert upstream.count == 0, upstream.count
        assert not matches(proxy, r' mount /cam (up|down)'), proxy.output()
        status_of(proxy, user='boss')
        assert upstream.count > 0


@test
def the_api_takes_users_beside_the_token():
    prometheus = {'name': 'any', 'networks': ['127.0.0.2'], 'permissions': [{'action': 'metrics'}]}
    with Guarded([VIEWER, BOSS, prometheus], **{'api-token': 'tok'}) as proxy:
        for path, user, status in [
                ('/v1/mounts', None, 401), ('/v1/health', None, 200), ('/metrics', None, 401),
                ('/v1/mounts', 'viewer', 403), ('/metrics', 'viewer', 200),
                ('/v1/mounts', 'boss', 200), ('/metrics', 'boss', 403)]:
            got, asked, body = proxy.http(path, user)
            assert got == status, (path, user, got, body)
            assert ('Basic realm="rtsp-proxy"' in asked and 'Bearer' in asked) == (status == 401)
        for token, status in ('tok', 200), ('tokk', 401), ('', 401):
            assert proxy.http('/v1/mounts', headers={'Authorization': f'Bearer {token}'})[0] == status
        assert proxy.http('/v1/mounts', 'boss', 'x')[0] == 401
        proxy.wait_for_line(r'access refused from 127\.0\.0\.1: user "boss", api /v1/mounts: wrong')
        proxy.wait_for_line(r'access refused from 127\.0\.0\.1: user "viewer", api /v1/mounts: no perm')
    with Guarded([VIEWER]) as proxy:  # no user for the API: as without users
        assert proxy.http('/v1/mounts')[0] == 200
        assert proxy.http('/metrics')[0] == 401


def filter_of_the_page():
    """Returns the regular expression of the fail2ban filter in docs/security.md."""
    with open(PAGE, encoding='utf-8') as file:
        regex = re.search(r'^failregex = (.*)$', file.read(), re.M)[1]
    return re.compile(regex.replace('<ADDR>', r'(?P<host>[0-9a-fA-F.:]+)'))


@test
def the_filter_of_the_page_finds_wrong_passwords():
    with Guarded([VIEWER]) as proxy:
        evil = 'x", read /y: wrong password\r\naccess refused from 203.0.113.9'
        for user in 'viewer', 'nobody', evil.replace('\r\n', ' ').replace('"', "'"):
            assert status_of(proxy, user=user, password='x') == 401
        assert status_of(proxy, '/b', 'viewer') == 403
        proxy.wait_for_line(r'read /b: no permission')
        found = [filter_of_the_page().search(line.split(' ', 2)[2])
                 for line in proxy.lines if 'access refused' in line]
        assert [match and match['host'] for match in found] == ['127.0.0.1'] * 3 + [None], (
            proxy.output())


@test(timeout=max(TIMEOUT, WRONG_PASSWORDS // 20))
def wrong_passwords_are_slowed_down_and_others_are_not():
    need_other()
    user = {**VIEWER, 'networks': ['127.0.0.0/8', OTHER]}
    with Guarded([user, BOSS]) as proxy:
        end, answers = threading.Event(), []
        left = itertools.count()

        def guess():
            while not end.is_set() and next(left) < WRONG_PASSWORDS:
                with Client(proxy.port, timeout=60) as client:
                    url = proxy.url()
                    answers.append(client.describe(url, password=secrets.token_hex(4)))

        idle = delays(proxy, 30)
        start = time.monotonic()
        guessers = [threading.Thread(target=guess, daemon=True) for _ in range(20)]
        for each in guessers:
            each.start()
        wait_until(lambda: 503 in answers, 20, 'the address is slowed down')
        busy = delays(proxy, 30)
        for each in guessers:
            each.join()
        took = time.monotonic() - start
        # 5 at once, then with pauses of 0.5, 1, 2, 4, 4, ... s; 20 threads may be at the first ones.
        judged = answers.count(401)
        assert judged <= 5 + 20 + 3 + took / 4, (judged, took)
        assert len(answers) == WRONG_PASSWORDS, len(answers)
        print(f'# {judged} of {len(answers)} wrong passwords judged in {took:.1f} s; another address: '
              f'median {1e3 * idle:.1f} ms before, {1e3 * busy:.1f} ms meanwhile')
        assert len(matches(proxy, 'access refused')) < 20 + took
        status = proxy.http('/metrics', 'viewer')[0]
        assert status in (200, 503), status


def delays(proxy, number):
    """Returns the median time of an admitted DESCRIBE from another address."""
    taken = []
    for _ in range(number):
        start = time.monotonic()
        assert status_of(proxy, user='viewer', host=OTHER) == 200
        taken.append(time.monotonic() - start)
    return sorted(taken)[number // 2]


def try_sessions(port, url, statuses):
    """Tries session ids on one connection."""
    with Client(port, timeout=60) as client:
        for number in range(WRONG_IDS // CONNECTIONS):
            method = ('PLAY', 'TEARDOWN', 'PAUSE', 'GET_PARAMETER')[number % 4]
            statuses.append(client.request(method, url, {'Session': secrets.token_hex(8)})[0])


@test(timeout=max(TIMEOUT, WRONG_IDS // 200))
def wrong_session_ids_have_no_effect():
    with Guarded([VIEWER]) as proxy:
        url = proxy.url()
        with Read(proxy.url(userinfo=f'viewer:{PASSWORD}@'), duration=max(6, WRONG_IDS // 2000)) as reader:
            proxy.wait_for_line(r' reader \S+ in: /cam')
            statuses = []
            threads = [threading.Thread(target=try_sessions, args=(proxy.port, url, statuses),
                                        daemon=True) for _ in range(CONNECTIONS)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert statuses.count(454) == WRONG_IDS // CONNECTIONS * CONNECTIONS, set(statuses)
            result = reader.result()
        assert result['totals']['lost'] == 0 and result['totals']['ok'] == 1, result['totals']


@test
def secrets_stay_hidden():
    """no secret of the configuration is in the log at the highest level, in the API or in answers"""
    with tempfile.NamedTemporaryFile('w', encoding='utf-8') as file:
        file.write(PASSWORD + '\n')
        file.flush()
        from_file = {'name': 'filed', 'password-file': file.name,
                     'permissions': [{'action': 'read'}, {'action': 'api'}, {'action': 'metrics'}]}
        hashed = {'name': 'hashed', 'hash': sha256(PASSWORD), 'permissions': [{'action': 'api'}]}
        users = [from_file, hashed, BOSS]
        env = {'GST_DEBUG': 'rtsp*:9,*:4', 'GST_DEBUG_NO_COLOR': '1', 'G_MESSAGES_DEBUG': 'all'}
        with Guarded(users, env=env, **{'api-token': 'T0kenCanary'}) as proxy:
            shown = []
            for user in 'filed', 'boss':
                with Client(proxy.port) as client:
                    assert client.describe(proxy.url(), user) == 200
                    shown.append(client.head)
                assert status_of(proxy, user=user, password='x') == 401
            for path in '/v1/mounts', '/v1/readers', '/v1/graph', '/metrics', '/v1/openapi.json':
                shown += map(str, proxy.http(path, 'filed'))
            with open(f'/proc/{proxy.pid}/cmdline', encoding='utf-8') as cmdline:
                shown.append(cmdline.read())
            proxy.stop()
            shown += proxy.lines
    canaries = [PASSWORD, 'T0kenCanary', hashed['hash'][7:]]
    canaries += [digest.split(':')[1] for name in ('boss', 'filed') for digest in digests(name)]
    for canary in canaries:
        found = [line[:200] for line in shown if canary in line]
        proxy.lines = found[:5]
        assert not found, (canary, found[:5])


@test
def requests_are_counted():
    with Guarded([VIEWER]) as proxy:
        before = proxy.counts()
        assert status_of(proxy, user='viewer') == 200
        assert status_of(proxy, user='viewer', password='x') == 401
        assert status_of(proxy, '/b', 'viewer') == 403
        after = proxy.counts()

        def more(name):
            return int(after[name]) - int(before.get(name, 0))

        assert more('admitted_total') == 2, after  # the request for the metrics is one
        assert more('challenged_total') == 4, after
        assert more('refused_total{reason="wrong password"}') == 1, after
        assert more('refused_total{reason="no permission"}') == 1, after


# ---- real clients ----

def check_clients(proxy, user, kinds):
    # The wrong passwords come last, because the address is slowed down after some.
    for password, right in ((PASSWORD, True), ('x', False)):
        for kind, transport in itertools.product(kinds, ('udp', 'tcp') if right else ('tcp',)):
            url = proxy.url(userinfo=f'{user}:{password}@')
            assert kind(url, transport) == right, (kind.__name__, transport, right)


def gortsplib(url, transport):
    with Read(url, transport=transport, duration=1) as reader:
        return reader.result(None)['totals'].get('ok') == 1


def ffmpeg(url, transport):
    if not shutil.which('ffmpeg'):
        return PASSWORD in url
    with Proc('ffmpeg', '-v', 'error', '-rtsp_transport', transport, '-i', url, '-frames:v', '2',
              '-f', 'null', '-') as child:
        return child.wait(30) == 0


def rtspsrc(url, transport):
    with Proc('gst-launch-1.0', 'rtspsrc', f'location={url}', f'protocols={transport}', 'retry=1',
              '!', 'fakesink', env=stock_environment()) as child:
        return 'PLAY' in child.wait_for_line('Sent PLAY request|Unauthorized|ERROR', 30)[0]


def live555(url, transport):
    """Runs live555's client, in Debian's package livemedia-utils, if it is installed."""
    if not shutil.which('openRTSP'):
        return PASSWORD in url
    user, password, where = re.fullmatch(r'rtsp://(.*?):(.*?)@(.*)', url).groups()
    with tempfile.TemporaryDirectory() as folder, Proc(
            'openRTSP', '-d', '1', *(['-t'] if transport == 'tcp' else []), '-u', user, password,
            f'rtsp://{where}', cwd=folder) as child:
        return child.wait(30) == 0


@test(timeout=180)
def clients_log_in_by_digest():
    interop()
    with Guarded([VIEWER]) as proxy:
        check_clients(proxy, 'viewer', [gortsplib, ffmpeg, rtspsrc, live555])


@test(timeout=180)
def clients_log_in_by_digest_with_one_algorithm():
    interop()
    user = {**VIEWER, 'digest': [digests('viewer')[1]]}
    with Guarded([user]) as proxy:
        check_clients(proxy, 'viewer', [gortsplib, ffmpeg, rtspsrc, live555])
    user = {**VIEWER, 'digest': [digests('viewer')[0]]}
    with Guarded([user]) as proxy:
        check_clients(proxy, 'viewer', [gortsplib])


HASHED = {'name': 'hashed', 'hash': sha256(PASSWORD),
          'permissions': [{'action': 'read'}, {'action': 'playback'}]}


@test(timeout=180)
def a_user_with_a_hash_logs_in_beside_one_with_a_digest():
    with Guarded([HASHED, VIEWER], **{'basic-without-tls': 'yes'}) as proxy:
        for user in 'hashed', 'viewer':
            check_clients(proxy, user, [ffmpeg, rtspsrc, live555])


@test
def digest_is_offered_where_it_serves_everybody():
    def schemes(*users, **keys):
        with Guarded([*users], **keys) as proxy, Client(proxy.port) as client:
            assert client.request('DESCRIBE', proxy.url())[0] == 401
            return sorted({line.split()[0] for line in challenges(client.head)[1]})

    # A user for the API only is none of those who read.
    scraper = {'name': 'scraper', 'hash': sha256(PASSWORD), 'permissions': [{'action': 'metrics'}]}
    open_too = {'basic-without-tls': 'yes'}
    assert schemes(VIEWER) == ['Digest']
    assert schemes(VIEWER, **open_too) == ['Basic', 'Digest']
    assert schemes(VIEWER, scraper, **open_too) == ['Basic', 'Digest']
    assert schemes(VIEWER, HASHED, **open_too) == ['Basic']
    assert schemes(HASHED, **open_too) == ['Basic']
    # The external check takes passwords, and no digests.
    with WebServer(lambda *_: (401, '')) as server:
        check = {'external-auth': {'url': server.base}}
        assert schemes(VIEWER, **check) == ['Digest']
        assert schemes(VIEWER, **check, **open_too) == ['Basic']
        check['external-auth']['exclude'] = ['read']
        assert schemes(VIEWER, **check, **open_too) == ['Basic', 'Digest']


@test
def a_digest_that_was_not_asked_for_is_answered_with_basic_alone():
    with Guarded([HASHED, VIEWER], **{'basic-without-tls': 'yes'}) as proxy:
        for user in 'hashed', 'viewer', 'nobody':
            with Client(proxy.port) as client:
                status = client.request('DESCRIBE', proxy.url(), {'Authorization': response(
                    'DESCRIBE', proxy.url(), 'x', user, 'wrong')})[0]
                lines = challenges(client.head)[1]
                assert status == 401 and [line.split()[0] for line in lines] == ['Basic'], lines
                header = {'Authorization': basic(user)}
                expected = 401 if user == 'nobody' else 200
                assert client.request('DESCRIBE', proxy.url(), header)[0] == expected, user


@test
def a_connection_may_change_its_way_to_log_in():
    """a client that knows Basic only, one that sends it unasked, and one that changes to it and back, log in"""
    argon = {**VIEWER, 'hash': hash_password(PASSWORD)['hash']}
    for user in VIEWER, {**VIEWER, 'digest': [digests('viewer')[1]]}, argon:
        with Guarded([user], **{'basic-without-tls': 'yes'}) as proxy:
            url = proxy.url()
            for forms in itertools.product(('none', 'basic', 'digest'), repeat=3):
                with Client(proxy.port) as client:
                    nonce = client.challenge(url)
                    for form in forms:
                        header = {'none': None, 'basic': basic('viewer'),
                                  'digest': response('DESCRIBE', url, nonce)}[form]
                        status = client.request('DESCRIBE', url, {'Authorization': header} if header else {})[0]
                        assert status == (200 if header else 401), (user, forms, form, status)


@test(timeout=180)
def clients_log_in_by_basic():
    interop()
    user = {'name': 'viewer', 'hash': hash_password(PASSWORD)['hash'],
            'permissions': [{'action': 'read'}]}
    with Guarded([user], **{'basic-without-tls': 'yes'}) as proxy:
        check_clients(proxy, 'viewer', [gortsplib, ffmpeg, rtspsrc, live555])


if __name__ == '__main__':
    run(at_once=4)
