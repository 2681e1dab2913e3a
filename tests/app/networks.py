# SPDX-License-Identifier: LGPL-2.1-or-later
"""A network of its own for a proxy over WebRTC, and clients behind lines to it."""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import lru_cache

from tap import Skip
from webrtcproxy import WebrtcProxy, program

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bench'))
import netns  # pylint: disable=wrong-import-position
from netns import Namespace, NoRig, tool  # pylint: disable=wrong-import-position

PROXY, CLIENT = '10.79.0.1', '10.79.0.2'


@lru_cache
def leave_network():
    """Gives this process a network of its own, once. Before, it gets what the tests need from outside."""
    program()
    netns.leave_network()


def connect(name, other, addresses, theirs, mtu=1500):
    """Makes a line from this process to the namespace `other`."""
    tool('ip', 'link', 'add', name, 'mtu', str(mtu), 'type', 'veth', 'peer', 'name', name, 'mtu', str(mtu), 'netns', other.path)
    for address in addresses:
        tool('ip', 'address', 'add', address, 'dev', name, *(['nodad'] if ':' in address else []))
    for address in theirs:
        other.run('ip', 'address', 'add', address, 'dev', name, *(['nodad'] if ':' in address else []))
    tool('ip', 'link', 'set', name, 'up')
    other.run('ip', 'link', 'set', 'lo', 'up')
    other.run('ip', 'link', 'set', name, 'up')


@contextmanager
def network(make, number):
    """New namespaces, which `make` connects to this process. The lines of this process go with them."""
    made = []
    try:
        leave_network()
        made = [Namespace() for _ in range(number)]
        make(*made)
        yield made
    except NoRig as why:
        raise Skip(str(why)) from why
    finally:
        for link in [name for _, name in socket.if_nameindex() if made and name.startswith('line')]:
            subprocess.run(['ip', 'link', 'delete', link], stderr=subprocess.DEVNULL, check=False)
        for each in made:
            each.close()


@contextmanager
def line(mtu=1500):
    """The namespace of a client with a line to this process, which has the address PROXY."""
    def make(client):
        connect('line', client, [f'{PROXY}/24', 'fd79::1/64'], [f'{CLIENT}/24', 'fd79::2/64'], mtu)
    with network(make, 1) as (client,):
        yield client


class Narrow:
    """A client behind a router, whose line to it has a rate that may change. Packets wait at the router. `words` stand
    before a command of the client; it reaches this process at `address`."""

    def __init__(self, at, router, client):
        self.words, self.address, self._router = client.words, f'10.80.{at}.1', router
        connect(f'line{at}', router, [f'{self.address}/24'], [f'10.80.{at}.2/24'])
        router.run('ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'out', 'netns', client.path)
        for side, address in (router, f'10.81.{at}.1/24'), (client, f'10.81.{at}.2/24'):
            side.run('ip', 'address', 'add', address, 'dev', 'out')
            side.run('ip', 'link', 'set', 'out', 'up')
        router.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
        client.run('ip', 'route', 'add', 'default', 'via', f'10.81.{at}.1')
        tool('ip', 'route', 'add', f'10.81.{at}.0/24', 'via', f'10.80.{at}.2')

    def narrow(self, rate, queue='200ms'):
        """Sets the rate, in bit/s, and how long packets may wait at most."""
        self._router.run('tc', 'qdisc', 'replace', 'dev', 'out', 'root', 'tbf', 'rate', f'{rate:.0f}bit', 'burst', '8kb',
                         'latency', queue)


@contextmanager
def lines(number):
    """Clients, each behind a line of its own."""
    made = []

    def make(*spaces):
        made.extend(Narrow(at, *spaces[2 * at:2 * at + 2]) for at in range(number))
    with network(make, 2 * number):
        yield made


class Wide(WebrtcProxy):
    """A proxy for all networks."""

    def __init__(self, *upstream, port=0, listen='0.0.0.0:0', mount=None, **webrtc):
        super().__init__(*upstream, mount=mount, web={'listen': f'0.0.0.0:{port}'}, webrtc={'listen': listen, **webrtc}, listen='0.0.0.0:0',
                         users=[{'name': 'any', 'permissions': [{'action': 'read'}, {'action': 'api'}]}])
