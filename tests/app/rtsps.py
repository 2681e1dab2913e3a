# SPDX-License-Identifier: LGPL-2.1-or-later
"""The light client reads servers over TLS. The test runs in a mount namespace, in which the system
trusts the certificate of the test's servers."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from control import CLIP_URI, Controlled
from pulled import SETTINGS, check_plays, is_down, play, pulled
from proxy import wait_until
from scripted import KEY_PICTURE, VIDEO, Server, rtp
from tap import Skip, run, test

FOLDER = 'WEIR_TEST_CERTIFICATES'  # of the certificate and its key; set in the namespace
TRUSTED = '/etc/ssl/certs/ca-certificates.crt'


def enter_namespace():
    """Starts this program again in a mount namespace of its own; returns why it cannot."""
    unshare = ['unshare', '-m'] if os.geteuid() == 0 else ['unshare', '-rm']
    for name in 'unshare', 'openssl', 'mount':
        if not shutil.which(name):
            return f'{name} is not on the PATH'
    if not os.path.exists(TRUSTED):
        return f'{TRUSTED} is missing'
    if subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode != 0:
        return f'{" ".join(unshare)} is not allowed here'
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = (os.path.join(folder, name) for name in ('key.pem', 'certificate.pem'))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key,
                        '-out', certificate, '-days', '2', '-subj', '/CN=127.0.0.1', '-addext',
                        'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)
        trust = f'mount --bind {certificate} {TRUSTED} && exec "$0" "$@"'
        sys.exit(subprocess.run([*unshare, 'sh', '-c', trust, sys.executable, *sys.argv],
                                env={**os.environ, FOLDER: folder}, check=False).returncode)


LACK = None if FOLDER in os.environ else enter_namespace()


class TlsServer(Server):
    """Serves over TLS. Later connections wait for `greets` before their handshake. `failed` counts
    the handshakes that failed."""

    def __init__(self, *arguments, **settings):
        if LACK:
            raise Skip(LACK)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(os.path.join(os.environ[FOLDER], 'certificate.pem'),
                                      os.path.join(os.environ[FOLDER], 'key.pem'))
        self.connections = self.failed = 0
        self.greets = threading.Event()
        super().__init__(*arguments, **settings)
        self.url = self.url.replace('rtsp:', 'rtsps:')

    def accept(self):
        connection = super().accept()
        self.connections += 1
        if self.connections > 1:
            self.greets.wait()
        try:
            return self._context.wrap_socket(connection, server_side=True)
        except OSError:
            self.failed += 1
            raise


@test
def media_arrive_over_tls_and_beside_it():
    for transport in 'tcp', 'udp':
        with pulled(TlsServer(play), transport=transport) as proxy:
            check_plays(proxy)


@test
def a_server_over_tls_that_does_not_read_delays_no_other():
    def early(session):
        try:
            while True:
                session.connection.sendall(b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n' * 1000)
        except OSError:
            pass

    is_down(TlsServer(lambda session: session.left.wait(), early=early),
            'the upstream does not read what is sent to it')


@test
def a_mount_may_be_removed_while_it_connects_again():
    def close(session):
        for seq in range(50):
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE))
        session.connection.shutdown(socket.SHUT_RDWR)

    server = TlsServer(close)
    mount = {'upstream': server.url, **SETTINGS, 'transport': 'udp', 'read-timeout': '20s'}
    with server, Controlled({'/clip': {'upstream': CLIP_URI}}) as proxy:
        assert proxy.http('PUT', '/v1/mounts/cam', mount)[0] == 201
        proxy.wait_for_line(' mount /cam up: ', 10)
        wait_until(lambda: server.connections == 2, 5, 'another connection')
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] == 200
        server.greets.set()
        # A slow machine may close the connection before it is made.
        wait_until(lambda: len(server.sessions) == 2 or server.failed, 5, 'the handshake')
        for session in server.sessions[1:]:
            assert session.left.wait(5), session.asked
            assert session.asked in ([], ['TEARDOWN']), session.asked


if __name__ == '__main__':
    run()
