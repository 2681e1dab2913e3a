# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mounts that etcd keeps for all members of a cluster."""

import contextlib
import json
import os
import re
import subprocess
import time

from control import CLIP_URI, config
from etcdserver import SECRET, Etcd, Member
from openapi import Contract
from proxy import QUICK, Origin, Read, program, wait_until
from tap import SLOWER, run, test

KEY = '/weir/1/mounts'
CAM = {'upstream': 'publish', **QUICK}
contract = Contract()


def member(name, etcd, mounts=None, **top):
    return Member(name, etcd, mounts, cluster={'mounts': 'yes'}, **top)


@contextlib.contextmanager
def cluster(names='ab', mounts=None):
    """An etcd, and members whose mounts it keeps. Yields (etcd, members)."""
    with contextlib.ExitStack() as stack:
        etcd = stack.enter_context(Etcd())
        members = [stack.enter_context(member(name, etcd, mounts)) for name in names]
        for each in members:
            each.wait_for_members(*names)
        yield etcd, members


def ask(at, method, path, body=None, **headers):
    headers = {name.replace('_', '-'): value for name, value in headers.items()}
    answer = at.http(method, f'/v1/mounts{path}', body, headers)
    contract.check(method, f'/v1/mounts{path}', answer)
    return answer


def change(at, method, path, body=None, status=200, **headers):
    """Makes a change. Returns the ETag."""
    answer = ask(at, method, path, body, **headers)
    assert answer[0] == status, answer
    return answer[1].get('etag')


def shown(at, path):
    """Returns what the member says of a mount in etcd, or None."""
    return next((each for each in at.cluster()['mounts'] if each['path'] == path), None)


def linger(at, path='/cam'):
    status, _, answer = at.http('GET', f'/v1/mounts{path}')
    return answer['config']['linger'] if status == 200 else None


def wait_for_state(at, path, state):
    wait_until(lambda: (shown(at, path) or {}).get('state') == state, 10, f'{path} is {state}')
    contract.check('GET', '/v1/cluster', at.http('GET', '/v1/cluster'))
    return shown(at, path)


@test
def a_change_on_one_member_is_made_on_all():
    with cluster('abc') as (etcd, members):
        a, b, c = members
        begin = time.monotonic()
        first = change(a, 'PUT', '/cam', {**CAM, 'linger': '3s'}, 201)
        wait_until(lambda: all(linger(each) == '3s' for each in members), 10, 'all have the mount')
        assert time.monotonic() - begin < SLOWER, time.monotonic() - begin
        answer = ask(b, 'GET', '/cam')
        assert answer[2]['source'] == 'cluster' and answer[1]['etag'] == first, answer
        second = change(b, 'PATCH', '/cam', {'linger': '4s', 'on-demand': None}, If_Match=first)
        assert second != first
        wait_until(lambda: all(linger(each) == '4s' for each in members), 2 * SLOWER, 'all have the change')
        assert json.loads(etcd.keys()[f'{KEY}/cam']) == {**{k: v for k, v in CAM.items() if k != 'on-demand'},
                                                         'linger': '4s'}
        assert shown(c, '/cam') == {'path': '/cam', 'revision': int(second.strip('"')), 'state': 'served'}
        change(c, 'DELETE', '/cam')
        wait_until(lambda: not any(linger(each) for each in members), 2 * SLOWER, 'the mount is gone')
        assert f'{KEY}/cam' not in etcd.keys()
        ask(a, 'PUT', '/cam?dry-run', CAM)
        assert f'{KEY}/cam' not in etcd.keys()
        answer = ask(a, 'PUT', '/cam', {**CAM, 'lingers': '4s'})
        assert answer[0] == 400 and answer[2]['error']['where'].startswith('body:'), answer
        # One that starts later has them, and so has one that was killed.
        change(a, 'PUT', '/late', CAM, 201)
        with member('d', etcd) as d:
            assert linger(d, '/late')


@test
def a_member_serves_what_another_one_was_told():
    with Origin() as origin, cluster() as (_etcd, (a, b)):
        change(a, 'PUT', '/cam', {'upstream': origin.url, **QUICK}, 201)
        wait_until(lambda: linger(b), 5, 'b has the mount')
        with Read(b.url(), duration=3, expect=origin.expect) as reader:
            reader.result()
        change(a, 'PATCH', '/cam', {'upstreams': [origin.url, 'rtsp://127.0.0.1:1/none']})
        wait_until(lambda: len(ask(b, 'GET', '/cam')[2]['config']['upstreams']) == 2, 5, 'b has both')


@test
def changes_are_compared_with_what_is_there():
    with cluster() as (etcd, (a, b)):
        first = change(a, 'PUT', '/cam', CAM, 201, If_None_Match='*')
        wait_until(lambda: linger(b), 5, 'b has the mount')
        change(b, 'PUT', '/cam', CAM, 412, If_None_Match='*')
        second = change(b, 'PUT', '/cam', {**CAM, 'linger': '9s'}, If_Match=first)
        wait_until(lambda: linger(a) == '9s', 5, 'a has the change')
        for method, body in ('PUT', CAM), ('PATCH', {'linger': '1s'}), ('DELETE', None):
            assert change(a, method, '/cam', body, 412, If_Match=first) == second
        change(a, 'PATCH', '/other', {'linger': '1s'}, 404)
        change(a, 'DELETE', '/other', None, 404)
        change(a, 'PUT', '/other', CAM, 412, If_Match='*')
        # What a member does not know yet counts, too.
        b.signal(19)
        etcd.put(f'{KEY}/cam', json.dumps({**CAM, 'linger': '8s'}))
        b.signal(18)
        answers = {ask(b, 'PUT', '/cam', {**CAM, 'linger': '7s'}, If_Match=second)[0] for _ in range(3)}
        assert answers == {412}, answers
        wait_until(lambda: linger(b) == '8s', 5, 'b has the change')


@test
def many_change_one_mount_at_once():
    """each change that was confirmed is in the mount"""
    with cluster() as (etcd, (a, b)):
        change(a, 'PUT', '/cam', {**CAM, 'priority': 0}, 201)
        wait_until(lambda: linger(b), 5, 'b has the mount')
        done = 0
        for i in range(40):
            at = (a, b)[i % 2]
            now = ask(at, 'GET', '/cam')
            done += ask(at, 'PATCH', '/cam', {'max-readers': done + 1}, If_Match=now[1]['etag'])[0] == 200
            assert json.loads(etcd.keys()[f'{KEY}/cam'])['max-readers'] == done
        assert done > 10, done


@test
def the_mount_of_a_file_wins_on_its_member():
    own = {'/cam': {'upstream': 'publish', 'linger': '2s'}}
    with Etcd() as etcd, member('a', etcd, own) as a, member('b', etcd) as b:
        a.wait_for_members('a', 'b')
        change(b, 'PUT', '/cam', {**CAM, 'linger': '9s'}, 201)
        wait_for_state(a, '/cam', 'in-file')
        assert linger(a) == '2s' and ask(a, 'GET', '/cam')[2]['source'] == 'file'
        for method, body in ('PUT', CAM), ('PATCH', {'linger': '1s'}), ('DELETE', None):
            answer = ask(a, method, '/cam', body)
            assert answer[0] == 409 and 'file' in answer[2]['error']['message'], answer
        # The file drops it, and takes it again.
        top = {'cluster': {'etcd': [etcd.url], 'name': 'a', 'address': '127.0.0.1', 'secret': SECRET,
                           'mounts': 'yes'}}
        a.hang_up(config({'/else': CAM}, **top))
        wait_until(lambda: linger(a) == '9s', 5, 'a has the mount of etcd')
        a.hang_up(config(own, **top))
        wait_for_state(a, '/cam', 'in-file')
        assert linger(a) == '2s' and linger(b) == '9s'


WRONG = {
    '/unknown': ('{"upstream": "publish", "lingers": "1s"}', 'unknown key "lingers"'),
    '/half': ('{"upstream": "pub', 'not a JSON object'),
    '/list': ('[]', 'not a JSON object'),
    '/twice': ('{"upstream": "publish", "upstream": "publish"}', 'not a JSON object'),
    '/none': ('{}', 'upstream is missing'),
    '/run': ('{"upstream": "launch:videotestsrc"}', 'launch'),
    '/etc': ('{"upstream": "file:///etc/passwd"}', 'file-roots'),
    '/inputs': ('{"inputs": ["/nothing", "/good"], "pipeline": ["pull", "picture-in-picture", "transcode"]}', '/nothing'),
    '/large': ('{"upstream": "publish", "x": "' + 70000 * 'y' + '"}', 'at most 65536 bytes'),
    '/binary': ('{"upstream": "\0"}', 'not a JSON object'),
}


@test
def a_mount_that_is_wrong_stops_nobody():
    with Etcd() as etcd:
        for path, (value, _) in WRONG.items():
            etcd.put(KEY + path, value)
        for path in '/a/', '//', '/a b', '/' + 300 * 'a', '/{x}', '/q"':
            etcd.put(KEY + path, json.dumps(CAM))
        etcd.put(KEY + '/good', json.dumps(CAM))
        with member('a', etcd) as a:
            assert linger(a, '/good')
            for path, (_, words) in WRONG.items():
                seen = wait_for_state(a, path, 'wrong')
                assert words in seen['problem'], seen
                assert a.http('GET', f'/v1/mounts{path}')[0] == 404
            assert {each['path'] for each in a.cluster()['mounts']} == {*WRONG, '/good'}, a.cluster()
            a.wait_for_line(r'cluster: the mount /\w+ in etcd is wrong, and is not served: ')
            a.wait_for_line(r'cluster: a mount in etcd is not served: ')
            text = subprocess.run([program(), 'cluster', f'http://127.0.0.1:{a.api_port}'],
                                  capture_output=True, text=True, timeout=30, check=True).stdout
            assert re.search(r'^/none +wrong +.*upstream is missing', text, re.M), text
            # Nobody needs etcdctl to mend that.
            change(a, 'PATCH', '/half', {'linger': '1s'}, 409)
            change(a, 'PATCH', '/none', {'upstream': 'publish'})
            assert linger(a, '/none')
            change(a, 'PUT', '/half', CAM)
            change(a, 'DELETE', '/large')
            assert shown(a, '/large') is None and shown(a, '/half')['state'] == 'served'
            # A mount that becomes wrong stays as it was.
            etcd.put(KEY + '/good', '{"upstream": "publish", "of-a-later-version": 1}')
            wait_for_state(a, '/good', 'wrong')
            assert linger(a, '/good')
            a.wait_for_line(r'cluster: the mount /good in etcd is wrong, and stays as it was: ')
            etcd.put(KEY + '/good', json.dumps({**CAM, 'linger': '7s'}))
            wait_until(lambda: linger(a, '/good') == '7s', 5, 'the mount is right again')


@test
def a_mount_may_come_before_its_inputs():
    with Etcd() as etcd:
        etcd.put(KEY + '/both', json.dumps({'inputs': ['/one', '/two'], 'pipeline': ['pull', 'picture-in-picture', 'transcode']}))
        etcd.put(KEY + '/one', json.dumps({'upstream': CLIP_URI}))
        with member('a', etcd) as a:
            wait_for_state(a, '/both', 'wrong')
            change(a, 'PUT', '/two', {'upstream': CLIP_URI}, 201)
            wait_for_state(a, '/both', 'served')
            answer = ask(a, 'DELETE', '/two')
            assert answer[0] == 409 and '/both' in answer[2]['error']['message'], answer


@test
def etcd_stops_and_comes_back():
    """the mounts stay, and an etcd that has lost them gets them again"""
    with contextlib.ExitStack() as stack:
        etcd, (a, b) = stack.enter_context(cluster())
        for i in range(30):
            change(a, 'PUT', f'/cam{i}', CAM, 201)
        wait_until(lambda: linger(b, '/cam29'), 5, 'b has the mounts')
        etcd.kill()
        wait_until(lambda: a.cluster()['problem'], 5, 'a misses etcd')
        answer = ask(a, 'PUT', '/cam0', {**CAM, 'linger': '9s'})
        assert answer[0] == 503 and linger(a, '/cam0') != '9s', answer
        second = stack.enter_context(Etcd(after=etcd, empty=True))
        wait_until(lambda: sum(key.startswith(KEY) for key in second.keys()) == 30, 15, 'etcd has the mounts')
        assert linger(a, '/cam29') and linger(b, '/cam29')
        # One that is deleted now is deleted, and what is missing after another break, too.
        wait_until(lambda: a.cluster()['whole'] and b.cluster()['whole'], 10, 'both know all')
        change(b, 'DELETE', '/cam1')
        wait_until(lambda: not linger(a, '/cam1'), 5, 'the mount is gone')
        b.signal(19)
        second.delete(f'{KEY}/cam2')
        wait_until(lambda: not linger(a, '/cam2'), 5, 'the mount is gone')
        second.kill()
        stack.enter_context(Etcd(after=second))
        b.signal(18)
        wait_until(lambda: not linger(b, '/cam2'), 15, 'b knows it')
        time.sleep(1)
        assert not linger(a, '/cam2')


@test
def members_may_keep_their_own_mounts():
    """one without the key has nothing of etcd's mounts"""
    with Etcd() as etcd, member('a', etcd) as a, Member('b', etcd) as b:
        a.wait_for_members('a', 'b')
        change(a, 'PUT', '/cam', CAM, 201)
        change(b, 'PUT', '/own', CAM, 201)
        assert ask(b, 'GET', '/own')[2]['source'] == 'api' and linger(b) is None
        assert f'{KEY}/own' not in etcd.keys() and b.cluster()['mounts'] == []


if __name__ == '__main__':
    run()
