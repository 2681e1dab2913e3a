# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files and folders that API clients name: only below the folders of `file-roots`."""

import contextlib
import http.client
import os
import shutil
import subprocess
import tempfile

from control import Controlled, Watch
from proc import Rtsp, open_files
from proxy import CLIP
from tap import run, test

NOWHERE = 'rtsp://127.0.0.1:9/x'
SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 5000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n'
WEB = {'listen': '127.0.0.1:0'}


@contextlib.contextmanager
def folders():
    """Makes a folder `in` with a clip, a description, a certificate and a folder of titles, the same in
    `out`, and links. Returns the folder of both."""
    with tempfile.TemporaryDirectory() as top:
        for place in 'in', 'out', 'inside':
            os.makedirs(f'{top}/{place}/films/sub')
            shutil.copy(CLIP, f'{top}/{place}/clip.mp4')
            shutil.copy(CLIP, f'{top}/{place}/films/a.mp4')
            with open(f'{top}/{place}/a.sdp', 'w', encoding='ascii') as file:
                file.write(SDP)
            subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=x', '-keyout',
                            '/dev/null', '-out', f'{top}/{place}/ca.pem'], check=True, stderr=subprocess.DEVNULL)
        os.symlink('../out', f'{top}/in/link')
        os.symlink(f'{top}/out', f'{top}/in/absolute')
        os.symlink('/proc/self/root', f'{top}/in/magic')
        os.symlink('films', f'{top}/in/near')
        yield top


def named(folder):
    """Yields bodies that name a file or a folder."""
    yield 'upstream', {'upstream': f'file://{folder}/clip.mp4'}
    yield 'upstream', {'upstream': f'file://{folder}/films/'}
    yield 'upstreams', {'upstreams': [NOWHERE, f'file://{folder}/clip.mp4']}
    yield 'upstream', {'upstream': f'sdp://{folder}/a.sdp'}
    yield 'slate', {'upstream': NOWHERE, 'slate': f'{folder}/clip.mp4'}
    yield 'cache', {'upstream': NOWHERE, 'cache': {'time': '5s', 'spill': f'{folder}/films'}}
    yield 'tls-ca', {'upstream': 'rtsps://127.0.0.1:9/x', 'tls-ca': f'{folder}/ca.pem'}


def refused(proxy, body, method='PUT', path='/v1/mounts/new'):
    status, _, answer = proxy.http(method, path, body)
    assert status == 400, (body, status, answer)
    assert answer['error']['where'].startswith('body:'), answer
    return answer['error']['message']


def fetch(proxy, path):
    connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=30)
    connection.request('GET', path)
    answer = connection.getresponse()
    status, _ = answer.status, answer.read()
    connection.close()
    return status


def described(proxy, path):
    with Rtsp(proxy.port) as rtsp:
        return rtsp.request('DESCRIBE', proxy.url(path))[0]


class Rooted(Controlled):
    def __init__(self, mounts, roots, **top):
        super().__init__(mounts, http=WEB, **{'file-roots': roots}, **top)
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])


@test
def without_file_roots_no_file_can_be_named():
    """the answer is the same whether the file is there or not, and mounts of the file are not limited"""
    with folders() as top, Rooted({'/cam': {'upstream': f'file://{top}/out/clip.mp4', 'slate': f'{top}/out/clip.mp4'}},
                                  []) as proxy:
        for key, body in [*named(f'{top}/in'), *named(f'{top}/nothing'), *named(''),
                          ('upstream', {'upstream': 'file:///etc/'}), ('upstream', {'upstream': 'file:///'}),
                          ('upstream', {'upstream': 'store:///etc/'}), ('slate', {'upstream': NOWHERE, 'slate': 'x'})]:
            for method, path in ('PUT', '/v1/mounts/new'), ('PATCH', '/v1/mounts/cam'):
                message = refused(proxy, body, method, path)
                assert key.split('.')[0] in message or 'spill' in message, (key, message)
                assert '`file-roots`' in message and 'such file' not in message, message
        assert proxy.http('PATCH', '/v1/mounts/cam', {'priority': 1})[0] == 200
        with Watch(proxy) as reader:
            reader.take()
        assert [mount['path'] for mount in proxy.get('/v1/mounts')['mounts']] == ['/cam']


@test
def only_what_is_below_file_roots_can_be_named():
    with folders() as top, Rooted({'/cam': {'upstream': NOWHERE}}, [f'{top}/in', '/nowhere/at/all']) as proxy:
        for place in ('out', 'inside', 'in/../out', 'in/link', 'in/absolute', f'in/magic{top}/in', 'in/films/../../out',
                      f'in/magic{top}/out', '../..', 'in/nothing'):
            for _, body in named(f'{top}/{place}'):
                for method, path in ('PUT', '/v1/mounts/new'), ('PATCH', '/v1/mounts/cam'):
                    message = refused(proxy, body, method, path)
                    assert 'file-roots' in message or place == 'in/nothing', (place, message)
        for uri in f'file://{top}/in/%2e%2e/out/clip.mp4', f'store://{top}/out/films/', f'store://{top}/in/link/films/':
            assert 'file-roots' in refused(proxy, {'upstream': uri}), uri
        message = refused(proxy, {'upstream': f'store://{top}/in/films/'}) # it is no store
        assert 'file-roots' not in message, message
        for _, body in [*named(f'{top}/in'), *named(f'{top}/in/near/..'),
                        ('', {'upstream': f'file://{top}/in/near/'}), ('', {'upstream': f'file://{top}/in/'})]:
            status, _, answer = proxy.http('PUT', '/v1/mounts/new', body)
            assert status in (200, 201), (body, answer)
            assert proxy.http('DELETE', '/v1/mounts/new')[0] == 200


@test(timeout=90)
def what_is_named_is_served():
    with folders() as top, Rooted({'/cam': {'upstream': NOWHERE}}, [f'{top}/in/']) as proxy:
        assert proxy.http('PUT', '/v1/mounts/films', {'upstream': f'file://{top}/in/films/'})[0] == 201
        assert fetch(proxy, '/films/a.mp4') == 200 and described(proxy, '/films/a.mp4') == 200
        for path, body in [('/clip', {'upstream': f'file://{top}/in/clip.mp4'}),
                           ('/slate', {'upstream': NOWHERE, 'slate': f'{top}/in/clip.mp4'}),
                           ('/spill', {'upstream': f'file://{top}/in/clip.mp4',
                                       'cache': {'time': '5s', 'spill': f'{top}/in/films'}})]:
            assert proxy.http('PUT', f'/v1/mounts{path}', body)[0] == 201, path
            with Watch(proxy, path) as reader:
                reader.take()
                if path == '/spill':
                    used = list(open_files(proxy.pid))
                    assert any(name.startswith(f'{top}/in/films/') for name in used), used
            # A change of another key keeps the limits, and the files.
            assert proxy.http('PATCH', f'/v1/mounts{path}', {'linger': '1s'})[0] == 200, path


@test(timeout=90)
def a_path_that_changes_leads_nowhere_else():
    """a folder that becomes a link, after the API client has named it"""
    with folders() as top, Rooted({'/cam': {'upstream': NOWHERE}}, [f'{top}/in']) as proxy:
        mounts = {'/films': {'upstream': f'file://{top}/in/films/'}, '/clip': {'upstream': f'file://{top}/in/films/a.mp4'},
                  '/slate': {'upstream': NOWHERE, 'slate': f'{top}/in/films/a.mp4'},
                  '/sdp': {'upstream': f'sdp://{top}/in/a.sdp'}}
        for path, body in mounts.items():
            assert proxy.http('PUT', f'/v1/mounts{path}', {**body, 'start-timeout': '2s'})[0] == 201, path
        os.rename(f'{top}/in/films', f'{top}/in/before')
        os.rename(f'{top}/in/a.sdp', f'{top}/in/before.sdp')
        os.symlink(f'{top}/out/films', f'{top}/in/films')
        os.symlink(f'{top}/out/a.sdp', f'{top}/in/a.sdp')
        assert fetch(proxy, '/films/a.mp4') == 404 and described(proxy, '/films/a.mp4') == 404
        proxy.wait_for_line(r'title refused: a.mp4 in \S+: the folder is not below `file-roots`')
        for path in '/clip', '/slate', '/sdp':
            assert described(proxy, path) in (404, 503), path
        opened = list(open_files(proxy.pid))
        assert not [name for name in opened if name.startswith(f'{top}/out')], opened
        os.unlink(f'{top}/in/films')
        os.rename(f'{top}/in/before', f'{top}/in/films')
        assert fetch(proxy, '/films/a.mp4') == 200


@test
def a_reload_changes_file_roots():
    with folders() as top, Rooted({'/cam': {'upstream': NOWHERE}}, [f'{top}/in']) as proxy:
        body = {'upstream': f'file://{top}/in/films/'}
        assert proxy.http('PUT', '/v1/mounts/films', body)[0] == 201 and fetch(proxy, '/films/a.mp4') == 200
        with open(proxy.file, encoding='utf-8') as file:
            text = file.read()
        assert 'reloaded' in proxy.hang_up(text.replace(f'{top}/in', f'{top}/out'))
        assert fetch(proxy, '/films/a.mp4') == 404
        refused(proxy, body)


if __name__ == '__main__':
    run()
