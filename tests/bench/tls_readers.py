# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers that count bytes: tls_readers.py KIND HOST PORT READERS SECONDS.

KIND is tcp, tls, tls-srtp (SRTP within TLS), udp, or srtp (over UDP, beside TLS). Prints PLAYING when
all of them play, and the bytes that arrived SECONDS after that; 0 over UDP, where the packets are
left to the kernel, because Python could not take them all.
"""

import pathlib
import re
import selectors
import socket
import ssl
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'support'))

from proc import SIGN_OF_LIFE, free_udp_pair  # noqa: E402
from sealed import ANY_OUTBOUND, Srtp, read_key  # noqa: E402


SOCKETS = []  # over UDP


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


def report(pair, host, answer):
    """Shows life. With SRTP, the key of the proxy serves both directions."""
    packet = SIGN_OF_LIFE
    if key := re.search('data="(.*?)"', answer):
        packet = Srtp(read_key(key[1])[0], ANY_OUTBOUND).seal_rtcp(packet)
    pair[1].sendto(packet, (host, int(re.search(r'server_port=\d+-(\d+)', answer)[1])))


def make_transport(kind):
    """Returns the header Transport, and a pair of sockets or None."""
    profile = 'SAVP' if 'srtp' in kind else 'AVP'
    if kind not in ('udp', 'srtp'):
        return f'RTP/{profile}/TCP;unicast;interleaved=0-1', None
    pair = free_udp_pair('')
    return f'RTP/{profile};unicast;client_port={pair[0].getsockname()[1]}', pair


def connect(kind, host, port):
    connection = socket.create_connection((host, port), 20)
    secure = kind not in ('tcp', 'udp')
    transport, pair = make_transport(kind)
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    url = f'rtsp{"s" if secure else ""}://{host}:{port}/s'
    request(connection, 1, 'DESCRIBE', url)
    answer = request(connection, 2, 'SETUP', url + '/stream=0',
                     f'Transport: {transport}').decode()
    session = answer.split('Session: ')[1].split('\r\n')[0].split(';')[0]
    request(connection, 3, 'PLAY', url, f'Session: {session}')
    if pair:
        report(pair, host, answer)
        SOCKETS.extend(pair)
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
    print(f'BYTES {0 if SOCKETS else total}', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
