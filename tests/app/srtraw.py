# SPDX-License-Identifier: LGPL-2.1-or-later
"""SRT handshakes made by hand, also such as no library sends."""

import random
import socket
import struct

REQUEST, KEYS, STREAM_ID, CONGESTION, FILTER, GROUP = 1, 3, 5, 6, 7, 8
INDUCTION, CONCLUSION = 1, 0xffffffff
FLAGS = 0x0005 # of extensions: the request, and those of the configuration


def words(*numbers):
    return struct.pack(f'>{len(numbers)}I', *numbers)


def text(value):
    """SRT sends texts as words of four bytes, the last one first."""
    value = value.encode()
    value += bytes(-len(value) % 4)
    return b''.join(value[at:at + 4][::-1] for at in range(0, len(value), 4))


def extension(kind, content):
    return struct.pack('>HH', kind, len(content) // 4) + content


def request(stream_id):
    return extension(REQUEST, words(0x00010501, 0xbf, 0x00780078)) + extension(STREAM_ID, text(stream_id))


class NoCookie(AssertionError):
    pass


class RawCaller:
    """A caller on its own port. `answer` is the code of the listener's last handshake, or None."""

    def __init__(self, port, address='127.0.0.1'):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.socket.connect(('127.0.0.1', port))
        self.id = random.randrange(1, 1 << 29)
        self.number = random.randrange(1 << 30)

    def handshake(self, version, flags, kind, cookie, extensions=b'', to=0):
        return words(0x80000000, 0, 0, to, version, flags, self.number, 1500, 8192, kind, self.id, cookie,
                     0x0100007f, 0, 0, 0) + extensions

    def take(self, limit):
        self.socket.settimeout(limit)
        try:
            while True:
                data = self.socket.recv(2000)
                if len(data) >= 64 and data[:2] == b'\x80\x00':
                    return struct.unpack('>16I', data[:64])
        except (TimeoutError, ConnectionError):
            return None

    def fetch_cookie(self, tries=80):
        """Asks as often as SRT's callers do."""
        for _ in range(tries):
            self.socket.send(self.handshake(4, 2, INDUCTION, 0))
            answer = self.take(0.25)
            if answer:
                return answer[11]
        raise NoCookie('the listener gives no cookie')

    def conclude(self, extensions, limit=20, flags=FLAGS, change=None):
        """Fetches a cookie and sends a conclusion, which `change` may alter. Returns the code of refusal, -1 if
        the listener took it, or None if nothing came back in time."""
        data = self.handshake(5, flags, CONCLUSION, self.fetch_cookie(), extensions)
        self.socket.send(change(data) if change else data)
        answer = self.take(limit)
        while answer and answer[9] == INDUCTION: # to a request that was sent again
            answer = self.take(limit)
        return answer and (-1 if answer[9] == CONCLUSION else answer[9] - 1000)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()
