# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control API: its answers, its changes and its refusals; docs/openapi.json and docs/api.md
match it."""

import calendar
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
from datetime import datetime, timedelta, timezone
from random import Random

from control import CLIP_URI, Controlled, Watch, config, wait_for_readers_of
from openapi import Contract
from proc import Proc, Rtsp
from proxy import environment, matches, program, wait_until
from tap import SLOWER, Skip, run, test

PAGE = os.path.join(os.environ['WEIR_DATA'], '../../docs/api.md')
NOWHERE = 'rtsp://127.0.0.1:9/x'
CLIP = {'upstream': CLIP_URI}
CLIP_FILE = CLIP_URI.removeprefix('file://')


class Checked(Controlled):
    """Checks every answer against the contract."""

    contract = Contract()

    def http(self, method, path, body=None, headers=None, host=None):
        answer = super().http(method, path, body, headers, host)
        self.contract.check(method, path, answer)
        return answer

    def expect(self, status, method, path, body=None, headers=None):
        answer = self.http(method, path, body, headers)
        assert answer[0] == status, answer
        return answer[2]

    def fails(self, status, message, where, method, path, body=None, headers=None):
        error = self.expect(status, method, path, body, headers)['error']
        assert re.search(message, error['message']), error
        assert re.fullmatch(where or '', error.get('where', '')), error


def metric(text, name, **labels):
    """Returns the value of one line of /metrics."""
    wanted = ','.join(f'{key}="{value}"' for key, value in labels.items())
    value, = re.findall(rf'^weir_{name}{{{re.escape(wanted)}}} (\d+)$', text, re.M)
    return int(value)


def recorded(folder):
    shutil.copy(CLIP_FILE, os.path.join(folder, 'news.mp4'))
    return {**CLIP, 'priority': 4, 'record': {'folder': folder, 'part': '200ms'},
            'insert': {'folder': folder}}


def wait_for_recording(proxy):
    """Returns when the first segment of /cam begins."""
    def ask():
        status, _, body = proxy.http('GET', '/v1/recordings?path=/cam')
        return body['recordings'] if status == 200 else []
    wait_until(ask, 30, 'a recording')
    return ask()[0]['start']


@test
def every_operation_answers_as_documented():
    contract = Checked.contract
    contract.seen.clear()
    with tempfile.TemporaryDirectory() as folder, Checked(
            {'/cam': recorded(folder), '/a/b': {'upstream': NOWHERE}}) as proxy, Watch(proxy):
        wait_for_readers_of(proxy, 1)
        start = wait_for_recording(proxy)
        assert proxy.expect(200, 'GET', f'/v1/recordings/get?path=/cam&start={start}&duration=1s')[4:8] == b'ftyp'
        for path in ('/v1/recordings?path=/cam', '/v1/mounts', '/v1/mounts/cam', '/v1/mounts/a/b', '/v1/readers',
                     '/v1/readers?mount=/cam', '/v1/readers/1', '/v1/graph', '/v1/graph.dot',
                     '/v1/cluster', '/v1/health', '/v1/ready', '/v1/openapi.json', '/metrics'):
            proxy.expect(200, 'GET', path)
        contract.seen.add(('/v1/events', 'GET', 200))  # it has no end; events.py reads it
        if shutil.which('dot'):
            svg = proxy.expect(200, 'GET', '/v1/graph.svg')
            assert b'<svg' in svg and b'/cam' in svg, svg
        else:
            contract.seen.add(('/v1/graph.svg', 'GET', 200))
        proxy.expect(201, 'PUT', '/v1/mounts/new', {'upstream': NOWHERE, 'on-demand': False})
        proxy.expect(200, 'PUT', '/v1/mounts/new', {'upstream': NOWHERE, 'priority': 0,
                                                    'on-demand': False})
        proxy.expect(503, 'GET', '/v1/ready')
        proxy.expect(200, 'PATCH', '/v1/mounts/new', {'linger': '1s', 'priority': None})
        assert proxy.expect(200, 'GET', '/v1/mounts/new')['config']['priority'] == 4
        proxy.expect(200, 'DELETE', '/v1/mounts/new')
        at = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
        proxy.expect(201, 'POST', '/v1/mounts/cam/insert', {'clip': 'news.mp4', 'at': at})
        proxy.expect(200, 'GET', '/v1/mounts/cam/insert')
        proxy.expect(200, 'DELETE', '/v1/mounts/cam/insert')
        assert proxy.expect(200, 'GET', '/v1/mounts/cam/insert') == {'insertion': None}
        proxy.expect(200, 'PATCH', '/v1/readers/1', {'priority': 1})
        proxy.expect(200, 'POST', '/v1/reload')
        assert proxy.expect(200, 'POST', '/v1/drain')['state'] == 'serving'
        proxy.expect(200, 'DELETE', '/v1/readers/1')
    answered = {(path, method) for path, method, status in contract.seen if status < 300}
    assert answered == contract.operations(), answered ^ contract.operations()


@test
def other_methods_are_refused():
    contract = Checked.contract
    with Controlled({'/cam': CLIP}) as proxy:
        for path in contract.file['paths']:
            at = path.replace('{path}', 'cam').replace('{id}', '1')
            allowed = {method for other, method in contract.operations() if other == path}
            status, headers, _ = proxy.http('BREW', at)
            assert status == 405 and set(headers['allow'].split(', ')) == allowed, (path, headers)
            status, _, body = proxy.http('HEAD', at)
            assert (status < 500) == ('GET' in allowed) or status == 405, (path, status)
            assert body == b'', body
        for path in ('/', '/v1', '/v1/', '/v1/mount', '/v1/mounts/', '/metrics/', '/v1/graph.png'):
            assert proxy.http('GET', path)[0] == 404, path
        text = {'Content-Type': 'text/plain'}
        for method, path, body, status in [
                ('PUT', '/metrics', 'x', 405), ('PATCH', '/v1/health', 'x', 405),
                ('PUT', '/v1/readers/1', 'x' * 70000, 405), ('PUT', '/v1/nothing', 'x', 404)]:
            got = proxy.http(method, path, body, text)
            assert got[0] == status and ('allow' in got[1]) == (status == 405), (path, got)


@test
def any_path_is_answered_in_json():
    """every path gets an error in JSON, and the connection is closed"""
    random = Random(7)

    def ask(proxy, method, path):
        answer = raw(proxy, method + b' ' + path + b' HTTP/1.1\r\nHost: localhost\r\nContent-Type: '
                     b'application/json\r\nContent-Length: 2\r\n\r\n{}', shut=False)
        head, _, body = answer.partition(b'\r\n\r\n')
        assert b'application/json' in head, (method, path, answer[:200])
        assert json.loads(body)['error']['message'], (method, path, body)
        assert b' 4' in head.split(b'\r\n')[0], (method, path, head)

    with Controlled({'/cam': CLIP}) as proxy:
        for code in range(256):
            for method in (b'GET', b'PUT', b'PATCH', b'DELETE'):
                ask(proxy, method, b'/v1/mounts/a%%%02xb' % code)
                ask(proxy, method, b'/v1/mounts/a?%%%02x=b' % code)
        for _ in range(300):
            path = bytes(random.choice([c for c in range(33, 256) if c not in b'#'])
                         for _ in range(random.randrange(1, 60)))
            ask(proxy, random.choice([b'GET', b'PATCH', b'DELETE', b'BREW']), b'/v1/mounts/' + path)
        ask(proxy, b'GET', b'/v1/mounts/' + b'a' * 50000)
        assert not [line for line in proxy.lines if not re.match(r'\d{4}-\d\d-\d\d |Ctrl', line)]


@test
def the_contract_knows_every_key():
    """docs/openapi.json has the same keys of a mount as the program, but for those of files"""
    page = subprocess.run([program(), '--print-config-docs'], capture_output=True, text=True,
                          check=True, env=environment()).stdout
    keys = set(re.findall(r'^\| `([a-z-]+)`', next(table for table in page.split('\n\n') if '\n| `upstream`' in table), re.M))
    schemas = Checked.contract.file['components']['schemas']
    assert set(schemas['MountConfig']['properties']) == keys - {
        'password-file', 'password-env', 'keys-file', 'swarm', 'record', 'insert', 'template', 'hosts', 'max-instances'}


@test
def a_wrong_body_changes_nothing():
    with Checked({'/cam': CLIP}) as proxy:
        before = proxy.get('/v1/mounts')
        put = ('PUT', '/v1/mounts/cam')
        for body, message, where in [
                ('', 'the body is empty', 'body'),
                ('{"a":', 'not valid JSON: ', r'body:1:\d+'),
                ('upstream: x', 'not valid JSON: ', r'body:1:\d+'),
                ('[]', 'must be a JSON object', 'body'),
                ('"x"', 'must be a JSON object', 'body'),
                ('null', 'must be a JSON object', 'body'),
                (' ', 'must be a JSON object', 'body'),
                ('/* x */', 'must be a JSON object', 'body'),
                ('[' * 60000, 'more than 16 levels', 'body'),
                ('{"a":' * 10000, 'more than 16 levels', 'body'),
                ('/*"*/' + '[' * 60000, 'without comments', 'body'),
                ("{'\"':" + '[' * 60000, 'single quotes', 'body'),
                ('{"upstream": "publish"} {}', 'nothing behind', 'body'),
                (b'{"user": "\xff"}', 'not UTF-8', 'body'),
                ('{}', '/cam: the upstream is missing', 'body:1:1'),
                ('{"upstrem": "x"}', 'the nearest known one is "upstream"', 'body:1:2'),
                ('{"upstream": "h"}', 'upstream: unsupported URI scheme', 'body:1:14'),
                (f'{{"upstream": "{NOWHERE}",\n "linger": "soon"}}', 'linger: "soon" is not a time',
                 'body:2:12'),
                (f'{{"upstream": "{NOWHERE}", "linger": "1s", "linger": "2s"}}', 'appears twice',
                 'body:1:54'),
                (f'{{"upstream": "{NOWHERE}", "priority": null}}', 'priority: "null" is not a number',
                 'body:1:50'),
                (f'{{"upstream": "{NOWHERE}", "user": "a\\u0000b"}}', 'single value', 'body:1:46'),
                (f'{{"upstream": "{NOWHERE}", "password-file": "/etc/passwd"}}',
                 'allowed in the configuration file only', 'body:1:55'),
                (f'{{"upstream": "{NOWHERE}", "pipeline": ["nix"]}}', 'there is no stage "nix"',
                 'body:1:51')]:
            proxy.fails(400, message, where, *put, body)
        error = proxy.expect(400, *put, {'upstream': NOWHERE, 'priority': 9, 'linger': 1})['error']
        assert (error['where'], [other['where'] for other in error['others']]) \
            == ('body:1:50', ['body:1:63']), error
        assert error['message'].startswith('priority: '), error
        assert error['others'][0]['message'].startswith('linger: '), error
        for body in ({'upstream': 'launch: fakesrc ! pay0'},
                     {'upstreams': [NOWHERE, 'launch: fakesrc ! pay0']}):
            proxy.fails(400, 'launch lines are accepted only in the configuration file',
                        r'body:1:\d+', *put, body)
        proxy.fails(400, 'from itself: /cam, /cam', 'body', *put, {'upstream': proxy.url('/cam')})
        for path in ('/v1/mounts/cam/', '/v1/mounts/a%20b', '/v1/mounts/stream=0'):
            proxy.fails(400, 'is not a valid path|contains a character|name of a track', 'path',
                        'PUT', path, CLIP)
        proxy.fails(404, 'there is no mount /nix', None, 'PATCH', '/v1/mounts/nix', {})
        proxy.fails(404, 'there is no mount /nix', None, 'DELETE', '/v1/mounts/nix')
        proxy.fails(400, 'unknown parameter "dryrun"; allowed: dry-run$', 'query', *put[:1],
                    put[1] + '?dryrun', CLIP)
        proxy.fails(400, 'unknown parameter "force"; allowed: dry-run, reason$', 'query', 'DELETE',
                    '/v1/mounts/cam?force=1')
        proxy.fails(400, 'unknown parameter "x"; this operation has no parameters$', 'query', 'PATCH',
                    '/v1/readers/1?x', {})
        assert proxy.get('/v1/mounts') == before
        assert not matches(proxy, r' mount \S+ (added|changed|removed)')


@test
def escapes_in_a_body_are_decoded():
    with Checked({'/cam': CLIP}) as proxy:
        body = rb'{"user": "\"\\\/\b\f\n\r\t\u00e9\u20ac\u0041"}'
        proxy.expect(200, 'PATCH', '/v1/mounts/cam', body)
        user = proxy.get('/v1/mounts/cam')['config']['user']
        assert user == json.loads(body)['user'], user


@test
def any_body_is_answered():
    """the proxy accepts or refuses any bytes in a body and keeps running"""
    random = Random(5)
    sound = json.dumps({'upstreams': [NOWHERE, CLIP_URI], 'linger': '1s', 'priority': 3,
                        'pipeline': ['pull', {'restamp': {}}],
                        'choices': {}, 'on-demand': False, 'user': '\u00e9"\\'})
    with Checked({'/cam': CLIP}) as proxy:
        seen = set()
        for _ in range(600):
            body = bytearray(sound.encode())
            for _ in range(random.randrange(4)):
                at = random.randrange(len(body))
                if random.random() < 0.5:
                    body[at] = random.choice(b'{}[]",:\\&*!|>%@`#-? \n\t0\x00\xff')
                else:
                    body[at:at + random.randrange(9)] = body[random.randrange(len(body)):][:9]
            status, _, _ = proxy.http('PATCH', '/v1/mounts/cam?dry-run', bytes(body))
            seen.add(status)
        assert seen == {200, 400}, seen


@test
def oversized_and_malformed_requests_are_refused():
    with Checked({'/cam': CLIP}) as proxy:
        body = {'upstream': NOWHERE, 'user': 'u' * 70000}
        proxy.fails(413, 'larger than 65536 bytes', None, 'PUT', '/v1/mounts/cam', body)
        proxy.fails(415, 'application/json', 'Content-Type', 'PUT', '/v1/mounts/cam', CLIP,
                    {'Content-Type': 'text/plain'})
        assert b' 411 ' in raw(proxy, b'PUT /v1/mounts/cam HTTP/1.1\r\nHost: localhost\r\n'
                               b'Content-Type: application/json\r\n'
                               b'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n')
        for request in (b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + b'x' * 300000 + b'\r\n\r\n',
                        b'\x16\x03\x01\x00\x00' * 100 + b'\r\n\r\n', b'\r\n' * 1000 + b'\0\r\n\r\n',
                        b'GET http://[ HTTP/1.1\r\n\r\n', b'GET /v1/mounts/%00 HTTP/1.0\r\n\r\n',
                        b'GET /v1/../../etc HTTP/1.0\r\nHost: localhost\r\n\r\n'):
            answer = raw(proxy, request)
            assert b' 200 ' not in answer.split(b'\r\n')[0], (request[:60], answer)
        proxy.expect(200, 'GET', '/v1/health')


def raw(proxy, request, shut=True):
    with socket.create_connection(('127.0.0.1', proxy.api_port), 10) as connection:
        try:
            connection.sendall(request)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            return b''.join(iter(lambda: connection.recv(65536), b''))
        except OSError: # it has closed the connection
            return b''


@test
def pages_of_other_sites_are_refused():
    with Controlled({'/cam': CLIP}) as proxy:
        port = proxy.api_port
        # No page can let another machine have an address.
        for host in ('127.0.0.1', f'localhost:{port}', f'[::1]:{port}', 'LOCALHOST', '[::2]', '192.0.2.1:80',
                     socket.gethostname()):
            assert proxy.http('GET', '/v1/health', host=host)[0] == 200, host
        for host in ('evil.example', f'127.0.0.1.evil.example:{port}', 'localhost.', '192.0.2.1.evil.example', ' '):
            assert proxy.http('GET', '/v1/health', host=host)[0] == 403, host
        assert b' 200 ' not in raw(proxy, b'GET /v1/health HTTP/1.0\r\n\r\n')
        for origin, status in [('http://evil.example', 403), ('null', 403),
                               (f'https://127.0.0.1:{port}', 403), (f'http://127.0.0.1:{port}', 200)]:
            got = proxy.http('POST', '/v1/reload', headers={'Origin': origin})
            assert got[0] == status, (origin, got)
            assert not [name for name in got[1] if name.startswith('access-control')], got[1]


@test
def a_token_is_required():
    """with a token, every request but that of the health needs it, on loopback too"""
    with Checked({'/cam': CLIP}, **{'api-token': 's3cret-token'}) as proxy:
        for given in (None, 'Bearer', 'Bearer ', 'Bearer s3cret-toke', 'Bearer s3cret-tokenn',
                      'Basic s3cret-token', 's3cret-token'):
            headers = {'Authorization': given} if given else {}
            if given:
                assert proxy.http('GET', '/v1/health', headers=headers)[0] == 401, given
            for method, path in [('GET', '/v1/ready'), ('GET', '/metrics'), ('POST', '/v1/reload'),
                                 ('DELETE', '/v1/mounts/cam')]:
                status, got, _ = proxy.http(method, path, headers=headers)
                assert status == 401 and got['www-authenticate'] == 'Bearer', (given, status)
        proxy.expect(200, 'GET', '/v1/health')
        assert proxy.http('GET', '/v1/health', headers={'Origin': 'http://evil.example'})[0] == 403
        right = {'Authorization': 'Bearer s3cret-token'}
        assert proxy.http('GET', '/v1/mounts/cam', headers=right)[0] == 200
        assert 's3cret-token' not in proxy.output()


@test
def beyond_loopback_the_api_needs_a_token():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'c.yaml')
        for api in ('0.0.0.0:0', ':0', '[::]:0'):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(config({'/cam': CLIP}, api=api))
            with Proc(program(), '--config', path, env=environment()) as proxy:
                assert proxy.wait() == 2
                assert 'set a token' in proxy.output(), proxy.output()
    with Checked({'/cam': CLIP}, api='0.0.0.0:0', **{'api-token': 't'}) as proxy:
        right = {'Authorization': 'Bearer t'}
        assert proxy.http('GET', '/v1/health', headers=right, host='proxy.example')[0] == 200
        assert proxy.http('GET', '/v1/ready', host='proxy.example')[0] == 401
        assert proxy.http('GET', '/v1/health', host='proxy.example')[0] == 403
        assert proxy.http('GET', '/v1/health')[0] == 200


@test
def a_port_in_use_is_reported():
    """an explicit port must be free; the default port need not be"""
    with socket.create_server(('127.0.0.1', 0)) as taken, tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'c.yaml')
        port = taken.getsockname()[1]
        with open(path, 'w', encoding='utf-8') as file:
            file.write(config({'/cam': CLIP}, api=f'127.0.0.1:{port}'))
        with Proc(program(), '--config', path, env=environment()) as proxy:
            assert proxy.wait() == 1
            assert f"api: cannot listen on 127.0.0.1 port {port}" in proxy.output()
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'listen: 127.0.0.1:0\nmounts: {{/cam: {{upstream: "{NOWHERE}"}}}}\n')
        try:
            default = socket.create_server(('127.0.0.1', 9554))
        except OSError: # another process has the port, which also works
            default = socket.socket()
        with default, Proc(program(), '--config', path, env=environment()) as proxy:
            proxy.wait_for_line(r" the API is off: .*cannot listen on 127\.0\.0\.1 port 9554")
            proxy.wait_for_line(r' serves rtsp://')
            assert proxy.stop() == 0
    with Controlled({'/cam': CLIP}, api='off') as proxy:
        assert ' api ' not in proxy.output()


@test
def answered_clients_leave_nothing_behind():
    def descriptors():
        return len(os.listdir(f'/proc/{proxy.pid}/fd'))

    with Checked({'/cam': CLIP}) as proxy:
        proxy.expect(200, 'GET', '/v1/mounts')
        before = descriptors()
        for _ in range(10):
            proxy.expect(200, 'GET', '/v1/mounts')
            proxy.expect(404, 'GET', '/v1/mounts/none')
            # The HTTP library itself refuses this request.
            assert Controlled.http(proxy, 'GET', '/v1/mounts/%00')[0] == 400
        wait_until(lambda: descriptors() <= before, 5, 'the connections are closed')


@test
def passwords_are_never_given_out():
    mounts = {'/cam': {'upstream': 'rtsp://me:s3cret@127.0.0.1:9/x'},
              '/b': {'upstreams': ['rtsp://u:s3cret@h/x', NOWHERE], 'password': 's3cret'}}
    with Checked(mounts) as proxy:
        proxy.expect(200, 'PATCH', '/v1/mounts/b', {'user': 'x', 'password': 's3cret2'})
        proxy.expect(200, 'PATCH', '/v1/mounts/b?dry-run', {'upstream': 'rtsp://u:s3cret3@h/x'})
        proxy.fails(400, '.', 'body:1:14', 'PATCH', '/v1/mounts/b',
                    {'upstream': 'rtsp://u:s3cret@x@h/x'})
        for path in ('/v1/mounts', '/v1/mounts/b', '/v1/graph', '/v1/graph.dot', '/metrics'):
            text = str(proxy.expect(200, 'GET', path))
            assert 's3cret' not in text, (path, text)
        assert 's3cret' not in proxy.output()


@test
def a_dry_run_reports_and_changes_nothing():
    with Checked({'/cam': CLIP}) as proxy, Watch(proxy) as reader:
        wait_for_readers_of(proxy, 1)
        before = proxy.get('/v1/mounts/cam')['config']
        for method, body, effect in [
                ('PATCH', {'upstream': NOWHERE}, 'the new pipeline starts beside the old one'),
                ('PATCH', {'linger': '1s'}, 'readers are not affected'),
                ('PATCH', {'priority': 1}, 'new readers get the new values'),
                ('PUT', CLIP, 'nothing changes'),
                ('DELETE', None, 'the mount is removed and its readers are closed')]:
            answer = proxy.expect(200, method, '/v1/mounts/cam?dry-run', body)
            assert answer['dry-run'] and answer['change']['readers'] == 1, answer
            assert answer['change']['effect'].startswith(effect), answer
        new = proxy.expect(200, 'PUT', '/v1/mounts/new?dry-run=yes', CLIP)
        assert new['change']['change'] == 'added', new
        proxy.write(config({'/other': CLIP}))
        plan = proxy.expect(200, 'POST', '/v1/reload?dry-run')
        assert {c['path']: c['change'] for c in plan['changes']} == {
            '/other': 'added', '/cam': 'removed'}, plan
        assert [m['path'] for m in proxy.get('/v1/mounts')['mounts']] == ['/cam']
        assert proxy.get('/v1/mounts/cam')['config'] == before
        reader.take()


@test
def how_readers_are_served_changes_while_it_runs():
    """join, priority and cache reach the media of a mount that runs without readers"""
    def begins_with_a_keyframe():
        with Watch(proxy) as reader:
            while True:
                channel, packet = reader.frames.pop(0) if reader.frames else reader.frame()
                if channel == 0:
                    kind = packet[12] & 31
                    return (packet[13] & 31 if kind == 28 else kind) in (5, 7, 8, 24)

    def seconds_kept():
        one.take(20)
        other.take(20)
        with Rtsp(proxy.port) as rtsp:
            sdp = rtsp.request('DESCRIBE', proxy.url())[2].decode()
        found = re.search(r'clock=(\d{8}T\d{6})', sdp)
        return found and time.time() - calendar.timegm(time.strptime(found[1], '%Y%m%dT%H%M%S'))

    with Checked({'/cam': {**CLIP, 'on-demand': False, 'join': 'live'}},
                 **{'file-roots': [tempfile.gettempdir()]}) as proxy:
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'up', 10, 'the mount is up')
        patch = ('PATCH', '/v1/mounts/cam')
        with Watch(proxy) as one, Watch(proxy) as other:
            wait_for_readers_of(proxy, 2)
            first, second = proxy.get('/v1/readers')['readers']
            proxy.expect(200, 'PATCH', f"/v1/readers/{second['id']}", {'priority': 6})
            proxy.expect(200, *patch, {'priority': 1})
            assert [r['priority'] for r in proxy.get('/v1/readers')['readers']] == [1, 6]
            with Watch(proxy):
                wait_for_readers_of(proxy, 3)
                assert [r['priority'] for r in proxy.get('/v1/readers')['readers']] == [1, 6, 1]
            wait_until(lambda: not begins_with_a_keyframe(), 10, 'a reader begins live')
            proxy.expect(200, *patch, {'join': None, 'cache': {'time': '30s'}})
            # From the next keyframe on, if the window for live readers held none. One live reader
            # may join just at a keyframe, but not five.
            wait_until(lambda: seconds_kept() and all(begins_with_a_keyframe() for _ in range(5)),
                       20, 'all readers begin with a keyframe')
            wait_until(lambda: seconds_kept() > 12, 30, 'the window has grown')
            proxy.expect(200, *patch, {'cache': {'time': '1s'}})
            wait_until(lambda: seconds_kept() < 12, 20, 'the window shrinks')
            one.take()
            other.take()
            assert not matches(proxy, r' reader \S+ out: /cam: (?!TEARDOWN|connection)')
            with tempfile.TemporaryDirectory() as folder:
                body = {'cache': {'time': '30s', 'spill': folder}}
                told = proxy.expect(200, 'PATCH', '/v1/mounts/cam?dry-run', body)
                assert told['change']['effect'].startswith('readers are closed'), told
                proxy.expect(200, *patch, body)
                assert one.closed() and other.closed()
                proxy.wait_for_line(r" out: /cam: the mount's cache or fan-out has changed, and begins anew$")
                with Watch(proxy) as reader:
                    reader.take()


@test
def changes_outlive_a_reload_unless_the_file_changes_the_mount():
    mounts = {'/kept': CLIP, '/retaken': CLIP, '/removed': CLIP}
    with Checked(mounts) as proxy:
        proxy.expect(200, 'PATCH', '/v1/mounts/kept', {'linger': '1s'})
        proxy.expect(200, 'PATCH', '/v1/mounts/retaken', {'linger': '1s'})
        proxy.expect(200, 'DELETE', '/v1/mounts/removed')
        proxy.expect(201, 'PUT', '/v1/mounts/new', CLIP)
        assert proxy.expect(200, 'POST', '/v1/reload')['changes'] == []
        proxy.write(config({**mounts, '/retaken': {**CLIP, 'linger': '2s'}}))
        change, = proxy.expect(200, 'POST', '/v1/reload')['changes']
        assert change['path'] == '/retaken' and change['keys'] == ['linger'], change
        now = {m['path']: (m['source'], m['config']['linger']) for m in
               proxy.get('/v1/mounts')['mounts']}
        assert now == {
            '/kept': ('api', '1s'), '/retaken': ('file', '2s'), '/new': ('api', '10s')}, now
        # The file now says the same as the earlier changes, so there is nothing to do.
        proxy.write(config({**mounts, '/retaken': {**CLIP, 'linger': '2s'},
                            '/kept': {**CLIP, 'linger': '1s'}, '/new': CLIP}))
        plan = proxy.expect(200, 'POST', '/v1/reload')
        assert plan['changes'] == [] and proxy.get('/v1/mounts/new')['source'] == 'file', plan


@test
def a_mistake_in_the_file_is_reported_with_its_place():
    with Checked({'/cam': CLIP}) as proxy:
        proxy.write(config({'/cam': {**CLIP, 'lingr': '1s'}}))
        for path in ('/v1/reload?dry-run', '/v1/reload'):
            proxy.fails(409, 'unknown key "lingr"; the nearest known one is "linger"',
                        re.escape(f'{proxy.file}:7:4'), 'POST', path)
        os.unlink(proxy.file)
        proxy.fails(409, 'No such file', None, 'POST', '/v1/reload')
        proxy.wait_for_line(r' not reloaded, nothing has changed: .*No such file')
        told = matches(proxy, r' not reloaded, nothing has changed: \S+:7:4: ')
        assert len(told) == 1, 'once: not for the dry run'
        proxy.expect(200, 'GET', '/v1/mounts/cam')


@test
def readers_are_listed_and_closed():
    with Checked({'/cam': CLIP, '/b': CLIP}) as proxy, Watch(proxy) as one, Watch(proxy, '/b') as two:
        wait_for_readers_of(proxy, 2)
        first, second = proxy.get('/v1/readers')['readers']
        assert (first['mount'], second['mount']) == ('/cam', '/b')
        assert first['peer'] == '{}:{}'.format(*one.socket.getsockname()), first
        assert first['transport'] == 'TCP' and first['state'] == 'ok' and first['priority'] == 4, first
        assert [r['id'] for r in proxy.get('/v1/readers?mount=/b')['readers']] == [second['id']]
        one.take()
        path = f'/v1/readers/{first["id"]}'
        assert proxy.get(path)['packets'] >= 50
        assert proxy.expect(200, 'PATCH', path, {'priority': 0})['priority'] == 0
        assert proxy.get(f'/v1/readers/{second["id"]}')['priority'] == 4
        for body, message, where in [({'priority': 8}, 'not a number from 0 to 7', 'body:1:14'),
                                     ({'class': 3}, 'unknown key "class"; it is called "priority" now',
                                      'body:1:2'),
                                     ({'priorty': 1}, 'nearest known one is "priority"', 'body:1:2'),
                                     ({'layers': '1.0'}, 'must be auto or SPATIAL.QUALITY.TEMPORAL', 'body'),
                                     ({}, 'set "priority", "layers" or both', 'body')]:
            proxy.fails(400, message, where, 'PATCH', path, body)
        for number in ('0', '-1', 'x', '99', '1' * 40):
            proxy.fails(404, 'there is no reader', None, 'GET', f'/v1/readers/{number}')
        proxy.expect(200, 'DELETE', path + '?reason=too%20loud')
        proxy.wait_for_line(r' reader \S+ out: /cam: too loud$')
        assert one.closed()
        two.take()
        wait_for_readers_of(proxy, 1)
        proxy.fails(404, 'there is no reader', None, 'GET', path)


@test
def a_removed_mount_closes_its_readers():
    with Checked({'/cam': CLIP, '/b': CLIP}) as proxy, Watch(proxy) as one, Watch(proxy, '/b') as two:
        proxy.expect(200, 'DELETE', '/v1/mounts/cam?reason=' + 'moved%0A' * 100)
        proxy.wait_for_line(r' reader \S+ out: /cam: (moved\?){33}mo$')
        assert one.closed()
        two.take()
        # The mount can return at once.
        proxy.expect(201, 'PUT', '/v1/mounts/cam', CLIP)
        with Watch(proxy) as again:
            again.take()


@test
def only_reported_losses_count_as_reader_loss():
    """only receiver reports count as the readers' packet loss"""
    with Checked({'/cam': CLIP}) as proxy:
        words = ['--readers', '3', '--transport', 'udp', '--loss', '20', '--duration', '60']
        with Proc(os.environ['WEIR_RTSP_LOAD'], *words, proxy.url(), env=environment()) as load:
            wait_for_readers_of(proxy, 3)
            wait_until(lambda: all(r['loss'] for r in proxy.get('/v1/readers')['readers']), 30,
                       'all readers have reported')
            wait_until(lambda: metric(proxy.get('/metrics').decode(), 'reader_lost_packets_total',
                                      mount='/cam') > 0, 30, 'the readers report loss')
            loss = proxy.get('/v1/readers')['readers'][0]['loss']
            assert abs(loss['fraction'] - 0.2) < 0.1, loss
            text = proxy.get('/metrics').decode()
            assert metric(text, 'readers', mount='/cam', transport='udp') == 3
            assert metric(text, 'readers_with_priority', mount='/cam', priority='4') == 3
            load.stop()
        wait_for_readers_of(proxy, 0)
        # Counters keep their values.
        after = proxy.get('/metrics').decode()
        for name in ('reader_lost_packets_total', 'reader_reports_total', 'sent_packets_total',
                     'sent_bytes_total', 'due_packets_total'):
            assert metric(after, name, mount='/cam') >= metric(text, name, mount='/cam') > 0, name
        assert metric(after, 'ingest_lost_packets_total', mount='/cam') == 0
        for reason in ('would-block', 'no-buffers', 'too-big', 'error'):
            assert metric(after, 'socket_lost_packets_total', mount='/cam', reason=reason) == 0
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'idle', 20, 'it is idle')
        end = proxy.get('/metrics').decode()
        for name in ('sent_packets_total', 'reader_lost_packets_total'):
            assert metric(end, name, mount='/cam') >= metric(after, name, mount='/cam'), name
        total = metric(end, 'sent_packets_total', mount='/cam')
        total += sum(int(n) for n in re.findall(
            r'^weir_(?:socket_lost|left_out)_packets_total{mount="/cam",.* (\d+)$', end, re.M))
        assert total == metric(end, 'due_packets_total', mount='/cam')


@test
def metrics_have_few_labels():
    with Checked({'/cam': CLIP, '/b': CLIP}) as proxy, Watch(proxy), Watch(proxy):
        wait_for_readers_of(proxy, 2)
        families, labels = set(), set()
        for line in proxy.get('/metrics').decode().splitlines():
            if line.startswith('#'):
                word, kind, name = line.split()[:3]
                assert kind in ('HELP', 'TYPE') and word == '#', line
                families.add(name)
                continue
            name, pairs = re.fullmatch(r'([a-z_]+)(?:\{(.+)\})? \d+', line).groups()
            assert name in families, line
            labels |= {pair.split('=')[0] for pair in (pairs or '').split(',') if pair} if pairs else set()
        assert labels == {'mount', 'reason', 'repair', 'result', 'state', 'status', 'cause', 'priority',
                          'transport', 'version'}, labels


def table(text, heading):
    """The cells of each row of the first table below a heading of docs/api.md, without backquotes."""
    below = re.split(rf'^#+ {re.escape(heading)}\n', text, flags=re.M)[1]
    rows = re.search(r'^\|[-|]+\n((?:\|.*\n)+)', below, re.M)[1]
    return [[cell.strip() for cell in row.replace('`', '').strip().strip('|').split('|')]
            for row in rows.splitlines()]


@test
def the_page_has_every_operation():
    """docs/api.md and docs/openapi.json have the same operations, arguments and errors."""
    common = {'401', '403', '405', '411', '413'}
    with open(PAGE, encoding='utf-8') as file:
        text = file.read()
    page = {}
    for name, arguments, answer, errors in table(text, 'Operations'):
        name = re.fullmatch(r'\[(.*)\]\(.*\)', name)[1]
        page[name] = (set(re.findall(r'[A-Za-z-]+', arguments)),
                      set(re.findall(r'\d+', answer.split(':')[0]) + re.findall(r'\d+', errors)))
        section = text.split(f'\n### `{name}`\n')[1].split('\n#')[0]
        method, path = name.split()
        path = path.split('{')[0]
        assert re.search(rf'^curl .*127\.0\.0\.1:9554{path}', section, re.M), f'{name}: no example'
        assert method == 'GET' or f'-X {method} ' in section, f'{name}: no example'
    contract = {}
    for path, item in Checked.contract.file['paths'].items():
        for method, operation in item.items():
            arguments = {each['name'] for each in operation.get('parameters', [])}
            if 'requestBody' in operation:
                arguments.add('body')
            contract[f'{method.upper()} {path}'] = (arguments, set(operation['responses']) - common)
    assert page == contract, [(name, page.get(name), contract.get(name))
                              for name in {**page, **contract} if page.get(name) != contract.get(name)]
    explained = {row[0] for row in table(text, 'Errors')}
    used = common.union(*(answers for _, answers in contract.values()))
    assert explained == {status for status in used if status >= '300'}, explained


# The metrics of features that a build may leave out begin with these.
METRICS = {'store': 'weir_store_', 'broadcast': 'weir_broadcast_', 'swarm': 'weir_swarm_', 'srt': 'weir_srt_',
           'webrtc': 'weir_webrtc_'}


@test
def the_page_has_every_metric():
    """The table in docs/api.md has the names, types, labels and help of /metrics."""
    with open(PAGE, encoding='utf-8') as file:
        page = {name: (kind, labels, meaning) for name, kind, labels, _, meaning
                in table(file.read(), '`GET /metrics`')}
    left_out = tuple(prefix for name, prefix in METRICS.items()
                     if name not in os.environ.get('WEIR_FEATURES', name).split())
    page = {name: row for name, row in page.items() if not name.startswith(left_out)}
    with Checked({'/cam': CLIP}) as proxy, Watch(proxy):
        wait_for_readers_of(proxy, 1)
        text = proxy.get('/metrics').decode()
    told = {}
    for name, help_text in re.findall(r'^# HELP (\w+) (.*)$', text, re.M):
        kind, = re.findall(rf'^# TYPE {name} (\w+)$', text, re.M)
        sample = re.search(rf'^{name}(?:{{(.*)}})? \d', text, re.M)
        # Without a mount or a refusal some have no sample.
        labels = (re.sub(r'="[^"]*"', '', sample[1] or '').replace(',', ', ') if sample
                  else page[name][1])
        labels = '' if re.search(rf'^{name} ', text, re.M) else labels
        told[name] = (kind, labels, help_text)
    assert page == told, [(name, page.get(name), told.get(name))
                          for name in {**page, **told} if page.get(name) != told.get(name)]


@test
def the_graph_picture_does_not_block_the_api():
    with tempfile.TemporaryDirectory() as directory:
        fake = os.path.join(directory, 'dot')
        with open(fake, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nexec sleep 100\n')
        os.chmod(fake, stat.S_IRWXU)
        env = {'PATH': directory + os.pathsep + os.environ['PATH']}
        with Checked({'/cam': CLIP}, env=env) as proxy:
            got = []
            thread = threading.Thread(
                target=lambda: got.append(proxy.http('GET', '/v1/graph.svg')[0]))
            with socket.create_connection(('127.0.0.1', proxy.api_port)) as gone:
                gone.sendall(b'GET /v1/graph.svg HTTP/1.1\r\nHost: localhost\r\n\r\n')
                wait_until(lambda: children(proxy.pid), 10, 'dot runs')
            thread.start()
            wait_until(lambda: len(children(proxy.pid)) == 2, 10, 'both are being made')
            proxy.fails(503, 'being drawn already', None, 'GET', '/v1/graph.svg')
            proxy.expect(200, 'GET', '/v1/health')
            thread.join(30)
            assert got == [504], got
            wait_until(lambda: not children(proxy.pid), 10, 'both processes end')
            with socket.create_connection(('127.0.0.1', proxy.api_port)) as waiting:
                waiting.sendall(b'GET /v1/graph.svg HTTP/1.1\r\nHost: localhost\r\n\r\n')
                wait_until(lambda: children(proxy.pid), 10, 'dot runs')
                assert proxy.stop() == 0
    with tempfile.TemporaryDirectory() as empty, Checked({'/cam': CLIP}, env={'PATH': empty}) as proxy:
        proxy.fails(501, r'Debian: graphviz', None, 'GET', '/v1/graph.svg')


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [child for child in file.read().split() if is_running(child)]


def is_running(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


@test
def changes_under_readers_leave_nothing_behind():
    """a hundred mounts come and go while other mounts have readers"""
    with Checked({'/cam': CLIP}) as proxy, Watch(proxy) as reader:
        for number in range(100):
            proxy.expect(201, 'PUT', f'/v1/mounts/m{number % 7}', CLIP)
            if number % 10 == 0:
                with Watch(proxy, f'/m{number % 7}'):
                    pass
            proxy.expect(200, 'DELETE', f'/v1/mounts/m{number % 7}')
        reader.take()
        assert [m['path'] for m in proxy.get('/v1/mounts')['mounts']] == ['/cam']


@test
def the_lines_of_the_page_work():
    """each command line in docs/api.md works"""
    if not shutil.which('curl'):
        raise Skip('needs curl')
    with open(PAGE, encoding='utf-8') as file:
        snippets = re.findall(r'^```sh\n(.*?)^```', file.read(), re.S | re.M)
    assert len(snippets) >= 4, snippets
    if not shutil.which('dot'):
        snippets = [text for text in snippets if '.svg' not in text]
    with tempfile.TemporaryDirectory() as directory:
        with Checked({'/cam': recorded(directory)}) as proxy, Watch(proxy), Watch(proxy):
            wait_for_readers_of(proxy, 2)
            start = wait_for_recording(proxy)
            for text in snippets:
                text = text.replace('127.0.0.1:9554', f'127.0.0.1:{proxy.api_port}')
                text = text.replace('rtsp://192.0.2.7/stream', CLIP_URI)
                text = re.sub(r'2026-11-23T[\d:]+Z', start, text)
                done = subprocess.run(['sh', '-ec', f'alias curl="curl -fsS"\n{text}'],
                                      cwd=directory, capture_output=True, text=True, timeout=30 * SLOWER)
                assert done.returncode == 0, (text, done)
        assert not matches(proxy, r' api: .*: [45]\d\d$')


if __name__ == '__main__':
    run(at_once=4)
