# SPDX-License-Identifier: LGPL-2.1-or-later
"""Members of a cluster that are full or drain send new readers to others."""

import contextlib
import http.client
import os
import shutil
import tempfile

from clips import clip
from etcdserver import Etcd, Member
from proc import Rtsp, free_port
from proxy import CLIP, QUICK, Origin, Read, wait_until
from tap import run, test
from webrtcproxy import SDP, offer

PATIENT = {'start-timeout': '30s', 'connect-timeout': '30s', 'read-timeout': '30s', 'linger': '200ms'}


def describe(member, url=None):
    """Returns the status of a DESCRIBE, and its Location."""
    with Rtsp(member.port) as rtsp:
        status, headers, _ = rtsp.request('DESCRIBE', url or member.url())
    return status, headers.get('location')


@contextlib.contextmanager
def cluster(names, mounts, web=False):
    """Members that know each other. Yields them by their names."""
    with contextlib.ExitStack() as stack:
        etcd = stack.enter_context(Etcd())
        members = []
        for name in names:
            port = free_port()
            top = {'http': {'listen': f'127.0.0.1:{port}'}, 'webrtc': {'listen': '127.0.0.1:0'}} if web else {}
            members.append(stack.enter_context(Member(name, etcd, mounts, **top)))
            members[-1].web_port = port
        for member in members:
            member.wait_for_members(*names)
        yield members


def wait_for_reader(member, number=1):
    wait_until(lambda: len(member.get('/v1/readers')['readers']) >= number, 15, f'{member.name} has its reader')


def check_metrics(a, b):
    for member in a, b:
        for name, value in {'joined': 1, 'etcd': 1, 'members': 3, 'wrong_mounts': 0}.items():
            assert member.metric(f'cluster_{name}') == value, (member.name, name)
    assert a.metric('cluster_moved_readers_total{cause="full"}') >= 3
    assert a.metric('cluster_moved_readers_total{cause="drains"}') == 0
    assert a.metric('cluster_revision') > 3
    assert a.metric('cluster_streams_read') == 0 and b.metric('cluster_streams_owned') == 0


@test
def a_full_member_sends_a_reader_on_once():
    with Origin() as origin:
        mounts = {'/cam': {'upstream': origin.url, **QUICK, 'max-readers': 1}}
        with cluster('abc', mounts) as (a, b, c):
            with Read(a.url(), duration=25):
                wait_for_reader(a)
                # The place of c is taken first, so that b has most room.
                with Read(c.url(), duration=25):
                    wait_for_reader(c)
                    wait_until(lambda: a.cluster()['members'][2]['readers'] == 1, 10, 'a knows of the reader of c')
                    wait_until(lambda: describe(a) == (302, b.url('/cam?moved')), 10, 'a sends to b')
                    answer = describe(a, a.url('/cam?token=x%2Fy'))
                    assert answer == (302, b.url('/cam?token=x%2Fy&moved')), answer
                    # Who follows plays, and its connection to the camera is shared, although a is full.
                    with Read(a.url(), duration=4) as reader:
                        wait_for_reader(b)
                        assert a.metric('cluster_streams_owned') == 1 and b.metric('cluster_streams_read') == 1
                        # All are full: who was sent on once is refused.
                        status, to = describe(a)
                        assert status == 302 and to.endswith('?moved'), to
                        assert describe(b, b.url('/cam?moved')) == (200, None)
                        with Read(b.url('/cam?moved'), duration=2) as refused:
                            result = refused.result(None)
                            assert result['readers'][0]['status'] != 'ok', result
                        total = reader.result()['totals']
                        assert total['ok'] == 1 and total['lost'] == 0, total
            assert origin.count('play') == 1, origin.lines
            check_metrics(a, b)


@test
def without_another_member_a_full_one_refuses():
    with Origin() as origin:
        mounts = {'/cam': {'upstream': origin.url, **QUICK, 'max-readers': 1}}
        with cluster('a', mounts) as (a,), Read(a.url(), duration=6):
            wait_for_reader(a)
            assert describe(a) == (200, None)
            with Read(a.url(), duration=2) as refused:
                assert refused.result(None)['readers'][0]['status'] != 'ok'


def fetch(member, path, method='GET', body=None, **headers):
    """Returns the status, the Location and the body of an answer."""
    connection = http.client.HTTPConnection('127.0.0.1', member.web_port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace('_', '-'): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.getheader('Location'), answer.read()
    finally:
        connection.close()


def begin(member, path='/hls/cam/index.m3u8'):
    """Begins an HLS session. Returns the path of its playlist."""
    status, _, body = fetch(member, path)
    assert status == 200, (status, body)
    return '/hls/cam/' + next(line for line in body.decode().splitlines() if not line.startswith('#'))


@test
def over_http_too():
    """307 for HLS, WHEP, MPEG-TS and titles, while a member drains; who watches stays"""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CLIP, os.path.join(folder, 'a.mp4'))
        mounts = {'/cam': {'upstream': f'file://{clip(1, 20)}', **PATIENT}, '/films': {'upstream': f'file://{folder}/'}}
        with cluster('ab', mounts, web=True) as (a, b):
            playlist = begin(a)
            assert fetch(a, playlist)[0] == 200
            assert a.http('POST', '/v1/drain')[2]['to'] == 'b'
            there = f'http://127.0.0.1:{b.web_port}'
            for path in ('/hls/cam/index.m3u8', '/hls/cam/plain.m3u8?a=b', '/ts/cam?token=x%2Fy', '/films/a.mp4'):
                answer = fetch(a, path)
                assert answer[:2] == (307, there + path), (path, answer[:2])
            assert fetch(a, '/cam/whep', 'POST', offer(), Content_Type=SDP)[:2] == (307, f'{there}/cam/whep')
            assert fetch(a, '/hls/none/index.m3u8')[0] in (307, 404)
            # Who watches here goes on here, and who was sent there is served there.
            assert fetch(a, playlist)[0] == 200
            assert fetch(a, '/watch/cam')[0] == 200
            begin(b)
            answer = fetch(b, '/cam/whep', 'POST', offer(), Content_Type=SDP)
            assert answer[0] == 201, answer
            answer = fetch(b, '/films/a.mp4', Range='bytes=0-99')
            assert answer[0] == 206, answer


@test
def a_mount_without_room_sends_on_over_http():
    mounts = {'/cam': {'upstream': f'file://{clip(1, 20)}', **PATIENT, 'max-readers': 1}}
    with cluster('ab', mounts, web=True) as (a, b):
        begin(a)
        there = f'http://127.0.0.1:{b.web_port}'
        for path, to in (('/hls/cam/index.m3u8', '/hls/cam/index.m3u8?moved'),
                         ('/hls/cam/plain.m3u8?a=b', '/hls/cam/plain.m3u8?a=b&moved'), ('/ts/cam', '/ts/cam?moved')):
            wait_until(lambda at=path: fetch(a, at)[0] == 307, 10, 'a sends to b')
            assert fetch(a, path)[1] == there + to, path
        answer = fetch(a, '/cam/whep', 'POST', offer(), Content_Type=SDP)
        assert answer[:2] == (307, f'{there}/cam/whep?moved'), answer[:2]
        # The mark is no choice of the mount, and a reader with it is sent nowhere.
        begin(b, '/hls/cam/index.m3u8?moved')
        assert fetch(b, '/hls/cam/index.m3u8?moved')[0] == 503
        assert fetch(a, '/hls/cam/index.m3u8?moved')[0] == 503


if __name__ == '__main__':
    run()
