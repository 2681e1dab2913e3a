#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""TCP readers of H.264, some of them slow: drop_readers.py ADDRESS PORT FAST SLOW RATE SECONDS

Packets are framed by RFC 4571. A slow reader reads RATE bits/s. Prints a line of JSON for each
reader, after SECONDS: whether it is slow, the times of its frames in the stream's clock, and for
each whether it can be decoded and how long after its time it came (by this host's clock).
"""

import json
import socket
import struct
import sys
import threading
import time

FRAME = 3600  # ticks of 90 kHz between frames
FU_A, IDR = 28, 5
BUFFER = 65536


class Frames:
    """Collects frames. A frame can be decoded if it is complete, and it is a keyframe or the frame
    before it could be decoded."""

    def __init__(self):
        self.found = []  # (timestamp, decodable, arrival)
        self.next_seq = self.timestamp = None
        self.begin(None)

    def begin(self, timestamp):
        self.timestamp, self.whole, self.key, self.in_unit = timestamp, True, False, False

    def packet(self, data):
        seq, timestamp = struct.unpack_from('>HI', data, 2)
        if timestamp != self.timestamp:
            self.begin(timestamp)
        elif seq != self.next_seq:
            self.whole = False
        self.next_seq = (seq + 1) % 65536
        self._unit(data[12:14])
        if data[1] & 0x80:
            self._end()

    def _unit(self, head):
        kind = head[0] & 31
        if kind == FU_A:
            start, end, kind = head[1] & 0x80, head[1] & 0x40, head[1] & 31
            self.whole &= bool(start) != self.in_unit
            self.in_unit = not end
        self.key |= kind == IDR

    def _end(self):
        last = self.found[-1] if self.found else (None, False)
        follows = last[1] and (self.timestamp - last[0]) % 2**32 == FRAME
        decodable = self.whole and not self.in_unit and (self.key or follows)
        self.found.append((self.timestamp, decodable, time.monotonic()))
        self.begin(None)


def read(connection, rate, end, frames):
    """Reads until `end`, no faster than `rate` bits/s unless that is 0."""
    held, begin, octets = b'', time.monotonic(), 0
    while time.monotonic() < end:
        data = connection.recv(BUFFER if not rate else 4096)
        held += data
        octets += len(data)
        while len(held) >= 2 and len(held) >= 2 + (length := int.from_bytes(held[:2], 'big')):
            frames.packet(held[2:2 + length])
            held = held[2 + length:]
        if rate:
            time.sleep(max(0, begin + octets * 8 / rate - time.monotonic()))


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    fast, slow, rate, seconds = map(int, sys.argv[3:])
    readers = []
    for n in range(fast + slow):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        connection.connect((address, port))
        connection.settimeout(5)
        readers.append((connection, rate if n >= fast else 0, Frames()))
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=read, args=(connection, limit, end, frames))
               for connection, limit, frames in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, limit, frames in readers:
        print(json.dumps({'slow': limit > 0, 'frames': frames.found}), flush=True)


if __name__ == '__main__':
    main()
