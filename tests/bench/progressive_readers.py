# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads titles or a stream over HTTP on many connections: ADDRESS PORT PATH,... READERS WARM SECONDS.
The readers take the paths in turn. Prints BEGIN after WARM seconds, and BYTES with what came in SECONDS."""

import select
import socket
import sys
import time


def main():
    address, port, paths, *numbers = sys.argv[1:]
    paths = paths.split(',')
    readers, warm, seconds = (int(word) for word in numbers)
    poll, sockets, buffer, total = select.epoll(), {}, bytearray(1 << 20), 0
    for i in range(readers):
        connection = socket.create_connection((address, port), timeout=10)
        connection.sendall(f'GET {paths[i % len(paths)]} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        connection.setblocking(False)
        sockets[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLIN)
    begin = time.monotonic() + warm
    told = False
    while (now := time.monotonic()) < begin + seconds:
        if not told and now >= begin:
            print('BEGIN', flush=True)
            told, total, begin = True, 0, now
        for fd, _ in poll.poll(0.05):
            n = sockets[fd].recv_into(buffer)
            total += n
            if n == 0:
                poll.unregister(fd)
    print('BYTES', total, flush=True)


main()
