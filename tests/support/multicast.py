# SPDX-License-Identifier: LGPL-2.1-or-later
"""Multicast that stays in a network of this process."""

import ctypes
import socket
import subprocess
from contextlib import contextmanager

from tap import Skip

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33


def enter_network():
    """Gives this process and its children a network with only a loopback interface. Returns whether
    it has one, which needs root. Call before the first socket."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    for line in ('ip link set lo up multicast on', 'ip route add 224.0.0.0/4 dev lo'):
        subprocess.run(line.split(), check=True)
    return True


def join(group, port):
    """Returns a socket that receives what is sent to a group on the loopback interface."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    receiver.bind((group, port))
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                        socket.inet_aton(group) + socket.inet_aton('127.0.0.1'))
    receiver.settimeout(40)  # a group can pause for a title's length
    return receiver


@contextmanager
def dropping(groups, rule=''):
    """Drops packets to groups that match an nftables expression."""
    def nft(text):
        subprocess.run(['nft', '-f', '-'], input=text.encode(), check=True)

    try:
        nft('table ip t {\nchain i {\ntype filter hook input priority 0\n'
            f'ip daddr {groups} {rule} drop\n}}\n}}\n')
    except FileNotFoundError as error:
        raise Skip('nft is not installed') from error
    try:
        yield
    finally:
        nft('delete table ip t')
