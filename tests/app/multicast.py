# SPDX-License-Identifier: LGPL-2.1-or-later
"""Multicast that stays in a network of this process."""

import ctypes
import socket
import subprocess

CLONE_NEWNET = 0x40000000


def enter_network():
    """Gives this process and its children a network with only a loopback interface. Returns whether
    it has one, which needs root. Call before the first socket."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    return True


def join(group, port):
    """Returns a socket that receives what is sent to a group on the loopback interface."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    receiver.bind((group, port))
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                        socket.inet_aton(group) + socket.inet_aton('127.0.0.1'))
    receiver.settimeout(10)
    return receiver
