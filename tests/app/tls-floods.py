# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floods of TLS connections that make no handshake, from whole IPv6 networks."""

import ctypes
import os
import socket
import ssl
import subprocess
from contextlib import ExitStack

from control import CLIP_URI
from proxy import wait_until
from secured import HELLO, Secure, handshakes, wait_for_receipt
from tap import Skip, run, test

CLONE_NEWNET = 0x40000000
OF_ADDRESS, OF_ALL = 32, 512  # handshakes at once
PROXY, HONEST = 'fd00::1', 'fd00:99::1'


def hosts(networks, per_network):
    return [f'fd00:{network:x}::{host:x}' for network in range(1, networks + 1)
            for host in range(1, per_network + 1)]


def enter_namespace():
    """Gives this process a network of its own, with many hosts. Returns why it has none, or
    None."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return f'no network namespace: {os.strerror(ctypes.get_errno())}'
    commands = ['link set lo up', *(f'addr add {host}/128 dev lo nodad' for host in
                                    {PROXY, HONEST, *hosts(1, 16), *hosts(16, 1)})]
    try:
        subprocess.run(['ip', '-batch', '-'], input='\n'.join(commands), text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as why:
        return f'no addresses of IPv6: {why}'
    return None


PROBLEM = enter_namespace()


class Listening(Secure):
    """A proxy for both families."""

    def __init__(self):
        if PROBLEM:
            raise Skip(PROBLEM)
        super().__init__({'/cam': {'upstream': CLIP_URI}}, tls={'listen': '[::]:0'})

    def connect(self, source, data=b'', to=PROXY):
        connection = socket.create_connection((to, self.tls_port), 10, (source, 0))
        connection.sendall(data)
        return connection

    def check_honest(self, source, times=5, to=PROXY):
        context = ssl.create_default_context(cafile=self.pem)
        context.check_hostname = False
        for _ in range(times):
            before = handshakes(self)['ok']
            with context.wrap_socket(self.connect(source, to=to)):
                wait_until(lambda: handshakes(self)['ok'] == before + 1, 10, 'the handshake counts')


def flood(proxy, stack, sources, data=b''):
    found = [stack.enter_context(proxy.connect(source, data)) for source in sources]
    for connection in found:
        wait_for_receipt(connection)


@test
def silent_connections_of_one_network_keep_nobody_out():
    with Listening() as proxy, ExitStack() as stack:
        flood(proxy, stack, [host for host in hosts(1, 16) for _ in range(OF_ALL // 16)])
        proxy.check_honest(HONEST)
        proxy.check_honest('127.0.0.1', to='127.0.0.1')
        # Another host of that network takes the place of a silent one.
        proxy.check_honest(hosts(1, 16)[7])
        n = handshakes(proxy)
        assert n['refused'] + n['timeout'] >= OF_ALL - OF_ADDRESS, n


@test
def silent_connections_of_many_networks_keep_nobody_out():
    with Listening() as proxy, ExitStack() as stack:
        flood(proxy, stack, hosts(16, 1) * OF_ADDRESS)
        proxy.check_honest(HONEST)


@test
def half_handshakes_of_many_networks_keep_nobody_out():
    with Listening() as proxy, ExitStack() as stack:
        flood(proxy, stack, hosts(16, 1) * OF_ADDRESS, HELLO)
        proxy.check_honest(HONEST)


@test
def addresses_of_ipv4_are_counted_one_by_one():
    with Listening() as proxy, ExitStack() as stack:
        for host in '127.0.0.2', '127.0.0.3':
            for _ in range(OF_ADDRESS):
                stack.enter_context(proxy.connect(host, HELLO, to='127.0.0.1'))
        proxy.check_honest('127.0.0.4', to='127.0.0.1')
        assert handshakes(proxy)['refused'] == 0


if __name__ == '__main__':
    run()
