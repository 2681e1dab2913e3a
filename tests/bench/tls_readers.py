# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers over TCP or TLS that count bytes: tls_readers.py tcp|tls HOST PORT READERS SECONDS.

Prints PLAYING when all of them play, and the bytes that arrived SECONDS after that.
"""

import selectors
import socket
import ssl
import sys
import time


def request(connection, cseq, method, url, *lines):
    head = ''.join(f'{line}\r\n' for line in (f'CSeq: {cseq}', *lines))
    connection.sendall(f'{method} {url} RTSP/1.0\r\n{head}\r\n'.encode())
    text = b''
    while b'\r\n\r\n' not in text:
        text += connection.recv(1)
    length = [line for line in text.split(b'\r\n') if line.lower().startswith(b'content-length:')]
    left = int(length[0].split(b':')[1]) if length else 0
    while left > 0:
        left -= len(connection.recv(left))
    assert b' 200 ' in text.split(b'\r\n')[0], text
    return text


def connect(kind, host, port):
    connection = socket.create_connection((host, port), 20)
    if kind == 'tls':
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    url = f'rtsp{"s" if kind == "tls" else ""}://{host}:{port}/s'
    request(connection, 1, 'DESCRIBE', url)
    answer = request(connection, 2, 'SETUP', url + '/stream=0',
                     'Transport: RTP/AVP/TCP;unicast;interleaved=0-1').decode()
    session = answer.split('Session: ')[1].split('\r\n')[0].split(';')[0]
    request(connection, 3, 'PLAY', url, f'Session: {session}')
    connection.setblocking(False)
    return connection


def drain(connection):
    """Returns the bytes that have arrived, or -1 at the end of the connection."""
    total = 0
    while True:
        try:
            data = connection.recv(65536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return total
        if not data:
            return -1
        total += len(data)


def main(kind, host, port, readers, seconds):
    selector = selectors.DefaultSelector()
    for _ in range(int(readers)):
        selector.register(connect(kind, host, int(port)), selectors.EVENT_READ)
    print('PLAYING', flush=True)
    end, total = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            got = drain(key.fileobj)
            assert got >= 0, 'the server closed a connection'
            total += got
    print(f'BYTES {total}', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
