# SPDX-License-Identifier: LGPL-2.1-or-later
"""A TCP flow for line.py, which sends or reads as much as the line carries until it is killed.

    line_tcp.py serve ADDRESS PORT
    line_tcp.py read ADDRESS PORT      prints lines of JSON: `at` in s since 1970, `bytes` so far
"""

import json
import socket
import sys
import time

SIZE = 1 << 16
EVERY = 0.1  # s


def serve(address):
    with socket.create_server(address) as server:
        connection, _ = server.accept()
        data = bytes(SIZE)
        try:
            while True:
                connection.sendall(data)
        except OSError:
            pass  # the reader has left


def read(address):
    total, due = 0, 0
    with socket.create_connection(address, 10) as connection:
        while got := len(connection.recv(SIZE)):
            total += got
            if time.time() >= due:
                due = time.time() + EVERY
                print(json.dumps({'at': time.time(), 'bytes': [total]}), flush=True)


if __name__ == '__main__':
    {'serve': serve, 'read': read}[sys.argv[1]]((sys.argv[2], int(sys.argv[3])))
