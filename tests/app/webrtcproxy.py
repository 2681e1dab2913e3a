# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that speaks WebRTC, and the offers of its clients."""

import os
import re
import socket
import struct
import tempfile
from functools import lru_cache

from goprogram import go_program
from hlsweb import Web
from proc import open_files
from tap import Skip

OFFERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'offers')
SDP, FRAGMENT = 'application/sdp', 'application/trickle-ice-sdpfrag'
ALLOWED = 'GET, HEAD, POST, PATCH, DELETE, OPTIONS'


@lru_cache
def folder():
    """Returns a temporary folder of this process."""
    return tempfile.TemporaryDirectory()


@lru_cache
def program():
    """Returns the path of the reader and publisher by Pion. Skips the test if it cannot be built."""
    return go_program('webrtc', folder().name)


def offer(name='chromium'):
    with open(os.path.join(OFFERS, f'{name}.sdp'), encoding='utf-8') as file:
        return file.read()


class WebrtcProxy(Web):
    """A proxy that serves a clip as /cam over WebRTC."""

    def __init__(self, *words, webrtc=None, **top):
        super().__init__(*words, webrtc={'listen': '127.0.0.1:0', **(webrtc or {})}, **top)

    def ask(self, method, path='/cam/whep', body=None, kind=SDP, **headers):
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        if kind and body is not None:
            headers['Content-Type'] = kind
        status, head, data = self.fetch(path, headers, method, body)
        return status, head, data.decode()

    def post(self, name='chromium', path='/cam/whep', **headers):
        """Begins a session. Returns the path of its URL, its headers and the answer."""
        status, head, text = self.ask('POST', path, offer(name), **headers)
        assert status == 201, (status, text)
        assert head['content-type'] == SDP and head['etag'][0] == '"', head
        found = re.fullmatch(rf'http://127\.0\.0\.1:{self.web_port}(/.*/whi?e?p/[0-9a-f]{{32}})', head['location'])
        assert found, head
        return found[1], head, text

    def readers(self):
        return self.get('/v1/readers')['readers']


def raw_socket():
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError as error:
        raise Skip('raw sockets need root') from error


def udp_ports(pid):
    """The UDP ports of a process."""
    inodes = set(re.findall(r'socket:\[(\d+)\]', ' '.join(open_files(pid))))
    with open(f'/proc/{pid}/net/udp', encoding='ascii') as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [int(row[1].split(':')[1], 16) for row in rows if row[9] in inodes]


def media_port(answer):
    return int(re.search(r'a=candidate:\S+ 1 udp \d+ \S+ (\d+)', answer)[1])


def send_as(raw, client, port, packet):
    """Sends a packet to a port of this machine as if the program `client` had sent it."""
    for source in udp_ports(client.pid):
        raw.sendto(struct.pack('>HHHH', source, port, 8 + len(packet), 0) + packet, ('127.0.0.1', 0))
