# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cluster on a network of its own: each member has a line to this process, which has an etcd of three,
the cameras and the readers."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache

from clips import clip
from etcdserver import Etcd, Member
from proc import Proc, free_port
from proxy import QUICK, Origin, program, wait_until
from tap import Skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bench'))
import netns  # pylint: disable=wrong-import-position
from netns import Namespace, NoRig, tool  # pylint: disable=wrong-import-position

HERE = '10.88.0.1'
STEP_S = 0.05
ANYBODY = [{'name': 'any', 'permissions': [{'action': 'read'}, {'action': 'publish'}, {'action': 'api'}]}]


@lru_cache
def leave_network():
    """Gives this process a network of its own, once: a switch, to which members connect."""
    program()
    netns.leave_network()
    tool('ip', 'link', 'add', 'hub', 'type', 'bridge')
    tool('ip', 'address', 'add', f'{HERE}/24', 'dev', 'hub')
    tool('ip', 'link', 'set', 'hub', 'up')


class Line:
    """The machine of a member, by its number."""

    def __init__(self, number):
        self.host = f'10.88.0.{10 + number}'
        self._space, self._name = Namespace(), f'line{number}'
        self.inside = self._space.words
        tool('ip', 'link', 'add', self._name, 'type', 'veth', 'peer', 'name', 'line', 'netns', self._space.path)
        tool('ip', 'link', 'set', self._name, 'master', 'hub', 'up')
        for words in (['link', 'set', 'lo', 'up'], ['address', 'add', f'{self.host}/24', 'dev', 'line'],
                      ['link', 'set', 'line', 'up']):
            self._space.run('ip', *words)

    def cut(self):
        """Drops all that comes and all that is sent."""
        self._space.run('nft', '-f', '-', text="""table inet cut {
            chain in { type filter hook input priority 0; iifname "line" drop; };
            chain out { type filter hook output priority 0; oifname "line" drop; }; }""")

    def mend(self):
        self._space.run('nft', 'delete', 'table', 'inet', 'cut')

    def close(self):
        subprocess.run(['ip', 'link', 'delete', self._name], stderr=subprocess.DEVNULL, check=False)
        self._space.close()


class NetMember(Member):
    """A member on a line, with a port of its own that stays after a restart."""

    def __init__(self, name, line, etcd, mounts, env=None):
        self.host, self.inside, self.line = line.host, line.inside, line
        super().__init__(name, etcd, mounts, env, line.host, listen=f'{line.host}:8554', api=f'{line.host}:9554',
                         users=ANYBODY)


class Camera(Origin):
    host = HERE


class EtcdPart(Etcd):
    """One of the three members of an etcd."""

    def __init__(self, number, ports, after=None, empty=False):
        self.number, self.ports = number, ports
        self.port, self.peer_port = ports[number]
        self.folder = after.folder if after and not empty else tempfile.TemporaryDirectory()
        self.url, peers = f'http://{HERE}:{self.port}', f'http://{HERE}:{self.peer_port}'
        everyone = ','.join(f'e{i}=http://{HERE}:{peer}' for i, (_, peer) in enumerate(ports))
        Proc.__init__(self, 'etcd', '--name', f'e{number}', '--data-dir', self.folder.name,
                      '--listen-client-urls', self.url, '--advertise-client-urls', self.url,
                      '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers,
                      '--initial-cluster', everyone, '--unsafe-no-fsync')

    host = HERE

    def is_leader(self):
        status = self.call('maintenance/status', {})
        return status['leader'] == status['header']['member_id']


class Etcds:
    """An etcd of three members."""

    def __init__(self):
        ports = [(free_port(), free_port()) for _ in range(3)]
        self.parts = [EtcdPart(i, ports) for i in range(3)]
        self.urls = [part.url for part in self.parts]
        self._wait()

    def _wait(self):
        for part in self.parts:
            part.wait_for_line(r'ready to serve client requests|serving .*client requests', 30)

    def kill_leader(self):
        """Returns the part that was the leader."""
        leader = next(part for part in self.parts if part.is_leader())
        leader.kill()
        return leader

    def start(self, empty=False):
        """Starts the parts that do not run."""
        self.parts = [part if part.running() else EtcdPart(part.number, part.ports, part, empty) for part in self.parts]
        self._wait()

    def kill(self):
        for part in self.parts:
            part.kill()


def list_peers(port):
    """Returns the addresses that have a connection to a port of this process's network. One that connects anew
    may have an earlier connection, of which the camera has not seen the end."""
    found = set()
    with open('/proc/self/net/tcp', encoding='ascii') as file:
        for fields in (text.split() for text in list(file)[1:]):
            local, remote, state = fields[1:4]
            if state == '01' and int(local.split(':')[1], 16) == port:
                octets = bytes.fromhex(remote.split(':')[0])[::-1]
                found.add('.'.join(map(str, octets)))
    return found


class Watch:
    """Watches how many living members are connected to each camera. `away` has the addresses of others: a
    camera does not see at once that they are gone."""

    def __init__(self, cameras):
        self.cameras, self.away = cameras, set()
        self.most = 0
        self.longest_two_s = 0
        self._since, self._ended = {}, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def counts(self):
        return [len([host for host in list_peers(camera.port) if host not in self.away])
                for camera in self.cameras]

    def _run(self):
        while not self._ended.wait(STEP_S):
            now = time.monotonic()
            for camera, count in zip(self.cameras, self.counts()):
                self.most = max(self.most, count)
                since = self._since.setdefault(camera, now) if count > 1 else self._since.pop(camera, now)
                self.longest_two_s = max(self.longest_two_s, now - since)

    def stop(self):
        self._ended.set()
        self._thread.join()


class Net:
    """The cluster. `members` has those that run, by name."""

    def __init__(self, stack, n_members, n_cameras, env=None):
        self._stack, self._env, self.members = stack, env, {}
        self.etcds = Etcds()
        stack.callback(lambda: self.etcds.kill())  # pylint: disable=unnecessary-lambda
        self.cameras = [stack.enter_context(Camera(clip=clip(1, 20))) for _ in range(n_cameras)]
        self.mounts = {f'/cam{i}': {'upstream': camera.url, **QUICK, 'read-timeout': '3s'}
                       for i, camera in enumerate(self.cameras)}
        self.mounts['/live'] = {'upstream': 'publish', **QUICK}
        self.lines = {}
        for number in range(n_members):
            line = self.lines['abcdefgh'[number]] = Line(number)
            stack.callback(line.close)
        for name in self.lines:
            self.start(name)
        self.wait_for_all()

    def start(self, name):
        self.members[name] = self._stack.enter_context(
            NetMember(name, self.lines[name], self.etcds.urls, self.mounts, self._env))

    def wait_for_all(self, timeout=15):
        for member in self.members.values():
            member.wait_for_members(*self.members, timeout=timeout)

    def owner(self, path, member=None):
        seen = (member or next(iter(self.members.values()))).cluster()['streams']
        return next((each['owner'] for each in seen if each['path'] == path), None)


@contextlib.contextmanager
def net(n_members, n_cameras, env=None):
    with contextlib.ExitStack() as stack:
        try:
            leave_network()
            made = Net(stack, n_members, n_cameras, env)
        except NoRig as why:
            raise Skip(str(why)) from why
        yield made


def settled(made, watch, timeout=15):
    """Waits until each camera has one connection, and its owner is known to all and lives."""

    def is_settled():
        names = set(made.members)
        for path in list(made.mounts)[:len(made.cameras)]:
            owners = {made.owner(path, member) for member in made.members.values()}
            if len(owners) != 1 or not owners <= names:
                return False
        return watch.counts() == [1] * len(made.cameras)

    wait_until(is_settled, timeout, 'each camera has one connection, and its owner lives')
