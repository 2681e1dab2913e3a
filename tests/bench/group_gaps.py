#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how evenly the frames of a group arrive: group_gaps.py GROUP PORT FRAME_MS SECONDS

Takes the kernel's receive time of the first packet of each frame of one RTP stream. Prints JSON:
the number of frames, the coefficient of variation of the gaps between frames that follow each other
in the stream, how many of them differ by more than half a frame, and how many gaps there are of 0 to
1 ms, 1 to 2 ms, ... up to 99 ms or more.
"""

import json
import socket
import statistics
import struct
import sys
import time

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35


def receive(group, port, seconds):
    """Yields (RTP timestamp, arrival in s) of each packet."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    client.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    client.bind((group, port))
    client.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                      socket.inet_aton(group) + bytes(4))
    client.settimeout(seconds)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data, extra, _, _ = client.recvmsg(2048, 128)
        parts = struct.unpack('=qq', extra[0][2])
        yield struct.unpack_from('>I', data, 4)[0], parts[0] + parts[1] / 1e9


def main():
    group, port, frame, seconds = (sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000,
                                   float(sys.argv[4]))
    gaps, last = [], None
    for timestamp, arrival in receive(group, port, seconds):
        if last and timestamp == last[0]:
            continue
        if last and timestamp > last[0]:  # not between two transmissions of the segment
            gaps.append(arrival - last[1])
        last = timestamp, arrival
    bins = [0] * 100
    for gap in gaps:
        bins[min(99, int(1000 * gap))] += 1
    print(json.dumps({'frames': len(gaps) + 1,
                      'variation': statistics.pstdev(gaps) / statistics.mean(gaps),
                      'uneven': sum(abs(gap - frame) > frame / 2 for gap in gaps),
                      'bins': bins}))


if __name__ == '__main__':
    main()
