#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishes pictures that show when they were made.

    glass_source.py RTSP-URL

A picture has 32 blocks, 8 in a row, white for 1 and black for 0, the highest bit first: 24 bits of
the time in ms since the epoch, and the sum of their three bytes."""

import subprocess
import sys
import time

WIDTH, HEIGHT, RATE = 320, 180, 25
COLUMNS, ROWS = 8, 4
COLOURLESS = bytes([128]) * (WIDTH * HEIGHT // 2)


def picture(ms):
    """Returns a picture in I420."""
    value = ms % (1 << 24)
    check = sum(value.to_bytes(3, 'big')) & 0xff
    bits = f'{value << 8 | check:032b}'
    lines = [b''.join((b'\xeb' if bit == '1' else b'\x10') * (WIDTH // COLUMNS) for bit in bits[at:at + COLUMNS])
             for at in range(0, COLUMNS * ROWS, COLUMNS)]
    return b''.join(line * (HEIGHT // ROWS) for line in lines) + COLOURLESS


def main():
    sender = subprocess.Popen(
        ['ffmpeg', '-nostdin', '-v', 'error', '-fflags', 'nobuffer', '-use_wallclock_as_timestamps', '1', '-f', 'rawvideo',
         '-pix_fmt', 'yuv420p', '-s', f'{WIDTH}x{HEIGHT}', '-r', str(RATE), '-i', 'pipe:0', '-c:v', 'libx264', '-preset',
         'ultrafast', '-tune', 'zerolatency', '-g', str(RATE), '-b:v', '1M', '-f', 'rtsp', '-rtsp_transport', 'tcp',
         sys.argv[1]], stdin=subprocess.PIPE)
    start = time.monotonic()
    n = 0
    while sender.poll() is None:
        time.sleep(max(start + n / RATE - time.monotonic(), 0))
        n += 1
        try:
            sender.stdin.write(picture(int(time.time() * 1000)))
            sender.stdin.flush()
        except BrokenPipeError:
            break
    return sender.wait()


if __name__ == '__main__':
    sys.exit(main())
