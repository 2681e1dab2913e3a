# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients of the listeners beside RTSP, each of which sends changed messages of its protocol."""

import json
import socket
import ssl
import threading

from librtmp import DATA, NULL, VIDEO, command, fields, message, number, text as rtmp_text
from spoil import spoilt
from srtraw import FILTER, KEYS, NoCookie, RawCaller, extension, request, text

HTTP_LINES = (
    'Range: bytes=0-', 'Range: bytes=-99999999', 'Range: bytes=0-0,2-2,4-', 'Range: bytes=9223372036854775807-',
    'If-Range: x', 'If-None-Match: *', 'Connection: close', 'Connection: keep-alive, upgrade', 'Upgrade: h2c',
    'Expect: 100-continue', 'Transfer-Encoding: chunked', 'Content-Length: 5', 'Content-Length: -1',
    'Content-Type: application/json', 'Accept-Encoding: gzip', 'Authorization: Basic ====', 'Authorization: Bearer x',
    'Authorization: Digest username="a", nonce="b", uri="*", response="c"', 'Cookie: weir=1', 'Host: [::1]:x',
    'Host: 127.0.0.1', 'Origin: null', 'Weir-Pace: off', 'X: ' + 'y' * 9000)
PATHS = ('/', '/cam', '/clip', '/films/bigbuckbunny.mp4', '/clip/index.m3u8', '/cam/index.m3u8', '/clip/0.mp4',
         '/none', '/favicon.ico', '/..%2f..%2fetc/passwd', '/clip?layers=', '*', '')
MOUNT = {'upstreams': ['rtsp://127.0.0.1:9/', 'publish'], 'linger': '1s', 'on-demand': True, 'choices': {}, 'user': 'u'}


class Stranger(threading.Thread):
    """Sends until `proxy.over` is set. `.times` counts what it has sent. `.failed` says what went wrong in the
    test itself."""

    def __init__(self, proxy, port, chance, address):
        super().__init__(daemon=True)
        self.proxy, self.port, self.chance, self.address = proxy, port, chance, address
        self.times, self.failed = 0, None

    def _connect(self):
        return socket.create_connection(('127.0.0.1', self.port), 5, (self.address, 0))

    def _send(self, data, wait=0.05):
        """Sends bytes in parts and hears what comes back, or nothing."""
        with self._connect() as connection:
            connection.settimeout(wait)
            try:
                while data:
                    at = self.chance.randrange(1, len(data) + 1)
                    connection.sendall(data[:at])
                    data = data[at:]
                connection.recv(65536)
            except TimeoutError:
                pass

    def run(self):
        while not self.proxy.over.is_set():
            try:
                self.once()
            except (OSError, NoCookie):
                pass  # the proxy may refuse or close at any time, and be busy with others
            except Exception as error:  # pylint: disable=broad-except
                self.failed = f'{type(self).__name__}: {error!r}'
                return
            self.times += 1


class Web(Stranger):
    """Asks the HTTP listener."""

    def _paths(self):
        return PATHS

    def _body(self):
        return b''

    def once(self):
        chance = self.chance
        method = chance.choice(('GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW'))
        body = self._body()
        lines = [f'{method} {chance.choice(self._paths())} HTTP/1.{chance.choice("0112")}', 'Host: 127.0.0.1']
        if body:
            lines += ['Content-Type: application/json', f'Content-Length: {len(body)}']
        lines += chance.sample(HTTP_LINES, chance.randrange(4))
        data = '\r\n'.join(lines).encode() + b'\r\n\r\n' + body
        self._send(spoilt(data, chance) if chance.random() < 0.5 else data * chance.randrange(1, 4))


class Api(Web):
    """Asks the API, and makes, changes and removes a mount of its own."""

    def _paths(self):
        own = '/v1/mounts/extra'
        return ('/', '/v1', '/v1/mounts', '/v1/readers', '/v1/readers/999999', '/v1/graph.svg', '/v1/nothing', '/metrics',
                '/v1/health', own, own, own, own + '?dry-run', '/v1/mounts/%00', '/v1/mounts/' + 'a' * 3000)

    def _body(self):
        body = json.dumps(MOUNT).encode() if self.chance.random() < 0.5 else b''
        return spoilt(body, self.chance) if body and self.chance.random() < 0.7 else body


class Rtmp(Stranger):
    """Publishes at /x/pub, or nearly so."""

    def once(self):
        chance = self.chance
        parts = [command('connect', 1, fields(app=rtmp_text('x'), tcUrl=rtmp_text('rtmp://h/x'))),
                 command('createStream', 2, NULL),
                 message(20, rtmp_text('publish') + number(5) + NULL + rtmp_text('pub')),
                 message(1, bytes([0, 0, chance.randrange(256), 0]), stream=0), message(5, bytes(4), stream=0),
                 message(DATA, rtmp_text('@setDataFrame') + rtmp_text('onMetaData') + fields(width=number(1))),
                 message(VIDEO, b'\x17\0\0\0\0\1\x64\0\x1e\xff\xe1\0\4\x67\x64\0\x1e\1\0\2\x68\xce'),
                 message(VIDEO, b'\x17\1\0\0\0\0\0\0\2\x65\x88', timestamp=chance.randrange(1 << 24)),
                 message(VIDEO, b'\x90hvc1' + chance.randbytes(chance.randrange(60))),
                 message(22, bytes(11) + chance.randbytes(30)), command('FCUnpublish', 6, NULL, rtmp_text('pub'))]
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(parts))
            what = chance.randrange(3)
            if what == 0:
                parts.insert(at, chance.choice(parts))
            elif what == 1:
                parts.append(parts.pop(at))
            else:
                parts[at] = spoilt(parts[at], chance)
        self._send(b'\3' + bytes(2 * 1536) + b''.join(parts), 0.1)


class Srt(Stranger):
    """Calls with changed handshakes, some with a valid cookie, and then sends noise."""

    def _changed(self, data):
        data = bytearray(data)
        for _ in range(self.chance.randrange(4)):
            at = self.chance.randrange(16, len(data))
            if not 44 <= at < 48:  # the cookie
                data[at] = self.chance.choice((0, 1, 3, 4, 127, 128, 255, self.chance.randrange(256)))
        return bytes(data)

    def once(self):
        chance = self.chance
        blocks = (request('publish:x/pub'), request('read:clip'), request('read:none'),
                  extension(FILTER, text('fec,cols:10,rows:5')), extension(FILTER, bytes(4)),
                  extension(KEYS, bytes.fromhex('12202901000000000200020000000404') + chance.randbytes(40)),
                  extension(6, text('file')), extension(8, bytes.fromhex('4000000102000001')))
        with RawCaller(self.port, self.address) as caller:
            if chance.random() < 0.3:
                caller.socket.send(spoilt(caller.handshake(4, 2, 1, 0), chance) or b'x')
                return
            extensions = b''.join(chance.choices(blocks, k=chance.randrange(1, 4)))
            caller.conclude(extensions, 0.05, chance.choice((1, 3, 5, 7, 7)), self._changed)
            for _ in range(chance.randrange(5)):
                caller.socket.send(chance.randbytes(chance.randrange(1, 1400)))


class Tls(Stranger):
    """Begins handshakes of TLS."""

    def once(self):
        outgoing = ssl.MemoryBIO()
        context = ssl.create_default_context()
        try:
            context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname='localhost').do_handshake()
        except ssl.SSLWantReadError:
            pass
        self._send(spoilt(outgoing.read(), self.chance))
