# SPDX-License-Identifier: LGPL-2.1-or-later
"""The light client reads servers over TLS. The test runs in a mount namespace, in which the system
trusts the certificate of the test's servers."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from certificates import expired_pair
from control import CLIP_URI, Controlled
from pulled import SETTINGS, check_plays, is_down, play, pulled
from proxy import program, wait_until
from scripted import KEY_PICTURE, SDP, VIDEO, Server, rtp
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

    def __init__(self, *arguments, pem=None, **settings):
        if LACK:
            raise Skip(LACK)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pem or os.path.join(os.environ[FOLDER], 'certificate.pem'),
                                      pem or os.path.join(os.environ[FOLDER], 'key.pem'))
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


# ---- which certificates are trusted ----


CLIENTS = 'light', 'rtspsrc'


def pair(folder, name, *hosts):
    """Makes a pair that signs itself. Returns its file and its fingerprint."""
    path = os.path.join(folder, name)
    words = [word for host in hosts for word in ('--host', host)]
    done = subprocess.run([program(), 'make-certificate', *words, path], capture_output=True,
                          text=True, check=True)
    return path, done.stdout.split()[-1]


@test
def certificates_that_nobody_vouches_for_are_refused_with_their_fingerprint():
    with tempfile.TemporaryDirectory() as folder:
        own, seen = pair(folder, 'own.pem', '127.0.0.1')
        for client in CLIENTS:
            is_down(TlsServer(play, pem=own), 'the certificate of the upstream is not trusted: '
                    f'its authority is unknown; its fingerprint is {seen}', client=client)


@test
def certificates_that_expired_or_are_for_another_host_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        other, _ = pair(folder, 'other.pem', 'camera.example')
        old = expired_pair(folder)
        for client in CLIENTS:
            is_down(TlsServer(play, pem=other), 'the certificate of the upstream is not trusted: '
                    'it is for another host; its fingerprint is [0-9A-F:]+', client=client, **{'tls-ca': other})
            is_down(TlsServer(play, pem=old), 'the certificate of the upstream is not trusted: '
                    '.*it has expired.*; its fingerprint is [0-9A-F:]+', client=client, **{'tls-ca': old})


@test
def a_fingerprint_admits_one_certificate_only():
    """tls-fingerprint admits the certificate that it names, and not even a valid one beside it"""
    with tempfile.TemporaryDirectory() as folder:
        own, seen = pair(folder, 'own.pem', 'camera.example')
        for text in seen, seen.replace(':', '').lower():
            with pulled(TlsServer(play, pem=own), transport='tcp',
                        **{'tls-fingerprint': text}) as proxy:
                check_plays(proxy)
        # The system trusts the certificate of this server.
        is_down(TlsServer(play), 'the certificate of the upstream is not the one of '
                'tls-fingerprint; its fingerprint is [0-9A-F:]+', **{'tls-fingerprint': seen})


@test
def an_authority_of_ones_own_or_none_can_be_chosen():
    with tempfile.TemporaryDirectory() as folder:
        own, _ = pair(folder, 'own.pem', '127.0.0.1')
        for client in CLIENTS:
            for settings in {'tls-ca': own}, {'tls-verify': False}:
                with pulled(TlsServer(play, pem=own), client=client, transport='tcp',
                            **settings) as proxy:
                    check_plays(proxy)
        # Only the authorities of the file are trusted.
        is_down(TlsServer(play), 'the certificate of the upstream is not trusted: .*',
                **{'tls-ca': own})


@contextlib.contextmanager
def isolated(server, **settings):
    mount = {'upstream': server.url, **SETTINGS, **settings}
    with server, Controlled({'/cam': mount}, isolate='yes') as proxy:
        yield proxy


@test
def a_worker_process_trusts_whom_the_mount_trusts():
    """with isolate: yes, tls-ca and tls-verify hold, and tls-fingerprint is not left unchecked"""
    with tempfile.TemporaryDirectory() as folder:
        own, seen = pair(folder, 'own.pem', '127.0.0.1')
        for client in CLIENTS:
            for settings in {'tls-ca': own}, {'tls-verify': False}:
                with isolated(TlsServer(play, pem=own), client=client, **settings) as proxy:
                    check_plays(proxy)
            with isolated(TlsServer(play, pem=own), client=client) as proxy:
                proxy.wait_for_line(r' mount /cam down: .*its authority is unknown')
        # The system trusts the certificate of this server.
        with isolated(TlsServer(play), **{'tls-fingerprint': seen}) as proxy:
            proxy.wait_for_line(' mount /cam down: .*: tls-fingerprint is not checked in a worker process: '
                                'set isolate to auto or no;')


@test
def tracks_with_srtp_are_read_within_the_connection():
    sdp = {VIDEO: SDP[VIDEO].replace('RTP/AVP', 'RTP/SAVP')}
    server = TlsServer(play, sdp=sdp)
    with pulled(server) as proxy:
        check_plays(proxy)
    transports = [headers['transport'] for session in server.sessions
                  for method, _, headers in session.requests if method == 'SETUP']
    assert transports and all(each.startswith('RTP/AVP/TCP') for each in transports), transports
    is_down(TlsServer(play, sdp=sdp), 'the upstream offers no track that can be relayed',
            transport='udp')


@test
def a_redirect_does_not_leave_tls():
    server = TlsServer(play, mangle=lambda method, answer: (
        f'RTSP/1.0 302 Found\r\nCSeq: 1\r\nLocation: {server.url.replace("rtsps", "rtsp")}\r\n\r\n'
        .encode() if method == 'DESCRIBE' else answer))
    is_down(server, 'redirected from rtsps:// to rtsp://, which the proxy does not follow')


@test
def wrong_keys_of_trust_are_named():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'proxy.yaml')
        for key, value, wrong in (
                ('tls-fingerprint', '5A:0B', 'expected the SHA-256 of a certificate: 64 hexadecimal '
                 'digits, such as 5A:0B:...'),
                ('tls-verify', 'maybe', '"maybe" is not yes or no'),
                ('tls-ca', f'{folder}/none', f'{folder}/none holds no certificate in PEM form: no '
                 'such file, or no certificate in it')):
            with open(file, 'w', encoding='utf-8') as out:
                out.write(f'mounts:\n  /cam:\n    upstream: rtsps://192.0.2.7/x\n'
                          f'    {key}: {value}\n')
            done = subprocess.run([program(), '--config', file, '--check-config'],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 2, done
            assert done.stderr.strip().endswith(f'proxy.yaml:4:{7 + len(key)}: {key}: {wrong}'), done
        with open(file, 'w', encoding='utf-8') as out:
            out.write('mounts:\n  /cam:\n    upstream: rtsps://192.0.2.7/x\n    client: rtspsrc\n'
                      f'    tls-fingerprint: {"AB" * 32}\n')
        done = subprocess.run([program(), '--config', file, '--check-config'], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 2 and 'tls-fingerprint needs client: light' in done.stderr, done


@test
def keys_of_trust_are_refused_for_streams_over_https():
    """tls-ca, tls-fingerprint and tls-verify: no are refused where they would have no effect"""
    with tempfile.TemporaryDirectory() as folder:
        file, (ca, _) = os.path.join(folder, 'proxy.yaml'), pair(folder, 'ca.pem', 'camera')
        for line, status in (('tls-verify: no', 2), (f'tls-fingerprint: {"AB" * 32}', 2),
                             (f'tls-ca: {ca}', 2), ('tls-verify: yes', 0)):
            with open(file, 'w', encoding='utf-8') as out:
                out.write('mounts:\n  /cam:\n    upstreams: [rtsps://192.0.2.7/x, '
                          f'https://192.0.2.7/x.ts]\n    {line}\n')
            done = subprocess.run([program(), '--config', file, '--check-config'],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == status, done
            key = line if 'verify' in line else line.split(':')[0]
            assert not status or f'/cam: {key} does not work with a stream over https' in done.stderr


if __name__ == '__main__':
    run()
