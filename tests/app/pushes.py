# SPDX-License-Identifier: LGPL-2.1-or-later
"""The key `push`: datagrams, srt-live-transmit and nginx with its RTMP module get the stream."""

import os
import re
import shutil
import socket
import struct
import tempfile
import time

from livets import Served, clip
from nginxrtmp import RtmpServer
from proc import Proc, free_port
from proxy import wait_until
from tap import SLOWER, Skip, run, test
from transportstream import (PACKET, check_packets, clock_references, frames, offset_error)

SO_TIMESTAMPNS = 35  # Python has no name for it


def check_media(path, least=50):
    """Checks that the file has the clip's frames, at the clip's offsets."""
    sent, source = frames(path), frames(clip())
    assert len(sent['v']) >= least and len(sent['a']) >= least, {k: len(v) for k, v in sent.items()}
    for kind in 'va':
        known = {md5 for _, md5 in source[kind]}
        wrong = [md5 for _, md5 in sent[kind][1:-2] if md5 not in known]
        assert not wrong, (kind, len(wrong))
    assert offset_error(sent, source) < 0.005, offset_error(sent, source)


def kernel_time(stamps):
    seconds, nanoseconds = struct.unpack('qq', stamps[0][2])
    return seconds + nanoseconds / 1e9


def receive(reader, seconds):
    """Returns [(time, datagram)], with the times at which the kernel received them."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        data, stamps, _, _ = reader.recvmsg(65536, socket.CMSG_SPACE(16))
        found.append((kernel_time(stamps), data))
    return found


def sorted_lags(got):
    """Returns how much later than the earliest one each clock reference came, in order."""
    stream = b''.join(data for _, data in got)
    lags = [got[at // (7 * PACKET)][0] - pcr for at, pcr in clock_references(stream)]
    return sorted(lag - min(lags) for lag in lags)


@test
def datagrams_have_seven_packets_and_are_paced():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        reader.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        reader.bind(('127.0.0.1', 0))
        reader.settimeout(10)
        port = reader.getsockname()[1]
        with Served(mount={'push': [f'udp://127.0.0.1:{port}']}) as proxy:
            receive(reader, 1)
            got = receive(reader, 5)
            shown = proxy.readers()
            assert [one['transport'] for one in shown] == ['UDP-TS'], shown
            assert shown[0]['peer'] == f'udp://127.0.0.1:{port}', shown
            # The clock references come when they say. A busy machine delays some: five seconds without
            # such delays come.
            end = time.monotonic() + 10 * SLOWER
            while (lags := sorted_lags(got))[len(lags) // 2] >= 0.06 and time.monotonic() < end:
                got = receive(reader, 5)
    assert len(lags) > 100 and lags[len(lags) // 2] < 0.06, (len(lags), lags[len(lags) // 2])
    assert {len(data) for _, data in got} == {7 * PACKET}
    stream = b''.join(data for _, data in got)
    check_packets(stream)
    # No receiver gets a frame at once: of 8 datagrams in a row, the last comes later than the first.
    gaps = sorted(later[0] - first[0] for first, later in zip(got, got[8:]))
    assert gaps[len(gaps) // 10] > 0.004, gaps[:10]
    with tempfile.NamedTemporaryFile(suffix='.ts') as file:
        file.write(stream)
        file.flush()
        check_media(file.name)


def srt_listener(port, path):
    if not shutil.which('srt-live-transmit'):
        raise Skip('srt-live-transmit is missing')
    return Proc('sh', '-c', f'exec srt-live-transmit -q -a:no "srt://127.0.0.1:{port}?mode=listener" file://con > "{path}"')


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def check_down(proxy, uri):
    """Checks that a push without a server is no reader, and that each failure is one line with its reason."""
    proxy.wait_for_line(rf'push /cam to {re.escape(uri)} down: .*next try in')
    assert not proxy.readers()
    said = [line for line in proxy.lines if ' push /cam' in line]
    assert all(re.search(r' down: .+; next try in', line) for line in said), said


@test
def an_srt_listener_gets_the_stream_and_gets_it_again():
    """over SRT; a listener that ends and comes back is found again"""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (os.path.join(folder, name) for name in ('first.ts', 'second.ts'))
        with Served(mount={'push': [f'srt://127.0.0.1:{port}?streamid=secret']}) as proxy:
            check_down(proxy, f'srt://127.0.0.1:{port}')
            with srt_listener(port, first):
                wait_until(lambda: size(first) > 400000, 30, 'media over SRT')
                wait_until(lambda: any(one['transport'] == 'SRT' for one in proxy.readers()), 5, 'the reader')
            seen = len(proxy.lines)
            proxy.wait_for_line(rf'push /cam to srt://127\.0\.0\.1:{port} down', start=seen - 1)
            with srt_listener(port, second):
                wait_until(lambda: size(second) > 200000, 40, 'media over SRT again')
            assert not any('secret' in line for line in proxy.lines)
        with open(first, 'rb') as file:
            check_packets(file.read())
        check_media(first)


def recorded(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith('.flv')]


@test
def an_rtmp_server_gets_the_stream_and_gets_it_again():
    """by RTMP to nginx; a server that is down at first, ends and comes back is found again"""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with Served(mount={'push': [f'rtmp://127.0.0.1:{port}/live/S3cretKey']}) as proxy:
            check_down(proxy, f'rtmp://127.0.0.1:{port}/live/***')
            for n in (1, 2):
                with RtmpServer(port, folder, f'record all; record_path {folder}; record_unique on;'):
                    wait_until(lambda n=n: len(recorded(folder)) == n and size(recorded(folder)[-1]) > 400000,
                               40, f'recording {n}')
                    proxy.wait_for_line(r'push /cam to rtmp://\S+ begins')
                    shown = proxy.readers()
                    assert [one['transport'] for one in shown] == ['RTMP'], shown
                    assert shown[0]['bytes'] > 100000, shown
            assert not any('S3cretKey' in line for line in proxy.lines)
            assert 'S3cretKey' not in str(proxy.get('/v1/mounts/cam'))
        check_media(recorded(folder)[0])


@test
def a_stream_that_no_protocol_carries_is_not_pushed():
    """a stream without a track that a receiver's protocol carries is not sent, and the log has the reason"""
    uris = ['udp://127.0.0.1:9', f'rtmp://127.0.0.1:{free_port()}/live/x']
    with Served('vp8-only.webm', mount={'push': uris}) as proxy:
        for uri, protocol in zip(uris, ('MPEG-TS', 'FLV')):
            proxy.wait_for_line(rf'push /cam to {uri.removesuffix("x")}\S* down: track 0: {protocol} cannot carry VP8; next', 30)


@test
def a_push_follows_the_configuration():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.bind(('127.0.0.1', 0))
        reader.settimeout(10)
        with Served() as proxy:
            assert proxy.http('PATCH', '/v1/mounts/cam',
                              {'push': [f'udp://127.0.0.1:{reader.getsockname()[1]}']})[0] == 200
            reader.recv(2000)
            assert proxy.http('PATCH', '/v1/mounts/cam', {'push': []})[0] == 200
            wait_until(lambda: not proxy.readers(), 10, 'the push ends')
            proxy.wait_for_line(r'mount /cam down: no readers')


@test
def wrong_uris_are_refused():
    with Served() as proxy:
        for uri, expected in (('http://h/x', 'expected udp://'), ('udp://127.0.0.1', 'the port is missing'),
                              ('udp://host:5', 'the host must be an IP address'), ('udp://1.2.3.4:0', 'port'),
                              ('udp://239.1.1.1:5?ttl=900', 'ttl must be'), ('udp://239.1.1.1:5?x=1', 'unknown parameter'),
                              ('udp://239.1.1.1:5/a', 'a path'), ('srt://h', 'the port is missing'),
                              ('srt://h:9?mode=listener', 'unknown parameter "mode'), ('srt://h:9?latency=x', 'latency must be'),
                              ('srt://h:9?latency=60001', 'latency must be'), ('srt://h:9?foo=bar', 'known: streamid'),
                              ('srt://h:9?passphrase=short', 'passphrase must have 10'), ('srt://h:9?pbkeylen=8', 'pbkeylen must'),
                              (f'srt://h:9?streamid={"x" * 513}', 'streamid must have'), ('srt://h:9?abc', 'cannot parse'),
                              ('srt://h:9/x', 'a path'),
                              ('rtmp://h/app', 'expected rtmp://HOST'), ('rtmp://h', 'expected rtmp://HOST'),
                              ('rtmp:///a/b', 'the host is missing'), ('', 'expected a list of URIs'), ('x', 'not a URI'), ('udp://[::1', 'not a URI')):
            status, _, body = proxy.http('PATCH', '/v1/mounts/cam', {'push': [uri]})
            assert status == 400 and expected in str(body), (uri, status, body)
            assert 'short' not in str(body), body
        fine = 'srt://127.0.0.1:9?streamid=a%20b&latency=200&passphrase=0123456789&pbkeylen=16'
        assert proxy.http('PATCH', '/v1/mounts/cam', {'push': [fine]})[0] == 200
        assert proxy.http('PATCH', '/v1/mounts/cam', {'push': ['udp://127.0.0.1:9'] * 9})[0] == 400
        assert proxy.http('PATCH', '/v1/mounts/cam', {'push': 'udp://127.0.0.1:9'})[0] == 400


if __name__ == '__main__':
    run()
