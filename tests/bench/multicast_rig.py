# SPDX-License-Identifier: LGPL-2.1-or-later
"""A network of several hosts inside this one, for multicast.

A bridge connects a server and the clients. It snoops IGMP and has the network's querier, so a
client gets only the groups that it has joined. With a router, the server and the clients are on two
bridges, and the router forwards the groups of the server.

Nothing has a name outside of this process: the namespaces go when this process and its children end
(netns.py).
"""

import pathlib
import re
import sys
import time

from netns import Namespace
from proc import Proc

ROUTER = pathlib.Path(__file__).with_name('multicast_router.py')
SERVER_NET, CLIENT_NET = '10.78.0', '10.79.0'
BRIDGE = ('type', 'bridge', 'mcast_snooping', '1', 'mcast_query_interval', '200',
          'mcast_startup_query_interval', '100', 'mcast_query_response_interval', '20',
          'mcast_last_member_interval', '20')  # in 10 ms
SETTLE = 0.3  # s in which a bridge lets groups through, for it may not know of all members


class MulticastRig:
    """`server` and each of `clients` are the words to put before a command to run it there."""

    def __init__(self, clients=1, router=False):
        self._namespaces, self._router = [], None
        try:
            self._make(clients, router)
        except BaseException:
            self.close()
            raise

    def _make(self, n_clients, router):
        self.server_address = f'{SERVER_NET}.1'
        self._switch, server, *clients = (self._host() for _ in range(2 + n_clients))
        self.server, self.clients = server.words, [client.words for client in clients]
        self._bridge('servers')
        self._plug(server, 'eth0', 'servers', self.server_address)
        if router:
            self._bridge('clients')
            self._route()
        net, bridge = (CLIENT_NET, 'clients') if router else (SERVER_NET, 'servers')
        self._clients_bridge = bridge
        for n, client in enumerate(clients):
            self._plug(client, 'eth0', bridge, f'{net}.{n + 2}')
        for host in server, *clients:
            subnet = host.run('ip', '-brief', 'address', 'show', 'eth0').split()[2]
            host.run('ip', 'route', 'add', 'default', 'via', f'{subnet.rsplit(".", 1)[0]}.254')
            while ' UP ' not in host.run('ip', '-brief', 'link', 'show', 'eth0'):
                time.sleep(0.01)
        time.sleep(SETTLE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._router:
            self._router.stop()
            self._router = None
        for namespace in self._namespaces:
            namespace.close()
        self._namespaces = []

    def _host(self):
        host = Namespace()
        self._namespaces.append(host)
        host.run('ip', 'link', 'set', 'lo', 'up')
        return host

    def _bridge(self, name):
        self._switch.run('ip', 'link', 'add', name, *BRIDGE)
        self._switch.run('ip', 'link', 'set', name, 'up')
        # On its own, for the bridge waits for one response interval from now on.
        self._switch.run('ip', 'link', 'set', name, 'type', 'bridge', 'mcast_querier', '1')

    def _plug(self, host, device, bridge, address):
        """Connects a host to a bridge. The switch's port has the name of the address's end."""
        port = f'{bridge}{address.rsplit(".", 1)[1]}'
        self._switch.run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', device,
                         'netns', host.path)
        self._switch.run('ip', 'link', 'set', port, 'master', bridge, 'up')
        host.run('ip', 'address', 'add', f'{address}/24', 'dev', device)
        host.run('ip', 'link', 'set', device, 'up')

    def _route(self):
        addresses = f'{SERVER_NET}.254', f'{CLIENT_NET}.254'
        router = self._host()
        self._plug(router, 'servers', 'servers', addresses[0])
        self._plug(router, 'clients', 'clients', addresses[1])
        router.run('tee', '/proc/sys/net/ipv4/ip_forward', text='1')
        # The router gets all groups, as one does that the bridge has seen to send IGMP queries.
        self._switch.run('ip', 'link', 'set', 'servers254', 'type', 'bridge_slave',
                         'mcast_router', '2')
        self._router = Proc(*router.words, sys.executable, ROUTER, *addresses)
        self._router.wait_for_line('READY')

    def lose(self, client, percent):
        """Drops UDP packets for groups at a client: single ones, chosen at random."""
        self._rule(client, 'lost', f'numgen random mod 1000 < {10 * percent} counter name lost drop')

    def narrow(self, client, rate, queue):
        """Limits a client's line to `rate` (as tc writes it), with a queue of `queue` bytes at the
        switch."""
        self._switch.run('tc', 'qdisc', 'replace', 'dev', f'{self._clients_bridge}{client + 2}', 'root', 'tbf',
                         'rate', rate, 'burst', '3kb', 'limit', str(queue))

    def count(self, client):
        """Counts UDP packets for groups at a client from now on."""
        self._rule(client, 'groups', 'counter name groups')

    def _rule(self, client, counter, rule):
        self._namespaces[2 + client].run('nft', '-f', '-', text='\n'.join((
            'table netdev rig', 'delete table netdev rig', 'table netdev rig {',
            f'counter {counter} {{ }}', 'chain in {',
            'type filter hook ingress device "eth0" priority 0;',
            f'ip daddr 224.0.0.0/4 udp dport > 1023 {rule}', '}', '}')))

    def counted(self, client):
        """Returns how many packets, and bytes with IP headers, the client's counter has seen."""
        listing = self._namespaces[2 + client].run('nft', 'list', 'counters')
        return tuple(map(int, re.search(r'packets (\d+) bytes (\d+)', listing).groups()))
