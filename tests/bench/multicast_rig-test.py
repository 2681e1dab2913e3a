# SPDX-License-Identifier: LGPL-2.1-or-later
"""In the network for multicast, a client gets the groups that it has joined. Needs root."""

import sys
import time

from multicast_rig import MulticastRig
from netns import NoRig
from proc import Proc
from tap import Skip, run, test

GROUP, OTHER, PORT = '239.1.1.1', '239.1.1.2', 5004

# Joins the group, prints READY, and waits for one packet.
CLIENT = f'''
import socket
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.bind(('', {PORT}))
client.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                  socket.inet_aton('{GROUP}') + bytes(4))
print('READY', flush=True)
print(client.recv(2000).decode())
'''

# Sends to both groups until it is killed; a router forwards none of the first packets.
SERVER = f'''
import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
while True:
    server.sendto(b'hello', ('{GROUP}', {PORT}))
    server.sendto(b'other', ('{OTHER}', {PORT}))
    time.sleep(0.01)
'''


def rig(**options):
    try:
        return MulticastRig(**options)
    except NoRig as why:
        raise Skip(str(why)) from None


def check_delivery(net):
    with Proc(*net.clients[0], sys.executable, '-c', CLIENT) as client:
        client.wait_for_line('^READY')
        net.count(1)
        with Proc(*net.server, sys.executable, '-c', SERVER):
            client.wait_for_line('^hello')
            assert client.wait() == 0
    assert net.counted(1) == (0, 0), 'a client that has not joined got packets'


@test
def the_bridge_gives_a_group_to_those_who_have_joined():
    with rig(clients=2) as net:
        check_delivery(net)


@test
def a_router_forwards_groups():
    with rig(clients=2, router=True) as net:
        check_delivery(net)


@test
def a_client_can_lose_packets():
    with rig() as net:
        net.lose(0, 50)
        with Proc(*net.clients[0], sys.executable, '-c', CLIENT) as client:
            client.wait_for_line('^READY')
            with Proc(*net.server, sys.executable, '-c', SERVER):
                client.wait_for_line('^hello')
                while net.counted(0)[0] < 3:
                    time.sleep(0.01)


if __name__ == '__main__':
    run()
