# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sends a stream in the form of VP8 with three temporal layers to a port of this machine, for line.py,
until it is killed. Nobody decodes it: its pictures have the sizes that the rates ask for.

    line_source.py PORT RATE RATE RATE

The rates are those of one, two and all layers, in bit/s.
"""

import os
import socket
import struct
import sys
import time

FPS, GROUP = 30, 60            # pictures a second; from one keyframe to the next
LAYERS = 0, 2, 1, 2            # of four pictures
KEY_PART = 0.1                 # of the bits of layer 0
MTU, PT, SSRC, CLOCK = 1100, 96, 0x51c, 90000
KEY_TAG = b'\x10\x02\0\x9d\x01\x2a\x80\x02\x68\x01'  # 640 x 360
OTHER_TAG = b'\x11\x02\0'


def sizes(rates):
    """Returns the bytes of a keyframe, and those of another picture of each layer."""
    seconds = GROUP / FPS
    layers = [rate - below for rate, below in zip(rates, [0, *rates])]
    key = int(layers[0] * KEY_PART * seconds / 8)
    numbers = [GROUP // 4 - 1, GROUP // 4, GROUP // 2]
    return key, [int((layer * seconds / 8 - (key if at == 0 else 0)) / number)
                 for at, (layer, number) in enumerate(zip(layers, numbers))]


def packets(picture, base, layer, is_key, size):
    """Yields the payloads of a picture."""
    left = (KEY_TAG if is_key else OTHER_TAG) + os.urandom(max(1, size - 10))
    first = True
    while left:
        head = struct.pack('>BBHBB', 0x80 | 0x10 * first, 0xe0, 0x8000 | picture % 0x8000, base % 256, layer << 6)
        yield head + left[:MTU]
        left, first = left[MTU:], False


def main():
    port, rates = int(sys.argv[1]), [float(rate) for rate in sys.argv[2:5]]
    key, others = sizes(rates)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect(('127.0.0.1', port))
    begin, seq, base, picture = time.monotonic(), 0, 0, 0
    while True:
        time.sleep(max(0, begin + picture / FPS - time.monotonic()))
        is_key, layer = picture % GROUP == 0, LAYERS[picture % 4]
        base += layer == 0
        payloads = list(packets(picture, base, layer, is_key, key if is_key else others[layer]))
        for at, payload in enumerate(payloads):
            head = struct.pack('>BBHII', 0x80, PT | 0x80 * (at + 1 == len(payloads)), seq % 65536,
                               picture * CLOCK // FPS % 2 ** 32, SSRC)
            try:
                out.send(head + payload)
            except ConnectionRefusedError:
                pass  # nobody listens yet
            seq += 1
        picture += 1


if __name__ == '__main__':
    main()
