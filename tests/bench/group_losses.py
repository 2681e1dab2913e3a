#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts what is lost of each segment of a broadcast title: group_losses.py URL SECONDS

Asks for the schedule, and receives all groups. A packet is lost if its number is missing between two
others of the same transmission. Prints JSON: for each segment, in the order of the title, the packets
that came and those that were lost.
"""

import json
import re
import selectors
import socket
import struct
import sys
import time

from describers import Connection

SO_RCVBUFFORCE = 33


def segments_of(text):
    """Returns (group, port) of the segments that a description says are sent, in the order of the
    title."""
    channels = {number: (group, int(port)) for number, group, port in
                re.findall(r'a=x-weir-channel:(\d+) group=(\S+) port=(\d+)', text)}
    sends = {number: int(first) for number, first in
             re.findall(r'a=x-weir-send:(\d+) .*?\bframes=(\d+)', text)}
    return [channels[number] for number in sorted(sends, key=sends.get)]


class Counter:
    def __init__(self):
        self.came = self.lost = 0
        self._last = None

    def add(self, number):
        """Counts a packet. A number that is not ahead begins another transmission."""
        ahead = (number - self._last) % 65536 if self._last is not None else 1
        self.came += 1
        if 0 < ahead < 32768:
            self.lost += ahead - 1
        self._last = number


def listen(group, port):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    client.bind((group, port))
    client.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + bytes(4))
    return client


def main():
    url, seconds = sys.argv[1], float(sys.argv[2])
    status, text = Connection(url).describe(url, 1)
    assert status == 200, f'the server answers {status}'
    counters, selector = [], selectors.DefaultSelector()
    for group, port in segments_of(text):
        counters.append(Counter())
        selector.register(listen(group, port), selectors.EVENT_READ, counters[-1])
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        for key, _ in selector.select(rest):
            key.data.add(struct.unpack_from('>H', key.fileobj.recv(2048), 2)[0])
    print(json.dumps([{'came': counter.came, 'lost': counter.lost} for counter in counters]))


if __name__ == '__main__':
    main()
