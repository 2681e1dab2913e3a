# SPDX-License-Identifier: LGPL-2.1-or-later
"""Members of a cluster find each other through etcd, and serve on without it."""

import contextlib
import os
import tempfile

from control import Controlled
from openapi import Contract
from etcdserver import Etcd, Member, run_quietly
from proc import free_port
from proxy import said, wait_until
from tap import run, test


@test
def members_know_each_other():
    with Etcd() as etcd, Member('a', etcd) as a, Member('b', etcd) as b, Member('c', etcd) as c:
        for member in a, b, c:
            member.wait_for_members('a', 'b', 'c')
        seen = a.cluster()
        assert seen['name'] == 'a' and seen['joined'] and seen['whole'] and not seen['problem'], seen
        Contract().check('GET', '/v1/cluster', (200, a.http('GET', '/v1/cluster')[1], seen))
        ports = {each['name']: each['ports']['rtsp'] for each in seen['members']}
        assert ports == {'a': a.port, 'b': b.port, 'c': c.port}, seen
        # One that ends says so; of one that is killed, the lease runs out.
        b.stop()
        a.wait_for_members('a', 'c', timeout=2)
        c.kill()
        a.wait_for_members('a', timeout=10)
        a.wait_for_line(r'cluster: member c is gone')


@test
def a_proxy_without_the_key_is_no_member():
    with Controlled({'/cam': {'upstream': 'publish'}}) as proxy:
        seen = proxy.get('/v1/cluster')
        assert seen['name'] is None and not seen['joined'] and seen['members'] == [], seen


def refused(etcd, name='a', **cluster):
    """Returns what a member says that may not join."""
    top = {'etcd': [etcd.url], 'name': name, 'address': '127.0.0.1', 'secret': 16 * 'x', **cluster}
    lines = ['listen: 127.0.0.1:0', 'api: off', 'cluster:']
    lines += [f'  {key}: {value}' for key, value in top.items()]
    lines += ['mounts: {/cam: {upstream: publish}}']
    text, status = said('\n'.join(lines) + '\n')
    assert status == 1, (status, text)
    return text


@test
def the_name_of_another_member_is_refused():
    with Etcd() as etcd, Member('a', etcd) as a:
        text = refused(etcd)
        assert f'another member has the name a: the one at 127.0.0.1, port {a.port}' in text, text
        assert a.cluster()['joined']


@test
def a_member_that_was_killed_comes_back():
    port = free_port()
    listen = {'listen': f'127.0.0.1:{port}'}
    with Etcd() as etcd, Member('b', etcd) as b:
        with Member('a', etcd, **listen) as first:
            b.wait_for_members('a', 'b')
            first.kill()
        with Member('a', etcd, **listen) as second:
            wait_until(lambda: second.cluster()['joined'], 15, 'the second process has joined')
            b.wait_for_members('a', 'b')


@test
def rights_in_etcd_are_needed():
    with Etcd() as etcd:
        etcd.add_user('root', 'of root')
        etcd.add_user('weir', 'of weir', '/weir/')
        etcd.add_user('other', 'of other', '/other/')
        etcd.call('auth/enable', {})
        with Member('a', etcd, cluster={'etcd-user': 'weir', 'etcd-password': 'of weir'}) as a:
            a.wait_for_members('a')
        denied = {'etcd-user': 'other', 'etcd-password': 'of other'}
        assert 'permission denied' in refused(etcd, **denied)
        assert 'authentication failed' in refused(etcd, **{**denied, 'etcd-password': 'wrong'})
        assert 'user name is empty' in refused(etcd)


def make_certificate(folder):
    """Returns the files of a certificate and its key."""
    certificate, key = (os.path.join(folder, name) for name in ('etcd.crt', 'etcd.key'))
    run_quietly('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                '-noenc', '-subj', '/CN=etcd', '-addext', 'subjectAltName=IP:127.0.0.1',
                '-keyout', key, '-out', certificate)
    return certificate, key


@test
def etcd_is_reached_over_tls():
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(folder)
        words = ['--cert-file', certificate, '--key-file', key, '--trusted-ca-file', certificate,
                 '--client-cert-auth']
        own = {'etcd-ca': certificate, 'etcd-certificate': certificate, 'etcd-key': key}
        with Etcd(*words, scheme='https') as etcd:
            with Member('a', etcd, cluster=own) as a:
                a.wait_for_members('a')
                assert not a.cluster()['problem']
            with Member('b', etcd) as b:
                assert not b.cluster()['joined']
                b.wait_for_line(r'cluster: etcd does not answer, .*certificate')


@test
def another_endpoint_is_asked_where_one_does_not_answer():
    with Etcd() as etcd:
        dead = f'http://127.0.0.1:{free_port()}'
        with Member('a', [dead, etcd.url]) as a, Member('b', [etcd.url, dead]) as b:
            a.wait_for_members('a', 'b')
            b.wait_for_members('a', 'b')


@test
def members_serve_without_etcd_and_meet_when_it_comes():
    with Etcd() as first:
        first.stop()
        with Member('a', first) as a, Member('b', first) as b:
            a.wait_for_line(r'cluster: etcd does not answer')
            assert not a.cluster()['joined']
            assert a.ask_options() == 200 and b.ask_options() == 200
            with Etcd(after=first):
                a.wait_for_members('a', 'b', timeout=10)
                a.wait_for_line(r'cluster: etcd answers again')


@test
def members_stay_known_when_etcd_is_replaced_by_an_empty_one():
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Etcd())
        a, b = (stack.enter_context(Member(name, first)) for name in 'ab')
        a.wait_for_members('a', 'b')
        first.kill()
        wait_until(lambda: a.cluster()['problem'], 5, 'a misses etcd')
        assert a.members() == ['a', 'b']
        second = stack.enter_context(Etcd(after=first, empty=True))
        seen = len(a.lines)
        wait_until(lambda: len(second.keys()) == 2, 10, 'both have joined anew')
        wait_until(lambda: a.cluster()['whole'], 5, 'the map is whole')
        assert not [line for line in a.lines[seen:] if 'is gone' in line], a.lines[seen:]


@test
def keys_of_strangers_are_left_alone():
    with Etcd() as etcd:
        strange = {'/weir/1/members/x': '{"address": "10.0.0.1", "po', '/weir/1/members/y': '[]',
                   '/weir/1/owners/cam': '{}', '/weir/1/takers/b': '{}', '/weir/1/what': '\x7f',
                   '/weir/2/members/z': '{"of": "a later version"}', '/weir/1/members/q':
                   '{"address": 5, "ports": {}}',
                   '/weir/1/members/p"q': '{"address": "10.0.0.1", "ports": {"rtsp": 554}}',
                   '/weir/1/members/r': '{"address": "10.0.0.1/s", "ports": {"rtsp": 554}}'}
        for key, value in strange.items():
            etcd.put(key, value)
        etcd.call('kv/put', {'key': '//8=', 'value': '//8='})
        with Member('a', etcd) as a:
            a.wait_for_members('a')
            a.wait_for_line(r'cluster: the key /weir/1/members/x of etcd is not understood')
            etcd.put('/weir/1/members/w', '{"address": "10.0.0.9", "ports": {"rtsp": 554}, "new": []}')
            a.wait_for_members('a', 'w')
            etcd.delete('/weir/1/members/w')
            a.wait_for_members('a')
        kept = etcd.keys()
        assert all(kept[key] == value for key, value in strange.items()), kept


@test
def a_configuration_that_cannot_work_is_refused():
    cases = {
        '{etcd: [http://x:1], address: 10.0.0.1}': 'the secret is missing',
        '{etcd: [http://x:1], address: 10.0.0.1, secret: short}': 'less than 16 bytes',
        '{etcd: [x:1], address: 10.0.0.1, secret: 0123456789abcdef}': 'etcd',
        '{etcd: [http://x:1], secret: 0123456789abcdef}': 'address is missing',
        '{address: 10.0.0.1, secret: 0123456789abcdef}': 'etcd is missing',
        '{etcd: [http://x:1], address: "10.0.0.1:8554", secret: 0123456789abcdef}': 'without a port',
        '{etcd: [http://x:1], address: 10.0.0.1, name: a/b, secret: 0123456789abcdef}': 'not a name',
        '{etcd: [http://x:1], address: 10.0.0.1, prefix: weir, secret: 0123456789abcdef}': 'slash',
        '{etcd: [http://x:1], address: 10.0.0.1, secret: 0123456789abcdef}': "can't reach a loopback",
    }
    for value, words in cases.items():
        text, status = said(f'cluster: {value}\nmounts: {{/cam: {{upstream: publish}}}}\n', '--check-config')
        assert status == 2 and words in text, (value, text)


if __name__ == '__main__':
    run()
