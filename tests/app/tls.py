# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers and API clients over TLS: RTSPS, HTTPS, certificates and hostile handshakes."""

import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from contextlib import ExitStack

from certificates import expired_pair
from control import CLIP_URI, rss_kib
from proc import Proc
from proxy import Origin, Read, check_whole, matches, program, wait_for_readers, wait_until
from secured import (HELLO, Secure, TlsRtsp, handshakes, make_certificate, rtspsrc_reads, trust,
                     wait_for_receipt)
from tap import SLOWER, Skip, run, test

HANDSHAKE_S = 10
OF_ADDRESS = 32  # handshakes at once from one address


def live(origin):
    # A reader that begins at an earlier keyframe has shifted timestamps.
    return {'/cam': {'upstream': origin.url, 'join': 'live', 'on-demand': False}}


def s_client(proxy, *words):
    if not shutil.which('openssl'):
        raise Skip('openssl is not on the PATH')
    done = subprocess.run(
        ['openssl', 's_client', '-connect', f'127.0.0.1:{proxy.tls_port}', '-CAfile', proxy.pem,
         *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLOWER, check=False)
    return done.stdout + done.stderr


def ends(connection, within):
    """Waits for the end of a connection. Returns the seconds that it took."""
    began = time.monotonic()
    connection.settimeout(within)
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


def shake(proxy, connection):
    trust(proxy.pem).wrap_socket(connection, server_hostname='127.0.0.1').close()


# ---- clients ----


@test
def gortsplib_gets_every_packet_over_tls():
    with Origin() as origin, Secure(live(origin)) as proxy:
        read = Read(proxy.tls_url(), readers=3, duration=4,
                    expect=origin.expect)
        plain = Read(proxy.url(), readers=1, duration=4, expect=origin.expect)
        check_whole(read.result(), 3)
        check_whole(plain.result(), 1)
        assert proxy.get('/v1/readers')['readers'] == []


@test
def ffmpeg_and_rtspsrc_read_over_tls():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        done = subprocess.run(
            ['ffmpeg', '-v', 'error', '-i', proxy.tls_url(), '-t', '1', '-c', 'copy', '-f', 'null',
             '-'],
            capture_output=True, text=True, timeout=40 * SLOWER, check=False)
        assert done.returncode == 0, done.stderr
        # rtspsrc asks for UDP first, with SRTP.
        rtspsrc_reads(proxy.tls_url(), 'udp+tcp', 'rtph264depay', '!', 'identity', 'eos-after=30',
                      '!', 'fakesink')
        assert len(matches(proxy, r' reader 127\.0\.0\.1:\d+ in: /cam over TCP$')) == 1
        proxy.wait_for_line(r' reader 127\.0\.0\.1:\d+ in: /cam over UDP with SRTP$')


@test
def answers_name_the_scheme_and_the_address_of_the_client():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        client = TlsRtsp(proxy)
        port = client.socket.getsockname()[1]
        _, headers, sdp = client.request('DESCRIBE', proxy.tls_url())
        assert headers['content-base'] == proxy.tls_url() + '/', headers
        assert b' IN IP4 127.0.0.1\r\n' in sdp, sdp
        status, headers, _ = client.play(proxy.tls_url())
        assert status == 200 and f'url={proxy.tls_url()}/stream=0' in headers['rtp-info'], headers
        client.frame()
        # A reader is listed after the answer to its PLAY.
        wait_until(lambda: proxy.get('/v1/readers')['readers'], 10, 'the reader is listed')
        assert proxy.get('/v1/readers')['readers'][0]['peer'] == f'127.0.0.1:{port}'
        client.socket.close()
        proxy.wait_for_line(rf' reader 127\.0\.0\.1:{port} out: /cam: ')


@test
def media_over_udp_in_the_clear_are_refused_beside_a_connection_with_tls():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        client, url = TlsRtsp(proxy), proxy.tls_url()
        assert client.request('DESCRIBE', url)[0] == 200
        for profile in 'RTP/AVP', 'RTP/AVP/UDP', 'RTP/AVPF':
            answer = client.request('SETUP', f'{url}/stream=0', {
                'Transport': f'{profile};unicast;client_port=40000-40001'})
            assert answer[0] == 461, (profile, answer)
        assert client.play(url)[0] == 200  # over TCP, on the same connection


@test
def the_plain_port_can_be_turned_off():
    """with `listen: off` there is no port without TLS"""
    with tempfile.TemporaryDirectory() as folder:
        pem, file = os.path.join(folder, 'p.pem'), os.path.join(folder, 'p.yaml')
        make_certificate(pem)
        with open(file, 'w', encoding='utf-8') as out:
            out.write(f'listen: off\napi: off\ntls: {{certificate: {pem}, listen: 127.0.0.1:0}}\n'
                      f'mounts: {{/cam: {{upstream: "{CLIP_URI}"}}}}\n')
        with Proc(program(), '--config', file) as proxy:
            proxy.wait_for_line(r' serves rtsps://')
            listening = subprocess.run(['ss', '-Hltnp'], capture_output=True, text=True,
                                       check=True).stdout
            assert listening.count(f'pid={proxy.pid},') == 1, listening
            assert not matches(proxy, r' serves rtsp://')


@test
def the_api_speaks_https():
    with tempfile.TemporaryDirectory() as folder:
        pem = os.path.join(folder, 'p.pem')
        make_certificate(pem)
        file = os.path.join(folder, 'p.yaml')
        with open(file, 'w', encoding='utf-8') as out:
            out.write(f'listen: 127.0.0.1:0\napi: 127.0.0.1:0\n'
                      f'tls: {{certificate: {pem}, listen: 127.0.0.1:0, api: yes}}\n'
                      f'mounts: {{/cam: {{upstream: "{CLIP_URI}"}}}}\n')
        with Proc(program(), '--config', file) as proxy:
            base = proxy.wait_for_line(r' api (https://\S+)/v1')[1]
            for path in '/v1/health', '/metrics':
                done = subprocess.run(['curl', '-sS', '--fail', '--cacert', pem, base + path],
                                      capture_output=True, text=True, timeout=20 * SLOWER, check=False)
                assert done.returncode == 0 and done.stdout, (path, done)
            done = subprocess.run(['curl', '-sS', base + '/v1/health'], capture_output=True,
                                  text=True, timeout=20 * SLOWER, check=False)
            assert done.returncode == 60, done  # the certificate is not known to the system
            plain = subprocess.run(['curl', '-sS', base.replace('https', 'http') + '/v1/health'],
                                   capture_output=True, text=True, timeout=20 * SLOWER, check=False)
            assert plain.returncode != 0, plain


# ---- handshakes ----


@test
def only_tls_1_2_and_1_3_are_spoken():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        for version, name in ('-tls1_2', 'TLSv1.2'), ('-tls1_3', 'TLSv1.3'):
            shown = s_client(proxy, version)
            assert f'New, {name}, Cipher is ' in shown and 'Verification: OK' in shown, shown
        for version in '-tls1', '-tls1_1':
            shown = s_client(proxy, version, '-cipher', 'DEFAULT@SECLEVEL=0')
            assert 'Cipher is (NONE)' in shown, shown
        shown = s_client(proxy, '-tls1_2', '-cipher', 'ECDHE-ECDSA-AES128-SHA')
        assert 'Cipher is (NONE)' in shown, shown  # without authenticated encryption


@test
def garbage_in_place_of_a_handshake_is_closed_at_once():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        # A first byte from 0x80 to 0xbf may begin a message of SSL 2 that is longer than the data.
        noise = b'\x7f' + os.urandom(3999)
        for data in (b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n', b'\0' * 4000, noise,
                     b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', b'\x16\x03\x01\xff\xff' + b'x' * 70000):
            try:
                connection = proxy.raw(data)
                took = ends(connection, 5)
            except (BrokenPipeError, ConnectionResetError):
                took = 0
            assert took < 5, data[:10]
        proxy.wait_for_line(r' client 127\.0\.0\.1 refused: TLS: ')
        TlsRtsp(proxy).play(proxy.tls_url())


@test
def stalled_handshakes_are_closed_at_their_deadline_and_hold_nobody_up():
    with Secure({'/cam': {'upstream': CLIP_URI, 'on-demand': False}}) as proxy, \
            ExitStack() as stack:
        began = time.monotonic()
        stalled = [stack.enter_context(proxy.raw(HELLO if n % 2 else b'', f'127.0.1.{1 + n // 25}'))
                   for n in range(100)]
        for _ in range(10):
            start = time.monotonic()
            assert TlsRtsp(proxy).request('DESCRIBE', proxy.tls_url())[0] == 200
            assert time.monotonic() - start < 3
            assert proxy.get('/v1/health')['status'] == 'live'
        assert time.monotonic() - began < HANDSHAKE_S, 'the machine is too slow for this test'
        for connection in stalled:
            ends(connection, 2 * HANDSHAKE_S)
        took = time.monotonic() - began
        assert HANDSHAKE_S - 1 < took < HANDSHAKE_S + 5, took
        assert handshakes(proxy) == {'ok': 10, 'failed': 0, 'timeout': 100, 'refused': 0}
        proxy.wait_for_line(r' refused: TLS: the handshake took too long')


@test
def one_address_has_a_limit_of_handshakes():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy, ExitStack() as stack:
        for _ in range(OF_ADDRESS):
            wait_for_receipt(stack.enter_context(proxy.raw(HELLO)))
        assert ends(proxy.raw(), 5) < 5
        proxy.wait_for_line(r' client 127\.0\.0\.1 refused: too many TLS handshakes at once$')
        assert handshakes(proxy)['refused'] == 1
        shake(proxy, proxy.raw(source='127.0.0.2'))


@test
def a_silent_connection_of_an_address_makes_room_for_its_next_one():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy, ExitStack() as stack:
        first, *others = [stack.enter_context(proxy.raw(b'' if n in (3, 7) else HELLO))
                          for n in range(OF_ADDRESS)]
        for connection in first, *others:
            wait_for_receipt(connection)
        shake(proxy, proxy.raw())
        assert ends(others[2], 5) < 5
        proxy.wait_for_line(r' client 127\.0\.0\.1 refused: too many TLS handshakes at once; '
                            r'this one makes room for another')
        assert handshakes(proxy)['refused'] == 1
        for connection in first, others[6]:
            connection.setblocking(False)
            try:
                assert connection.recv(1) is None, 'it was closed'
            except BlockingIOError:
                pass


# ---- slow readers ----


@test(timeout=120)
def a_reader_over_tls_that_stops_delays_no_other_and_is_closed():
    with Origin() as origin, Secure(live(origin)) as proxy:
        deaf = [TlsRtsp(proxy, 4096) for _ in range(6)]
        for client in deaf:
            assert client.play(proxy.tls_url())[0] == 200
        read = Read(proxy.tls_url(), readers=3, duration=8,
                    expect=origin.expect)
        check_whole(read.result(), 3)
        start = rss_kib(proxy)
        wait_until(lambda: len(matches(proxy, r' out: /cam: the client stopped reading')) == 6, 60,
                   'the readers that stopped are closed')
        assert rss_kib(proxy) - start < 4096, (start, rss_kib(proxy))


@test
def readers_may_leave_in_the_middle_of_a_record():
    with Origin() as origin, Secure(live(origin)) as proxy:
        read = Read(proxy.tls_url(), readers=2, duration=4,
                    expect=origin.expect)
        wait_for_readers(proxy, 2)
        files = len(os.listdir(f'/proc/{proxy.pid}/fd'))
        for n in range(20):
            client = TlsRtsp(proxy)
            client.play(proxy.tls_url())
            client.socket.recv(1 + 3 * n)
            os.close(client.socket.detach())
        check_whole(read.result(), 2)
        wait_until(lambda: len(os.listdir(f'/proc/{proxy.pid}/fd')) < files, 10,
                   'the files are closed')


@test
def the_check_of_the_system_counts_the_files_of_readers_over_tls():
    with tempfile.TemporaryDirectory() as folder:
        pem, file = os.path.join(folder, 'p.pem'), os.path.join(folder, 'p.yaml')
        make_certificate(pem)
        needed = []
        for tls in '', f'tls: {{certificate: {pem}}}\n':
            with open(file, 'w', encoding='utf-8') as out:
                out.write(f'{tls}mounts: {{/cam: {{upstream: "{CLIP_URI}"}}}}\n')
            shown = subprocess.run([program(), '--config', file, '--check-system', '--expect',
                                    '1M,100000'], capture_output=True, text=True, check=False)
            needed.append(int(re.search(r'open files \(RLIMIT_NOFILE\): .*at least (\d+)',
                                        shown.stdout)[1]))
        assert needed[1] - needed[0] == 300000, needed


# ---- certificates ----


@test
def new_connections_get_a_changed_certificate():
    with Secure({'/cam': {'upstream': CLIP_URI}}) as proxy:
        old = TlsRtsp(proxy)
        assert old.fingerprint() == proxy.fingerprint
        old.play(proxy.tls_url())
        seen = len(proxy.lines)
        fresh = make_certificate(proxy.pem, '127.0.0.1', 'proxy.example')
        proxy.wait_for_line(r' tls certificate read: ', 15, seen)
        assert TlsRtsp(proxy).fingerprint() == fresh != proxy.fingerprint
        for _ in range(50):
            old.frame()
        fresh = make_certificate(proxy.pem)
        proxy.signal(signal.SIGHUP)
        proxy.wait_for_line(r' reloaded: ')
        assert TlsRtsp(proxy).fingerprint() == fresh


@test
def a_broken_new_certificate_keeps_the_old_one():
    broken = '', 'garbage', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'
    with ExitStack() as stack:
        proxies = [stack.enter_context(Secure({'/cam': {'upstream': CLIP_URI}})) for _ in broken]
        seen = [len(proxy.lines) for proxy in proxies]
        for proxy, text in zip(proxies, broken):
            with open(proxy.pem + '.new', 'w', encoding='utf-8') as file:
                file.write(text)
            shutil.copy(proxy.pem, proxy.pem + '.kept')
            os.rename(proxy.pem + '.new', proxy.pem)
        for proxy, start in zip(proxies, seen):
            proxy.wait_for_line(r' tls certificate not read again; the old one stays in use: \S+ ',
                                15, start)
            os.rename(proxy.pem + '.kept', proxy.pem)
            assert TlsRtsp(proxy).fingerprint() == proxy.fingerprint
        for proxy, start in zip(proxies, seen):
            proxy.wait_for_line(r' tls certificate read: ', 15, start)


def refused(tls):
    """Returns what the check of a configuration with these keys of `tls` prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'proxy.yaml')
        with open(file, 'w', encoding='utf-8') as out:
            out.write(f'tls: {tls}\nmounts:\n  /cam: {{upstream: "{CLIP_URI}"}}\n')
        done = subprocess.run([program(), '--config', file, '--check-config'], capture_output=True,
                              text=True, timeout=20 * SLOWER, check=False)
        assert done.returncode == 2, done
        return done.stderr.replace(file, 'FILE').replace('rtsp-proxy: ', '').strip()


def key_tool(*words):
    if not shutil.which('openssl'):
        raise Skip('openssl is not on the PATH')
    subprocess.run(['openssl', *words], capture_output=True, check=True)


@test
def wrong_files_are_named_with_their_cause():
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)
        make_certificate(path('a.pem'))
        make_certificate(path('b.pem'))
        with open(path('junk'), 'w', encoding='utf-8') as file:
            file.write('junk\n')
        key_tool('pkey', '-in', path('a.pem'), '-aes256', '-passout', 'pass:x', '-out',
                 path('locked.pem'))
        key_tool('pkey', '-in', path('a.pem'), '-out', path('key.pem'))
        key_tool('x509', '-in', path('a.pem'), '-out', path('certificate.pem'))
        certificate = f'certificate: {path("a.pem")}'
        for tls, wrong in (
                ('yes', 'FILE:1:6: tls: expected {certificate: FILE}, such as {certificate: proxy.pem}'),
                (f'{{key: {path("a.pem")}}}',
                 'FILE:1:6: tls: expected {certificate: FILE}, such as {certificate: proxy.pem}'),
                (f'{{certificate: {path("none")}}}',
                 f'FILE:1:20: certificate: cannot read {path("none")}: no such file'),
                (f'{{certificate: {folder}}}',
                 f'FILE:1:20: certificate: {folder} is not a regular file'),
                (f'{{certificate: {path("junk")}}}',
                 f'FILE:1:20: certificate: {path("junk")} holds no certificate in PEM form '
                 '(-----BEGIN CERTIFICATE-----)'),
                (f'{{certificate: {path("certificate.pem")}}}',
                 f'FILE:1:20: key: {path("certificate.pem")} holds no private key in PEM form '
                 '(-----BEGIN PRIVATE KEY-----)'),
                (f'{{key: {path("b.pem")}, {certificate}}}',
                 f'FILE:1:12: key: the key in {path("b.pem")} does not belong to the first '
                 f'certificate in {path("a.pem")}'),
                (f'{{key: {path("locked.pem")}, {certificate}}}',
                 f'FILE:1:12: key: the key in {path("locked.pem")} is encrypted; write one without '
                 'a password with openssl pkey'),
                (f'{{key: {path("junk")}, {certificate}}}',
                 f'FILE:1:12: key: {path("junk")} holds no private key in PEM form '
                 '(-----BEGIN PRIVATE KEY-----)'),
                (f'{{{certificate}, listen: here}}',
                 f'FILE:1:{len(certificate) + 17}: listen: "here" is not ADDR:PORT; write it like '
                 '0.0.0.0:8554')):
            got = refused(tls)
            assert got == wrong, (got, wrong)
        assert refused('{}\nlisten: off').startswith('FILE:1:6: tls: expected')


@test
def an_expired_certificate_is_named_in_the_log():
    with tempfile.TemporaryDirectory() as folder:
        with Secure({'/cam': {'upstream': CLIP_URI}}, tls={'certificate': expired_pair(folder)}) as proxy:
            proxy.wait_for_line(r' warning: the tls certificate in \S+/old\.pem has expired on ')


@test
def make_certificate_writes_a_private_file_and_overwrites_none():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.pem')
        make_certificate(path, 'proxy.example', '192.0.2.7', '2001:db8::1')
        assert os.stat(path).st_mode & 0o777 == 0o600
        text = ssl._ssl._test_decode_cert(path)
        assert ('DNS', 'proxy.example') in text['subjectAltName'], text
        assert ('IP Address', '192.0.2.7') in text['subjectAltName'], text
        with open(path, 'rb') as file:
            before = file.read()
        done = subprocess.run([program(), 'make-certificate', path], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1 and 'the file exists; remove it first' in done.stderr, done
        with open(path, 'rb') as file:
            assert file.read() == before
        for words in ([], ['a.pem', 'b.pem'], ['--host']):
            done = subprocess.run([program(), 'make-certificate', *words], capture_output=True,
                                  check=False)
            assert done.returncode == 2, (words, done)


if __name__ == '__main__':
    run(at_once=4)
