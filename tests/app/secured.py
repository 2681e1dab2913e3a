# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy with a TLS port, and a client that sends any request over it."""

import fcntl
import hashlib
import os
import re
import socket
import ssl
import struct
import subprocess
import tempfile
import termios

from control import Controlled
from proc import Rtsp
from proxy import program, wait_until
from sanitized import stock_environment
from tap import SLOWER

HELLO = b'\x16\x03\x01\x02\x00\x01\x00\x01'  # the beginning of a ClientHello


def make_certificate(path, *hosts):
    """Makes a pair with the proxy's own command. Returns its fingerprint."""
    if os.path.exists(path):
        os.remove(path)
    words = [word for host in hosts or ('127.0.0.1',) for word in ('--host', host)]
    done = subprocess.run([program(), 'make-certificate', *words, path], capture_output=True,
                          text=True, check=True)
    return done.stdout.split()[-1]


def trust(path):
    return ssl.create_default_context(cafile=path)


def handshakes(proxy):
    """Returns the metric by result."""
    found = re.findall(r'^weir_tls_handshakes_total\{result="(\w+)"\} (\d+)$',
                       proxy.get('/metrics').decode(), re.M)
    return {result: int(n) for result, n in found}


def wait_for_receipt(connection):
    """Waits until the kernel of the other side has all bytes."""
    def left():
        return struct.unpack('i', fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]

    wait_until(lambda: left() == 0, 10, 'the bytes are acknowledged')


class TlsRtsp(Rtsp):
    """A client of RTSPS that sends any request. `kernel` is the size of its receive buffer."""

    def __init__(self, proxy, kernel=None):
        plain = socket.socket()
        if kernel:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, kernel)
        plain.settimeout(10)
        plain.connect(('127.0.0.1', proxy.tls_port))
        self.socket = trust(proxy.pem).wrap_socket(plain, server_hostname='127.0.0.1')
        self.cseq, self.session, self.frames, self._buffer = 0, None, [], b''

    def play(self, url, tracks=2):
        assert self.request('DESCRIBE', url)[0] == 200
        for n in range(tracks):
            answer = self.request('SETUP', f'{url}/stream={n}', {
                'Transport': f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'})
            assert answer[0] == 200, answer
        return self.request('PLAY', url)

    def fingerprint(self):
        digest = hashlib.sha256(self.socket.getpeercert(True)).hexdigest().upper()
        return ':'.join(digest[i:i + 2] for i in range(0, 64, 2))


class Secure(Controlled):
    """The proxy with a TLS port, and its certificate in `.pem`."""

    def __init__(self, mounts, tls=None, **top):
        self._folder = tempfile.TemporaryDirectory()
        self.pem = os.path.join(self._folder.name, 'proxy.pem')
        self.fingerprint = make_certificate(self.pem)
        keys = {'listen': '127.0.0.1:0', 'certificate': self.pem, **(tls or {})}
        super().__init__(mounts, tls=keys, **top)
        self.tls_port = int(self.wait_for_line(r' serves rtsps://\S+:(\d+)/')[1])

    def tls_url(self, path='/cam'):
        return f'rtsps://127.0.0.1:{self.tls_port}{path}'

    def raw(self, data=b'', source=None):
        """Returns a TCP connection to the TLS port, after sending `data`."""
        where = (source, 0) if source else None
        connection = socket.create_connection(('127.0.0.1', self.tls_port), 10, where)
        connection.sendall(data)
        return connection


def rtspsrc_reads(url, protocols, *more):
    """GStreamer's player reads until the pipeline `more` ends the stream.

    Link no pad with a caps filter: two threads that link pads of rtspsrc at the same time would each
    make a filter, and the one for sound could take the place of the other.
    """
    for _ in range(3):
        done = subprocess.run(
            ['gst-launch-1.0', '--no-fault', 'rtspsrc', f'location={url}', 'tls-validation-flags=0',
             f'protocols={protocols}', 'timeout=20000000', '!', *more],
            capture_output=True, text=True, timeout=180 * SLOWER, check=False, env=stock_environment())
        # Over UDP, the threads for RTP and RTCP both add their stream to GStreamer's srtpdec when
        # they begin: two of 400 runs crashed on a busy machine.
        if done.returncode >= 0:
            break
    # Its PAUSE at the end may fail, because the program ends.
    assert 'Got EOS' in done.stdout, done
