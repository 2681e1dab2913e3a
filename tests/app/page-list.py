# SPDX-License-Identifier: LGPL-2.1-or-later
"""The list of streams: who sees which, and that a request for it is judged once."""

import base64
import hashlib
import http.client
import re
import shutil
import subprocess

from chromium import Chromium
from hlsweb import Web
from jose import Key, key_set
from tap import Skip, run, test
from webserver import WebServer

PASSWORD = 'S3cr3tCanary'
MANY = 300


def sha256(password=PASSWORD):
    return 'sha256:' + hashlib.sha256(password.encode()).hexdigest()


def digests(user, password=PASSWORD):
    text = f'{user}:rtsp-proxy:{password}'.encode()
    return [f'SHA-256:{hashlib.sha256(text).hexdigest()}', f'MD5:{hashlib.md5(text).hexdigest()}']


def user(name, *paths, **secrets):
    return {'name': name, **(secrets or {'digest': digests(name)}),
            'permissions': [{'action': 'read', **({'path': path} if path else {})}
                            for path in paths or [None]]}


def basic(name, password=PASSWORD):
    return {'Authorization': 'Basic ' + base64.b64encode(f'{name}:{password}'.encode()).decode()}


class Many(Web):
    """A proxy with many mounts that nobody publishes."""

    def __init__(self, n=MANY, **top):
        self.paths = [f'/m{i}' for i in range(n)]
        super().__init__('publish', mounts={path: {'upstream': 'publish'} for path in self.paths},
                         **top)

    def refused(self, reason='wrong password'):
        found = re.search(f'^weir_access_refused_total{{reason="{reason}"}} (\\d+)$',
                          self.get('/metrics').decode(), re.M)
        return int(found[1]) if found else 0

    def listed(self, headers=None, query=''):
        """Returns the status and the paths of the list."""
        status, _, body = self.fetch('/' + query, headers)
        return status, re.findall(r'<a href="/watch(/[^"?]+)', body.decode())


@test
def a_typo_is_one_wrong_password():
    with Many(users=[user('ann')], **{'basic-without-tls': 'yes'}) as proxy:
        assert proxy.listed() == (401, [])
        assert proxy.refused() == 0
        assert proxy.listed(basic('ann', 'S3cr3tCanarz'))[0] == 401
        assert proxy.refused() == 1
        assert len([line for line in proxy.lines if ' access refused ' in line]) == 1
        # The address is not slowed down, and its password is right at once.
        assert proxy.listed(basic('ann')) == (200, sorted(['/cam', *proxy.paths]))
        assert proxy.refused() == 1


@test
def everybody_sees_the_streams_that_are_theirs():
    users = [user('any', '/m1'), user('ann', '/m2', '/m1*'), user('bob')]
    users[0].pop('digest')
    with Many(30, users=users, **{'basic-without-tls': 'yes'}) as proxy:
        ann = sorted(path for path in proxy.paths if path.startswith('/m1') or path == '/m2')
        assert proxy.listed() == (200, ['/m1'])
        assert proxy.listed(basic('ann')) == (200, ann)
        assert proxy.listed(basic('bob')) == (200, sorted(['/cam', *proxy.paths]))
        assert proxy.listed(basic('ann', 'x')) == (200, ['/m1'])
        assert proxy.listed({'Authorization': 'Basic !'}) == (200, ['/m1'])


def curl(url, *words):
    if not shutil.which('curl'):
        raise Skip('curl is not installed')
    done = subprocess.run(['curl', '-s', '-m', '20', '-w', '\n%{http_code}', *words, url],
                          capture_output=True, text=True, check=True)
    body, _, status = done.stdout.rpartition('\n')
    return int(status), body


@test
def users_of_digest_see_the_list():
    with Many(3, users=[user('ann')]) as proxy:
        for target in '/', '/?', '/?a=b':
            status, body = curl(proxy.web + target, '--digest', '-u', f'ann:{PASSWORD}')
            assert status == 200 and '/watch/m2' in body, (target, status, body)
        assert proxy.refused() == 0
        assert curl(proxy.web, '--digest', '-u', 'ann:wrong')[0] == 401
        assert proxy.refused() == 1


@test
def a_digest_for_another_page_is_refused():
    with Many(3, users=[user('ann', digest=digests('ann')[1:])]) as proxy:
        def status_of(uri):
            connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=20)
            connection.request('GET', '/')
            answer = connection.getresponse()
            answer.read()
            nonce = re.search('nonce="(.+?)"', answer.headers['www-authenticate'])[1]
            secret = digests('ann')[1][4:]
            a2 = hashlib.md5(f'GET:{uri}'.encode()).hexdigest()
            response = hashlib.md5(f'{secret}:{nonce}:{a2}'.encode()).hexdigest()
            connection.request('GET', '/', headers={'Authorization': (
                f'Digest username="ann", realm="rtsp-proxy", nonce="{nonce}", uri="{uri}", '
                f'response="{response}"')})
            status = connection.getresponse().status
            connection.close()
            return status

        assert status_of('/') == status_of('/?x=y') == 200
        for uri in '/m1', '//', '', 'http://127.0.0.1/cam':
            assert status_of(uri) == 401, uri


@test
def the_external_check_is_asked_once():
    def answer(_path, asked):
        return (200 if (asked['user'], asked['password']) == ('eve', PASSWORD) else 401), ''

    with WebServer(answer) as server, Many(**{
            'external-auth': {'url': server.base, 'exclude': ['api', 'metrics']},
            'basic-without-tls': 'yes'}) as proxy:
        assert proxy.listed() == (401, [])
        assert len(server.requests) == 1
        asked = server.requests[0][1]
        assert (asked['path'], asked['action'], asked['user'], asked['protocol']) == (
            '', 'read', '', 'http'), asked
        assert proxy.listed(basic('eve'), '?a=b') == (200, sorted(['/cam', *proxy.paths]))
        assert len(server.requests) == 2 and server.requests[1][1]['query'] == 'a=b'
        assert proxy.listed(basic('eve', 'x')) == (401, [])
        assert len(server.requests) == 3


@test
def a_token_lists_its_mounts():
    key = Key(1)
    with WebServer(lambda *_: (200, key_set(key))) as server, Many(
            30, jwt={'jwks': f'{server.base}/jwks'}) as proxy:
        proxy.wait_for_line(r' jwt: 1 keys loaded')
        token = key.token(('read', '/m1'), ('read', '/m2*'), ('playback', '/m3'))
        expected = sorted(path for path in proxy.paths if path == '/m1' or path.startswith('/m2'))
        assert proxy.listed(query=f'?token={token}') == (200, expected)
        assert f'?token={token}"' in proxy.fetch(f'/?token={token}')[2].decode()
        assert proxy.listed({'Authorization': f'Bearer {token}'}) == (200, expected)
        assert proxy.listed(query=f'?token={key.token(("publish", "/m1"))}') == (200, [])
        assert proxy.listed(query=f'?token={token}x') == (401, [])


@test
def the_icon_is_no_secret_and_no_wrong_password():
    with Many(3, users=[user('ann')], **{'basic-without-tls': 'yes'}) as proxy:
        for headers in {}, basic('ann', 'x'), {'Authorization': 'Digest x'}:
            for target in '/favicon.ico', '/favicon.ico?x':
                status, answer, body = proxy.fetch(target, headers)
                assert (status, answer['content-type']) == (200, 'image/svg+xml'), answer
                assert b'<svg ' in body
        assert proxy.fetch('/favicon.ico', method='HEAD')[2] == b''
        assert proxy.fetch('/favicon.icon')[0] == 401
        assert proxy.refused() == 0
        assert not [line for line in proxy.lines if ' refused ' in line]


@test
def a_browser_logs_in_by_digest():
    with Chromium() as browser, Many(3, users=[user('ann')]) as proxy:
        browser.open(proxy.web.replace('//', f'//ann:{PASSWORD}@') + '/')
        browser.wait('document.querySelectorAll("a").length === 4', 20, 'the list is shown')
        assert proxy.refused() == 0


if __name__ == '__main__':
    run()
