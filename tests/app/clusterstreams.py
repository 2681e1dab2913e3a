# SPDX-License-Identifier: LGPL-2.1-or-later
"""Members of a cluster share the upstreams of their mounts."""

import contextlib
import json
import re
import signal
import subprocess
import threading
import time

from clips import clip
from etcdserver import Etcd, Member, publishing
from proc import Rtsp, free_port
from openapi import Contract
from proxy import QUICK, Origin, Read, matches, program, wait_until
from tap import SLOWER, run, test


def camera(origin, **settings):
    return {'/cam': {'upstream': origin.url, **QUICK, 'read-timeout': '3s', **settings}}


def stream(member, path='/cam'):
    return next((each for each in member.cluster()['streams'] if each['path'] == path), None)


def owner(member, path='/cam'):
    found = stream(member, path)
    return found and found['owner']


def connections(origin):
    """Returns how many sessions of the origin play now."""
    return origin.count('play') - origin.count('teardown')


@contextlib.contextmanager
def cluster(names='abc', mounts=None, gop=1, **settings):
    """An etcd, a camera and members, which know each other. Yields (etcd, camera, members by name)."""
    with contextlib.ExitStack() as stack:
        etcd = stack.enter_context(Etcd())
        origin = stack.enter_context(Origin(clip=clip(gop, 20)))
        members = {name: stack.enter_context(Member(name, etcd, mounts or camera(origin, **settings)))
                   for name in names}
        for member in members.values():
            member.wait_for_members(*names)
        yield etcd, origin, members


def check_continuous(result, readers=1):
    """Checks that each reader stayed, and that its numbers have no gap and no jump."""
    total = result['totals']
    assert total['readers'] == readers and total['ok'] == readers, result
    for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward'):
        assert total[key] == 0, (key, total)


@test
def one_member_reads_the_camera_for_all():
    with cluster() as (_etcd, origin, members):
        with contextlib.ExitStack() as stack:
            readers = []
            for name in 'abc':
                readers.append(stack.enter_context(Read(members[name].url(), duration=8, expect=origin.expect)))
                members[name].wait_for_line(r' reader \S+ in: ', 15)
            for member in members.values():
                wait_until(lambda at=member: owner(at) == 'a', 5, 'a owns the stream')
            shown = subprocess.run([program(), 'cluster', f'http://127.0.0.1:{members["b"].api_port}'],
                                   capture_output=True, text=True, timeout=30, check=True).stdout
            assert re.search(r'^/cam +a +b from a  c from a$', shown, re.M), shown
            Contract().check('GET', '/v1/cluster', members['b'].http('GET', '/v1/cluster'))
            seen = stream(members['c'])
            assert seen['readers'] == [{'member': 'b', 'from': 'a'}, {'member': 'c', 'from': 'a'}], seen
            for reader in readers:
                check_continuous(reader.result())
        assert origin.count('play') == 1, origin.lines
        # Nobody needs it any more, and the keys go.
        wait_until(lambda: stream(members['a']) is None, 10, 'the stream is let go')


@contextlib.contextmanager
def reading(members, names, duration, **words):
    """Readers of these members, which play, in this order."""
    with contextlib.ExitStack() as stack:
        readers = {}
        for name in names:
            readers[name] = stack.enter_context(Read(members[name].url(), duration=duration, **words))
            wait_for_reader(members[name])
        yield readers


def wait_for_reader(member, number=1):
    wait_until(lambda: len(matches(member, r' reader \S+ in: ')) >= number, 15, f'{member.name} has its reader')


def longest_gap(result):
    """Returns the longest time without a packet of a track, in s."""
    return max(track['max_gap_ms'] for reader in result['readers']
               for track in reader['tracks'].values()) / 1000


@test
def the_owner_is_killed():
    with cluster() as (_etcd, origin, members), reading(members, 'abc', 16) as readers:
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        time.sleep(1)
        members['a'].kill()
        # b comes next, before a's lease has run out, and c reads from b.
        wait_until(lambda: owner(members['b']) == 'b' and owner(members['c']) == 'b', 12,
                   'b owns the stream')
        wait_until(lambda: stream(members['b'])['readers'] == [{'member': 'c', 'from': 'b'}], 5,
                   'c reads from b')
        for name in 'bc':
            result = readers[name].result()
            check_continuous(result)
            assert longest_gap(result) < 2 * SLOWER, longest_gap(result)
        assert origin.count('play') == 2, origin.lines


@test
def the_owner_hangs():
    """an owner that is cut off or hangs is replaced, and follows when it is back"""
    with cluster() as (_etcd, origin, members), reading(members, 'abc', 22) as readers:
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        time.sleep(1)
        members['a'].signal(signal.SIGSTOP)
        wait_until(lambda: owner(members['b']) == 'b' and owner(members['c']) == 'b', 12,
                   'b owns the stream')
        members['a'].signal(signal.SIGCONT)
        wait_until(lambda: members['a'].cluster()['joined'] and owner(members['a']) == 'b', 10,
                   'a knows that it is no owner')
        for name in 'bc':
            result = readers[name].result()
            check_continuous(result)
            assert longest_gap(result) < 3 * SLOWER, longest_gap(result)
        result = readers['a'].result(None)
        assert result['readers'][0]['status'] == 'ok', result
        assert origin.count('play') == 2, origin.lines


@test
def ownership_passes_to_another_member():
    """an owner whose key is deleted follows the next one, and nobody misses a picture"""
    with cluster(gop=5) as (etcd, origin, members), reading(members, 'abc', 24) as readers:
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        time.sleep(1)
        etcd.delete('/weir/1/owners/cam')
        wait_until(lambda: owner(members['a']) == 'b', 10, 'b owns the stream')
        wait_until(lambda: [each['from'] for each in stream(members['a'])['readers']] == ['b', 'b'], 10,
                   'a and c read from b')
        for reader in readers.values():
            result = reader.result()
            check_continuous(result)
            # b has no picture of its own before the camera's next keyframe, and stays with a until then.
            assert longest_gap(result) < 2.5, longest_gap(result)
        assert origin.count('play') == 2, origin.lines


@test
def a_member_drains_before_it_ends():
    """at SIGTERM the others take over, and miss no packet"""
    with cluster() as (_etcd, origin, members), reading(members, 'abc', 14) as readers:
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        time.sleep(1)
        members['a'].signal(signal.SIGTERM)
        assert members['a'].wait(15) == 0
        wait_until(lambda: owner(members['b']) == 'b' and owner(members['c']) == 'b', 12, 'b owns the stream')
        for name in 'bc':
            result = readers[name].result()
            check_continuous(result)
            assert longest_gap(result) < SLOWER, longest_gap(result)
        assert origin.count('play') == 2, origin.lines


@test
def new_readers_go_elsewhere_while_a_member_drains():
    with cluster() as (_etcd, origin, members), reading(members, 'ab', 14) as readers:
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        answer = members['a'].http('POST', '/v1/drain')
        Contract().check('POST', '/v1/drain', answer)
        assert answer[2]['state'] == 'draining' and answer[2]['to'] in ('b', 'c'), answer
        to = members[answer[2]['to']]
        with Rtsp(members['a'].port) as rtsp:
            status, headers, _ = rtsp.request('DESCRIBE', members['a'].url('/cam?delay=0&token=x%2Fy'))
        assert (status, headers['location']) == (302, to.url('/cam?delay=0&token=x%2Fy')), headers
        # Whoever follows the redirect plays, and those who play stay.
        with Read(members['a'].url(), duration=3) as follower:
            check_continuous(follower.result())
        wait_until(lambda: owner(members['a']) == 'b', 10, 'b owns the stream')
        assert [each['state'] for each in members['c'].cluster()['members']] == [
            'draining', 'serving', 'serving']
        for reader in readers.values():
            check_continuous(reader.result())
        assert origin.count('play') == 2, origin.lines


def put_member(etcd, name):
    """Puts the entry of a member that does not answer."""
    etcd.put(f'/weir/1/members/{name}', json.dumps({'address': '127.0.0.1', 'ports': {'rtsp': free_port()}}))


def put_taker(etcd, name, source):
    etcd.put(f'/weir/1/takers/{name}/cam', json.dumps({'parent': source, 'fed': source}))


@test
def nobody_reads_what_it_feeds():
    """a member does not read another one whose stream comes from itself by way of a third one"""
    with cluster('a') as (etcd, origin, members), reading(members, 'a', 8) as readers:
        a = members['a']
        wait_until(lambda: owner(a) == 'a', 5, 'a owns the stream')
        put_member(etcd, 'x')
        put_member(etcd, 'y')
        a.wait_for_members('a', 'x', 'y')
        put_taker(etcd, 'x', 'y')
        put_taker(etcd, 'y', 'a')
        etcd.put('/weir/1/owners/cam', '{"member": "x"}')
        wait_until(lambda: owner(a) == 'x', 5, 'x owns the stream')
        put_member(etcd, 'z')
        a.wait_for_line('cluster: member z is there')  # and the log has all that came before
        assert not matches(a, 'cluster: /cam is read from'), a.lines
        put_taker(etcd, 'y', '')
        a.wait_for_line('cluster: /cam is read from x')
        check_continuous(readers['a'].result())
        assert origin.count('play') == 1, origin.lines


@test
def etcd_stops_and_comes_back():
    with contextlib.ExitStack() as stack:
        etcd, origin, members = stack.enter_context(cluster())
        readers = stack.enter_context(reading(members, 'abc', 20))
        wait_until(lambda: owner(members['c']) == 'a', 5, 'a owns the stream')
        etcd.kill()
        wait_until(lambda: not members['b'].cluster()['joined'], 15, 'the lease has run out')
        second = stack.enter_context(Etcd(after=etcd, empty=True))
        wait_until(lambda: len(second.keys()) == 6, 15, 'the keys are there again')
        wait_until(lambda: owner(members['a']) == 'a', 10, 'a owns the stream again')
        for reader in readers.values():
            check_continuous(reader.result())
        assert origin.count('play') == 1, origin.lines


@contextlib.contextmanager
def asking_at_once(port, when_connected):
    """A client that asks for /cam as soon as the port is open. Yields a list, for the status."""
    answers = []

    def ask():
        end = time.monotonic() + 10 * SLOWER
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError), Rtsp(port) as rtsp:
                when_connected()
                answers.append(rtsp.request('DESCRIBE', f'rtsp://127.0.0.1:{port}/cam')[0])
                return
            time.sleep(0.001)

    client = threading.Thread(target=ask)
    client.start()
    yield answers
    client.join()


@test
def a_reader_comes_before_a_member_has_joined():
    """the member reads the owner, and leaves the camera alone"""
    with cluster('a') as (etcd, origin, members), reading(members, 'a', 60):
        wait_until(lambda: owner(members['a']) == 'a', 5, 'a owns the stream')
        etcd.signal(signal.SIGSTOP)
        port = free_port()
        with asking_at_once(port, lambda: etcd.signal(signal.SIGCONT)) as answers, \
                Member('b', etcd, camera(origin), listen=f'127.0.0.1:{port}'):
            wait_until(lambda: answers == [200], 10, 'the reader has its answer')
        assert origin.count('describe') == 1, origin.lines


@test
def what_etcd_has_missed_is_written_later():
    """a member says what changed during a short absence of etcd, for which its lease lasts"""
    with contextlib.ExitStack() as stack:
        etcd, _origin, members = stack.enter_context(cluster())
        stack.enter_context(reading(members, 'a', 60))
        wait_until(lambda: owner(members['b']) == 'a', 5, 'a owns the stream')
        # Nothing but the drain makes c write its entry again.
        wait_until(lambda: members['a'].cluster()['members'][2]['cpu'] < 0.05, 10, 'c rests')
        etcd.kill()
        stack.enter_context(reading(members, 'b', 60))
        members['c'].http('POST', '/v1/drain')
        wait_until(lambda: members['c'].cluster()['problem'], 5, 'c misses etcd')
        stack.enter_context(Etcd(after=etcd))
        wait_until(lambda: stream(members['a'])['readers'] == [{'member': 'b', 'from': 'a'}], 8,
                   'a knows who reads it')
        wait_until(lambda: members['a'].cluster()['members'][2]['state'] == 'draining', 8,
                   'a knows that c drains')


@test
def a_new_reader_comes_while_etcd_is_away():
    with cluster() as (etcd, origin, members), reading(members, 'a', 15):
        wait_until(lambda: owner(members['b']) == 'a', 5, 'a owns the stream')
        etcd.kill()
        wait_until(lambda: members['b'].cluster()['problem'], 10, 'b misses etcd')
        with reading(members, 'bc', 3) as readers:
            for reader in readers.values():
                check_continuous(reader.result())
        assert origin.count('play') == 1, origin.lines


@test
def a_publisher_on_any_member_is_seen_on_all():
    mounts = {'/cam': {'upstream': 'publish', **QUICK}}
    with cluster(mounts=mounts) as (_etcd, _origin, members):
        with publishing(members['b']):
            wait_until(lambda: owner(members['a']) == 'b', 10, 'b has the publisher')
            with reading(members, 'abc', 4) as readers:
                for reader in readers.values():
                    check_continuous(reader.result())
        wait_until(lambda: stream(members['a']) is None, 10, 'the publisher has left')
        with publishing(members['c']):
            with reading(members, 'a', 3) as readers:
                check_continuous(readers['a'].result())


@test
def a_publisher_moves_to_another_member():
    """the member that it has left does not read the one that still reads it"""
    mounts = {'/cam': {'upstream': 'publish', **QUICK}}
    with cluster(mounts=mounts) as (_etcd, _origin, members):
        with publishing(members['a']), reading(members, 'abc', 60):
            time.sleep(1)
        with publishing(members['b']):
            wait_until(lambda: owner(members['a']) == 'b', 10, 'b has the publisher')
            with reading(members, 'abc', 4) as readers:
                for reader in readers.values():
                    check_continuous(reader.result())
        # A loop would go on by itself.
        wait_until(lambda: stream(members['a']) is None, 10, 'the publisher has left')


@test
def a_member_with_another_secret_gets_nothing():
    with Etcd() as etcd, Origin() as origin, Member('a', etcd, camera(origin)) as a, \
            Member('b', etcd, camera(origin), cluster={'secret': 'quite another secret'}) as b:
        a.wait_for_members('a', 'b')
        with reading({'a': a, 'b': b}, 'ab', 4) as readers:
            for reader in readers.values():
                check_continuous(reader.result())
        a.wait_for_line(r'access refused from 127\.0\.0\.1: .* /cam: wrong token of a member')
        assert origin.count('play') == 2, origin.lines


@test
def stages_are_run_by_each_member():
    """a mount with stages has its own upstream on each member"""
    mounts = {'/cam': {'pipeline': ['pull', 'restamp']}}
    with Etcd() as etcd, Origin() as origin:
        mounts['/cam'] |= camera(origin)['/cam']
        with Member('a', etcd, mounts) as a, Member('b', etcd, mounts) as b:
            a.wait_for_members('a', 'b')
            with reading({'a': a, 'b': b}, 'ab', 3) as readers:
                for reader in readers.values():
                    reader.result()
            assert origin.count('play') == 2, origin.lines


if __name__ == '__main__':
    run()
