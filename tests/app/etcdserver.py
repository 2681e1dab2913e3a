# SPDX-License-Identifier: LGPL-2.1-or-later
"""An etcd of its own for a test, and proxies that are members of a cluster."""

import base64
import contextlib
import http.client
import json
import shutil
import subprocess
import tempfile

from control import Controlled
from proc import Proc, Rtsp, free_port
from proxy import CLIP, QUICK, wait_until
from tap import Skip

SECRET = 'a secret of the whole cluster'


class Etcd(Proc):
    """A running etcd with an empty folder; or with the ports and the folder of `after`, which has
    ended. `words` are further options."""

    host = '127.0.0.1'

    def __init__(self, *words, after=None, empty=False, scheme='http'):
        if not shutil.which('etcd'):
            raise Skip('etcd is not installed (package etcd-server)')
        self.port = after.port if after else free_port()
        self.peer_port = after.peer_port if after else free_port()
        self.folder = after.folder if after and not empty else tempfile.TemporaryDirectory()
        self.url = f'{scheme}://127.0.0.1:{self.port}'
        peers = f'http://127.0.0.1:{self.peer_port}'
        super().__init__('etcd', '--name', 'one', '--data-dir', self.folder.name,
                         '--listen-client-urls', self.url, '--advertise-client-urls', self.url,
                         '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers,
                         '--initial-cluster', f'one={peers}', '--unsafe-no-fsync', *words)
        try:
            self.wait_for_line(r'ready to serve client requests|serving .*client requests', 20)
        except BaseException:
            self.kill()
            self.dump()
            raise

    def call(self, method, body, token=None):
        """Calls the JSON gateway. Returns the answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request('POST', f'/v3/{method}', json.dumps(body),
                               {'Authorization': token} if token else {})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def put(self, key, value):
        answer = self.call('kv/put', {'key': encoded(key), 'value': encoded(value)})
        assert 'header' in answer, answer

    def delete(self, key):
        return self.call('kv/deleterange', {'key': encoded(key)})

    def keys(self):
        """Returns {key: value} of all keys."""
        answer = self.call('kv/range', {'key': encoded('\0'), 'range_end': encoded('\0')})
        return {decoded(each['key']): decoded(each['value']) for each in answer.get('kvs', [])}

    def add_user(self, name, password, prefix=None):
        """Adds a user; `prefix`: what its keys begin with."""
        self.call('auth/user/add', {'name': name, 'password': password})
        if name != 'root':
            self.call('auth/role/add', {'name': name})
            if prefix:
                self.call('auth/role/grant', {'name': name, 'perm': {
                    'permType': 'READWRITE', 'key': encoded(prefix),
                    'range_end': encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}})
        self.call('auth/user/grant', {'user': name, 'role': name})


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode('utf-8', 'replace')


class Member(Controlled):
    """A proxy that is a member. `etcd` is an Etcd, or a list of URLs."""

    def __init__(self, name, etcd, mounts=None, env=None, address='127.0.0.1', cluster=None, **top):
        urls = etcd if isinstance(etcd, list) else [etcd.url]
        self.name = name
        super().__init__(mounts or {'/idle': {'upstream': 'publish', **QUICK}}, env=env, cluster={
            'etcd': urls, 'name': name, 'address': address, 'secret': SECRET, **(cluster or {})}, **top)

    def ask_options(self):
        with Rtsp(self.port) as rtsp:
            return rtsp.request('OPTIONS', self.url())[0]

    def cluster(self):
        return self.get('/v1/cluster')

    def members(self):
        return [member['name'] for member in self.cluster()['members']]

    def wait_for_members(self, *names, timeout=10):
        wait_until(lambda: self.members() == sorted(names), timeout, f'{self.name} knows {names}')


@contextlib.contextmanager
def publishing(member, path='/cam'):
    """A publisher that sends the clip to the member."""
    words = ['ffmpeg', '-nostdin', '-v', 'error', '-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy',
             '-f', 'rtsp', '-rtsp_transport', 'tcp', member.url(path)]
    with Proc(*words) as publisher:
        yield publisher


def run_quietly(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60)
