# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams that try to use the proxy against its readers or against other hosts."""

import contextlib
import os
import re
import socket
import struct
import threading
import time

from proc import Rtsp
from proxy import CLIENT, QUICK, Proxy, wait_until
from scripted import (KEY_PICTURE, PICTURE, SSRC, VIDEO, Server, adding, changing, describing,
                      refusing, rtp, sender_report)
from tap import run, test

PATIENCE = 60 if os.environ.get('WEIR_SANITIZER_RUNTIME') else 20
SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n'
TRACK = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n'
TCP = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}


def play(session):
    start, seq = time.monotonic(), 0
    try:
        while not session.left.is_set():
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE if seq % 25 == 0 else PICTURE))
            seq += 1
            time.sleep(max(0, start + seq * 0.02 - time.monotonic()))
    except OSError:
        pass


class Trap:
    """A server that nobody may be sent to. `.connections` counts connections, `.data` has what
    came."""

    def __init__(self):
        self._socket = socket.create_server(('127.0.0.1', 0))
        self.port = self._socket.getsockname()[1]
        self.connections, self.data = 0, []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer = self._socket.accept()[0]
                self.connections += 1
                peer.settimeout(2)
                with contextlib.suppress(OSError), peer:
                    self.data.append(peer.recv(4096))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextlib.contextmanager
def served(servers, **settings):
    """A proxy with a mount /N for each upstream, which gets credentials, and a good mount."""
    good = Server(play)
    settings = {**QUICK, 'transport': 'tcp', **settings}
    mounts = {f'/{n}': {'upstream': server.url.replace('//', '//user:S3cr3t@'), **settings}
              for n, server in enumerate(servers)}
    mounts['/good'] = {'upstream': good.url, **settings, 'on-demand': False}
    try:
        with Proxy(mounts) as proxy:
            yield proxy
            assert proxy.ask('DESCRIBE', '/good')[0] == 200
            proxy.check_alive()
    finally:
        for server in good, *servers:
            server.__exit__()


# ---- other hosts ----


@test
def an_upstream_cannot_send_the_proxy_elsewhere():
    """an upstream cannot make the proxy connect to another host, port or scheme"""
    with Trap() as trap:
        evil = f'rtsp://127.0.0.1:{trap.port}/x'
        described = [
            SDP + TRACK + f'a=control:{evil}\r\n',
            SDP + f'a=control:{evil}\r\n' + TRACK + 'a=control:track0\r\n',
            SDP + f'a=control:{evil}\r\n' + TRACK + f'a=control:{evil}\r\n',
            SDP + TRACK + f'a=control:{evil.replace("rtsp", "rtsps")}\r\n',
            SDP + TRACK + f'a=control:{evil.replace("rtsp", "http")}\r\n',
            SDP + TRACK + f'a=control://127.0.0.1:{trap.port}/track0\r\n',
            SDP + TRACK + f'a=control:rtsp://127.0.0.1:{trap.port}\r\na=control:track0\r\n']
        mangles = [describing(each.encode()) for each in described]
        mangles += [changing(b'Content-Base', evil.encode() + b'/'),
                    adding(f'Content-Location: {evil}/'.encode()),
                    changing(b'Transport', f'RTP/AVP/TCP;interleaved=0-1;destination=127.0.0.1;'
                             f'source=127.0.0.1;url={evil}'.encode())]
        with served([Server(play, mangle=mangle) for mangle in mangles]) as proxy:
            for n in range(len(mangles)):
                # The track may be refused, or be asked for on the connection that is there.
                assert proxy.ask('DESCRIBE', f'/{n}', PATIENCE)[0] in (200, 503), n
        assert not trap.connections, trap.data


@test
def redirects_lead_to_no_other_server():
    """redirects to another host, port or scheme bring the other server no request"""
    with Trap() as trap:
        places = [f'{scheme}://{user}127.0.0.1:{trap.port}/{path}'
                  for scheme in ('rtsp', 'rtsps', 'rtspu', 'rtspt', 'http', 'rtsp-sdp')
                  for user, path in (('', 'x'), ('user:S3cr3t@', ''))]
        mangles = [refusing(f'Location: {to}', methods=methods, status=status)
                   for to in places for methods, status in (
                       (('OPTIONS', 'DESCRIBE'), '302 Found'), (('DESCRIBE',), '301 Moved'))]
        with served([Server(play, mangle=mangle) for mangle in mangles]) as proxy:
            for n in range(len(mangles)):
                assert proxy.ask('DESCRIBE', f'/{n}', PATIENCE)[0] == 503, n
        # rtspsrc connects before the proxy learns of it. It says nothing there.
        assert not [data for data in trap.data if data], trap.data
        assert CLIENT == 'rtspsrc' or not trap.connections


# ---- text that goes to readers ----


@test
def text_of_an_upstream_breaks_no_line():
    """text of an upstream adds no header and no line to answers, and none to the log"""
    inject = 'x\rInjected: 1\r\r', 'x\0Injected', 'x\nInjected', 'x\x1b[2JInjected', '\xff\xfe'
    mangles = []
    for text in inject:
        for line in (f'a=fmtp:96 packetization-mode=1;{text}=2',
                     f'a=fmtp:96 profile-level-id={text}', f'a=framerate:{text}',
                     f'a=rtpmap:96 H264/90000/{text}', f's={text}', f'a=tool:{text}',
                     f'a=control:{text}'):
            body = SDP + f'{line}\r\n' + TRACK + f'{line}\r\na=control:track0\r\n'
            mangles.append(describing(body.encode('latin-1')))
        mangles.append(adding(f'Server: {text}'.encode('latin-1')))
        mangles.append(refusing(methods=('DESCRIBE',), status=f'404 {text}'))
    with served([Server(play, mangle=mangle) for mangle in mangles]) as proxy:
        for n in range(len(mangles)):
            with Rtsp(proxy.port, timeout=PATIENCE) as rtsp:
                rtsp.send(f'DESCRIBE {proxy.url(f"/{n}")} RTSP/1.0\r\nCSeq: 1\r\n\r\n'.encode())
                status, headers, body = rtsp.answer()
                assert status in (200, 503), (n, status)
                assert 'injected' not in headers, (n, headers)
                for lines in body.replace(b'\r\n', b'\n').split(b'\n'):
                    assert not re.search(rb'[\r\0\x1b]', lines), (n, lines)
                    assert not lines.startswith(b'Injected'), (n, body)
        for line in proxy.lines:
            assert '\r' not in line and '\0' not in line and '\x1b' not in line, line
            assert not line.startswith('Injected'), line


# ---- media ----


def wrong_packets():
    """RTP whose header does not fit, or that belongs to another stream."""
    good = rtp(7, 7, PICTURE)
    yield b''
    for size in range(1, 13):
        yield good[:size]
    for first in range(256):  # version, padding, extension, CSRC count
        yield bytes([first]) + good[1:14]
        yield bytes([first]) + good[1:12]
    for words in 0, 1, 60, 0xffff:  # an extension longer than the packet
        yield bytes([0x90]) + good[1:12] + struct.pack('>HH', 0xbede, words) + b'x' * 40
    for padding in 0, 1, 199, 200, 201, 255:
        yield bytes([0xa0]) + good[1:-1] + bytes([padding])
    for kind in range(256):  # payload types, also those of RTCP
        yield good[:1] + bytes([kind]) + good[2:]
    for ssrc in 0, 1, SSRC ^ 1, 0xffffffff:
        for seq in 0, 1, 0x7fff, 0xffff:
            yield rtp(seq, 0xffffffff, PICTURE, ssrc=ssrc)
    for jump in 0x1000, 0x7fff, 0x8000, 0xf000:
        yield rtp(jump, jump << 16, PICTURE)


def wrong_reports():
    """RTCP that is cut short, or whose lengths and counts are wrong."""
    sdes = struct.pack('>BBHI', 0x81, 202, 3, SSRC) + b'\x01\x04abcd\0\0'
    whole = sender_report(1 << 40, 1) + sdes
    other = struct.pack('>BBHI', 0x80, 201, 1, SSRC ^ 1)
    for size in range(len(whole)):
        yield whole[:size]
    for at in range(len(whole)):
        for value in 0, 0x7f, 0x80, 0x9f, 0xa0, 0xff:
            yield whole[:at] + bytes([value]) + whole[at + 1:]
    for kind in range(192, 224):
        for words in 0, 1, 2, 0xffff:
            # A BYE after the upstream's own report would end it.
            first = other if kind == 203 else sender_report(1 << 40, 1)
            yield first + struct.pack('>BBH', 0x9f, kind, words) + b'\xff' * 8
    for length in 4, 200, 255:
        text = bytes([length]) + b'bye'
        yield sender_report(1, 1) + struct.pack('>BBHIB', 0x81, 202, 2, SSRC, 1) + text[:3]
        yield other + struct.pack('>BBHI', 0x81, 203, 2, SSRC ^ 1) + text


def play_wrong(session):
    def between():
        for n, packet in enumerate(wrong_packets()):
            session.send(VIDEO, packet)
            if n % 40 == 0:
                yield
        for n, packet in enumerate(wrong_reports()):
            session.send(VIDEO, packet, rtcp=True)
            if n % 40 == 0:
                yield

    seq = 0
    try:
        for _ in between():
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE))
            seq += 1
            time.sleep(0.02)
        session.done = True
        while not session.left.wait(0.02):
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE + b'after'))
            seq += 1
    except OSError:
        pass


@test(timeout=120)
def wrong_media_reach_no_reader():
    """a reader gets valid RTP of one stream, whatever its upstream sends"""
    for transport in 'tcp', 'udp':
        server = Server(play_wrong)
        with served([server], transport=transport, **{'read-timeout': '20s', 'connect-timeout': '20s'}) as proxy, \
                Rtsp(proxy.port, timeout=PATIENCE) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url('/0'))[0] == 200
            assert rtsp.request('SETUP', proxy.url('/0') + '/stream=0', TCP)[0] == 200
            assert rtsp.request('PLAY', proxy.url('/0'))[0] == 200
            ssrcs, whole = set(), 0
            while whole < 20:
                channel, packet = rtsp.frame()
                if channel:
                    continue
                assert packet[0] >> 6 == 2 and len(packet) >= 12, packet
                size = 12 + 4 * (packet[0] & 15)
                if packet[0] & 0x10:
                    size += 4 + 4 * int.from_bytes(packet[size + 2:size + 4], 'big')
                assert len(packet) >= size + (packet[-1] if packet[0] & 0x20 else 0), packet
                ssrcs.add(packet[8:12])
                whole += packet.endswith(b'after')
            assert len(ssrcs) == 1, ssrcs
            wait_until(lambda server=server: any(getattr(session, 'done', False)
                                                 for session in server.sessions), PATIENCE,
                       'all packets are sent')


if __name__ == '__main__':
    run()
