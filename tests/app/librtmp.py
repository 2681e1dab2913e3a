# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTMP publisher of bytes, for what no encoder sends. It shares no code with the proxy."""

import socket
import struct

AUDIO, VIDEO, DATA, COMMAND, AGGREGATE = 8, 9, 18, 20, 22
EXTENDED = 0xffffff


def number(value):
    return b'\0' + struct.pack('>d', value)


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return b'\2' + struct.pack('>H', len(value)) + value


def fields(**values):
    return b'\3' + b''.join(text(name)[1:] + value for name, value in values.items()) + b'\0\0\x09'


NULL = b'\5'


def message(kind, body, timestamp=0, chunks=4, stream=1, size=128, repeats=True):
    """Returns the chunks of a message. An extended timestamp is in each, or in the first only."""
    extension = struct.pack('>I', timestamp) if timestamp >= EXTENDED else b''
    head = struct.pack('>B3s3sB', chunks, min(timestamp, EXTENDED).to_bytes(3, 'big'), len(body).to_bytes(3, 'big'),
                       kind)
    parts = [body[at:at + size] for at in range(0, len(body), size)] or [b'']
    between = bytes([0xc0 | chunks]) + (extension if repeats else b'')
    return head + struct.pack('<I', stream) + extension + between.join(parts)


def tag(kind, body, timestamp):
    """Returns an FLV tag, which aggregate messages consist of."""
    return (bytes([kind]) + len(body).to_bytes(3, 'big') + (timestamp & 0xffffff).to_bytes(3, 'big')
            + bytes([timestamp >> 24, 0, 0, 0]) + body + struct.pack('>I', len(body) + 11))


def command(name, transaction, *values):
    return message(COMMAND, text(name) + number(transaction) + b''.join(values), chunks=3, stream=0)


class Publisher:
    """A connection. Read what the server says with answers()."""

    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), 30)
        self.socket.settimeout(30)
        self.size = 128
        self.lengths = {}

    def send(self, data):
        self.socket.sendall(data)

    def take(self, n):
        data = b''
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise EOFError(f'{len(data)} of {n} bytes')
            data += part
        return data

    def shake_hands(self):
        hello = bytes(8) + bytes(range(256)) * 6
        hello = hello[:1536]
        self.send(b'\3' + hello)
        answer = self.take(1 + 2 * 1536)
        assert answer[0] == 3 and answer[1537:] == hello
        self.send(answer[1:1537])
        return self

    def answer(self):
        """Returns the type and the body of the next message, which the server sends as one chunk."""
        head = self.take(12)
        assert head[0] >> 6 == 0, head
        length = int.from_bytes(head[4:7], 'big')
        return head[7], self.take(length)

    def until(self, wanted):
        """Returns the first command with this text in it."""
        while True:
            kind, body = self.answer()
            if kind == COMMAND and wanted.encode() in body:
                return body

    def ask(self, app, name):
        """Does all that OBS does before it publishes."""
        self.shake_hands()
        self.send(command('connect', 1, fields(app=text(app), type=text('nonprivate'), tcUrl=text('rtmp://h/' + app))))
        self.until('NetConnection.Connect.Success')
        self.send(command('releaseStream', 2, NULL, text(name)) + command('FCPublish', 3, NULL, text(name))
                  + command('createStream', 4, NULL))
        for transaction in 2, 3, 4:
            assert number(transaction) in self.until('_result')
        self.send(message(COMMAND, text('publish') + number(5) + NULL + text(name) + text('live')))
        return self

    def publish(self, app, name=''):
        self.ask(app, name).until('NetStream.Publish.Start')
        self.send(message(1, struct.pack('>I', 1 << 20), chunks=2, stream=0))
        self.size = 1 << 20
        return self

    def media(self, kind, body, timestamp, repeats=True):
        self.send(message(kind, body, timestamp, size=self.size, repeats=repeats))

    def is_closed(self):
        """Waits for the end of the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()
