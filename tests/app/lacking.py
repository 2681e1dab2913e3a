# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount that lacks something of this machine is down, and the rest of the proxy serves."""

import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from control import CLIP_URI, Controlled, Watch, config
from proc import Rtsp
from proxy import CLIP, environment, matches, program, wait_until
from tap import SLOWER, run, test

USERS = [{'name': 'any', 'permissions': [
    {'action': 'read'}, {'action': 'playback', 'path': '/vod/*'}, {'action': 'api'},
    {'action': 'metrics'}]}]


def mounts_in(folder):
    """Mounts each of which needs something in `folder`, and one that needs nothing."""
    return {
        '/ok': {'upstream': CLIP_URI},
        '/record': {'upstream': CLIP_URI, 'record': {'folder': f'{folder}/record'}},
        '/password': {'upstream': 'rtsp://127.0.0.1:1/cam', 'user': 'viewer',
                      'password-file': f'{folder}/password'},
        '/vod': {'upstream': f'file://{folder}/vod/'},
        '/clip': {'upstream': f'file://{folder}/clip.mp4'},
        '/slate': {'upstream': 'rtsp://127.0.0.1:1/cam', 'slate': f'{folder}/slate.mp4'},
        '/cache': {'upstream': CLIP_URI, 'cache': {'time': '10s', 'spill': f'{folder}/spill'}},
        '/two': {'upstreams': [f'file://{folder}/clip.mp4', CLIP_URI],
                 'record': {'folder': f'{folder}/record'}},
    }


def make(folder):
    """Makes all of it."""
    for name in 'record', 'vod', 'spill':
        os.mkdir(f'{folder}/{name}')
    for name in 'clip.mp4', 'slate.mp4', 'vod/a.mp4':
        shutil.copy(CLIP, f'{folder}/{name}')
    with open(f'{folder}/password', 'w', encoding='ascii') as file:
        file.write('secret\n')


def states(proxy):
    return {mount['path']: mount['state'] for mount in proxy.get('/v1/mounts')['mounts']}


def describe(proxy, path):
    with Rtsp(proxy.port) as rtsp:
        return rtsp.request('DESCRIBE', proxy.url(path))[0]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@test
def mounts_that_lack_something_are_down_and_come_up_by_themselves():
    with tempfile.TemporaryDirectory() as folder:
        mounts = mounts_in(folder)
        lacking = set(mounts) - {'/ok'}
        with Controlled(mounts, users=USERS, http={'listen': '127.0.0.1:0'}) as proxy:
            http = proxy.wait_for_line(r' live mounts and titles (http://\S+)')[1]
            with Watch(proxy, '/ok') as reader:
                now = states(proxy)
                assert {path for path in now if now[path] == 'down'} == lacking, now
                for path, what in (('/record', f'cannot write to the folder {folder}/record'),
                                   ('/password', f'{folder}/password'),
                                   ('/vod', f'no such folder: {folder}/vod/'),
                                   ('/slate', f'slate: no such file: {folder}/slate.mp4'),
                                   ('/two', f'no such file: {folder}/clip.mp4'),
                                   ('/two', f'cannot write to the folder {folder}/record')):
                    shown = proxy.get(f'/v1/mounts{path}')['upstreams']
                    assert len(shown) == 1 and shown[0]['state'] == 'down', shown
                    assert what in shown[0]['reason'] and 'proxy.yaml:' in shown[0]['reason'], shown
                    assert shown[0]['failed'].startswith('20'), shown
                # They need an operator, so they do not take the whole proxy out of service.
                assert proxy.get('/v1/ready')['ready']
                assert describe(proxy, '/record') == 503 and describe(proxy, '/vod/a.mp4') == 503
                assert get(f'{http}/vod/a.mp4') == 503
                assert get(f'{http}/hls/record/index.m3u8') == 503
                assert proxy.http('PATCH', '/v1/mounts/record', {'linger': '3s'})[0] == 409
                make(folder)
                for path in sorted(lacking):
                    proxy.wait_for_line(rf' mount {path} added$', 60)
                wait_until(lambda: 'down' not in [states(proxy)[path] for path in ('/record', '/two')],
                           20, 'they are up')
                with Watch(proxy, '/vod/a.mp4'), Watch(proxy, '/record'), Watch(proxy, '/slate'):
                    pass
                reader.take(100)
            assert not matches(proxy, r' mount /ok (removed|changed|added)')


@test
def the_check_of_the_file_names_all_of_it():
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/proxy.yaml'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(config(mounts_in(folder)))
        got = subprocess.run([program(), '--config', path, '--check-config'], env=environment(),
                             capture_output=True, text=True, timeout=60 * SLOWER, check=False)
        assert got.returncode == 2 and len(got.stderr.splitlines()) == 8, got
        make(folder)
        got = subprocess.run([program(), '--config', path, '--check-config'], env=environment(),
                             capture_output=True, text=True, timeout=60 * SLOWER, check=False)
        assert got.returncode == 0, got


@test
def a_mistake_in_the_same_mount_still_ends_the_start():
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/proxy.yaml'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(config({'/ok': {'upstream': CLIP_URI}, '/bad': {
                'upstream': f'file://{folder}/none.mp4', 'linger': 'long'}}))
        got = subprocess.run([program(), '--config', path], env=environment(), capture_output=True,
                             text=True, timeout=60 * SLOWER, check=False)
        assert got.returncode == 2 and 'linger' in got.stderr and 'none.mp4' in got.stderr, got


@test
def what_the_api_has_replaced_stays():
    with tempfile.TemporaryDirectory() as folder:
        mounts = {'/cam': {'upstream': f'file://{folder}/clip.mp4'},
                  '/other': {'upstream': f'file://{folder}/clip.mp4'}}
        with Controlled(mounts) as proxy:
            url = 'rtsp://127.0.0.1:1/by-the-api'
            assert proxy.http('PUT', '/v1/mounts/cam', {'upstream': url})[0] == 200
            shutil.copy(CLIP, f'{folder}/clip.mp4')
            proxy.wait_for_line(r' mount /other added$', 60)
            assert proxy.get('/v1/mounts/cam')['config']['upstreams'] == [url]
            assert proxy.get('/v1/mounts/other')['state'] != 'down'


@test
def a_reload_keeps_what_runs_and_changes_it_later():
    with tempfile.TemporaryDirectory() as folder:
        with Controlled({'/cam': {'upstream': CLIP_URI}}) as proxy, Watch(proxy, '/cam') as reader:
            new = {'/cam': {'upstream': CLIP_URI, 'record': {'folder': f'{folder}/record'}}}
            assert proxy.hang_up(config(new)) == 'reloaded: 0 changed, 1 unchanged'
            assert matches(proxy, r' reload: mount /cam stays as it is, as it now lacks something: ')
            reader.take()
            os.mkdir(f'{folder}/record')
            proxy.wait_for_line(r' mount /cam changed$', 60)
            wait_until(lambda: proxy.get('/v1/mounts/cam').get('recording', {}).get('state') == 'recording',
                       20, 'it records')
            reader.take()
            # A reload to the same file has nothing to do.
            assert proxy.hang_up(config(new)) == 'reloaded: 0 changed, 1 unchanged'


if __name__ == '__main__':
    run()
