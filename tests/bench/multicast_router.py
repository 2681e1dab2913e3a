#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forwards multicast between two interfaces of this host: multicast_router.py FROM TO

FROM and TO are the interfaces' addresses. Each group that a packet comes for at FROM is forwarded
to TO (ip(7), "IP_MROUTE"; linux/mroute.h). Prints READY, and runs until it is killed.
"""

import socket
import struct
import sys

MRT_INIT, MRT_ADD_VIF, MRT_ADD_MFC = 200, 202, 204
VIFS = 32  # MAXVIFS


def add_interface(router, number, address):
    # struct vifctl: number, flags, TTL threshold, rate limit, local address, remote address
    router.setsockopt(socket.IPPROTO_IP, MRT_ADD_VIF, struct.pack(
        '=HBBI4s4s', number, 0, 1, 0, socket.inet_aton(address), bytes(4)))


def forward(router, source, group):
    # struct mfcctl: source, group, parent, TTL of each interface (0: none), three counters, expiry
    ttls = bytearray(VIFS)
    ttls[1] = 1
    router.setsockopt(socket.IPPROTO_IP, MRT_ADD_MFC, struct.pack(
        '=4s4sH32sxxIIIi', source, group, 0, bytes(ttls), 0, 0, 0, 0))


def main():
    router = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    router.setsockopt(socket.IPPROTO_IP, MRT_INIT, 1)
    for number, address in enumerate(sys.argv[1:3]):
        add_interface(router, number, address)
    print('READY', flush=True)
    while True:
        # struct igmpmsg, for a group that the kernel has no entry for: its protocol field is 0
        message = router.recv(65536)
        if message[9] == 0 and message[8] == 1:
            forward(router, message[12:16], message[16:20])


if __name__ == '__main__':
    main()
