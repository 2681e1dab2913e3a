# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers that come and go while the upstream starts and stops, and requests for missing things."""

import contextlib
import re
import signal
import socket

from proc import Rtsp
from proxy import QUICK, Origin, Proxy, Read, check_whole, matches, wait_until
from tap import run, test

ROUNDS = 6


@test(timeout=120)
def readers_may_join_together_while_the_upstream_starts():
    with Origin() as origin:
        # Readers over UDP and TCP do not begin at the same time.
        with Proxy({'/cam': {'upstream': origin.url, 'linger': '2s'}}) as proxy:
            for n in range(1, ROUNDS + 1):
                reads = [
                    Read(proxy.url(), '--stagger', 5 * (n % 3), '--min-aus', 0,
                         transport=transport, readers=12, duration=0.5)
                    for transport in ('udp', 'tcp')
                ]
                for read in reads:
                    total = read.result(None)['totals']
                    assert total['statuses'] == {'ok': 12}, (n, total)
                    assert total['lost'] == 0, (n, total)
                wait_until(lambda n=n: origin.count('teardown') >= n, 5, f'teardown {n}')
                proxy.check_alive()
            assert origin.count('play') == ROUNDS, origin.output()
            ins, outs = (len(matches(proxy, rf' reader \S+ {way}: ')) for way in ('in', 'out'))
            assert ins == outs == 24 * ROUNDS, (ins, outs)
            proxy.check_leaves(signal.SIGTERM)


@test
def readers_may_leave_without_teardown_while_the_upstream_starts():
    with Origin() as origin:
        with Proxy({'/cam': {'upstream': origin.url, 'linger': '0ms'}}) as proxy:
            for _ in range(ROUNDS):
                # Clients leave after DESCRIBE, so the answer reaches nobody.
                for _ in range(12):
                    with Rtsp(proxy.port) as rtsp:
                        rtsp.send(f'DESCRIBE {proxy.url()} RTSP/1.0\r\nCSeq: 1\r\n\r\n'.encode())
                Read(proxy.url(), '--no-teardown', readers=4, duration=0.2).result(None)
            proxy.check_alive()
            result = Read(proxy.url(), readers=2, duration=1).result()
            assert result['totals']['ok'] == 2, result
            proxy.check_leaves(signal.SIGTERM)


def set_up(rtsp, url):
    """Sends DESCRIBE, and SETUP of both tracks, interleaved."""
    assert rtsp.request('DESCRIBE', url, {'Accept': 'application/sdp'})[0] == 200
    for n in 0, 1:
        transport = f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
        answer = rtsp.request('SETUP', f'{url}/stream={n}', {'Transport': transport})
        assert answer[0] == 200, answer


@test
def a_setup_without_a_description_starts_the_stream():
    with Origin() as origin, Proxy({'/cam': {'upstream': origin.url}}) as proxy:
        transport = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
        with Rtsp(proxy.port) as rtsp:
            # A request that requires anything starts nothing.
            for method in 'SETUP', 'DESCRIBE':
                answer = rtsp.request(method, f'{proxy.url()}/stream=0', {'Require': 'anything', **transport})
                assert answer[0] == 551, answer
            assert not matches(proxy, ' mount /cam up'), proxy.output()
            assert rtsp.request('SETUP', f'{proxy.url()}/stream=0', transport)[0] == 200
            assert rtsp.request('PLAY', proxy.url())[0] == 200
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('SETUP', proxy.url('/none') + '/stream=0', transport)[0] == 404
        proxy.check_alive()


@test
def playback_speed_stays_one():
    with Origin() as origin, Proxy({'/cam': {'upstream': origin.url}}) as proxy:
        for name, value in (('Scale', '2'), ('Speed', '2'), ('Scale', '-1'), ('Speed', '0'),
                            ('Scale', 'x'), ('Speed', '1e300'), ('Range', 'npt=5-'),
                            ('Range', 'npt=now-')):
            with Rtsp(proxy.port) as rtsp:
                set_up(rtsp, proxy.url())
                status, headers, _ = rtsp.request('PLAY', proxy.url(), {name: value})
                assert status == 200 or 400 <= status < 600, (name, value, status)
                if status == 200:
                    for speed in 'scale', 'speed':
                        assert float(headers.get(speed, 1)) == 1, (name, value, headers)
                    rtsp.frame()
            proxy.check_alive()
        # A connection spoilt by one client affects no other client.
        assert Read(proxy.url(), duration=1, expect=origin.expect).result()['totals']['ok'] == 1


def udp_pair():
    """Returns two sockets, on an even port and the next one."""
    while True:
        rtp, rtcp = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        rtp.settimeout(10)
        rtp.bind(('127.0.0.1', 0))
        port = rtp.getsockname()[1]
        with contextlib.suppress(OSError):
            if port % 2 == 0:
                rtcp.bind(('127.0.0.1', port + 1))
                return rtp, rtcp
        rtp.close()
        rtcp.close()


@test
def a_reader_may_report_with_a_tracks_ssrc():
    """a reader's report with a track's own SSRC does not end the track"""
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy, contextlib.ExitStack() as stack:
        reads = Read(proxy.url(), readers=2, duration=4, expect=origin.expect)
        rtsp = stack.enter_context(Rtsp(proxy.port))
        assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
        tracks = []
        for n in 0, 1:
            rtp, rtcp = map(stack.enter_context, udp_pair())
            port = rtp.getsockname()[1]
            transport = f'RTP/AVP;unicast;client_port={port}-{port + 1}'
            status, headers, _ = rtsp.request('SETUP', f'{proxy.url()}/stream={n}',
                                              {'Transport': transport})
            assert status == 200, status
            there = int(re.search(r'server_port=\d+-(\d+)', headers['transport'])[1])
            tracks.append((rtp, rtcp, ('127.0.0.1', there)))
        assert rtsp.request('PLAY', proxy.url())[0] == 200
        for _ in range(20):
            for rtp, rtcp, there in tracks:
                ssrc = rtp.recv(2048)[8:12]
                report = b'\x80\xc9\x00\x01' + ssrc
                bye = b'\x81\xcb\x00\x01' + ssrc
                # With feedback (RFC 4585), other code than the proxy's reads the packet too.
                wants_key = b'\x81\xce\x00\x02' + ssrc + ssrc
                rtcp.sendto(report + wants_key + bye, there)
                rtcp.sendto(report + bye, there)
        check_whole(reads.result(), 2)


UNKNOWN = ('/nope', '/', '/cam/a', '/cam/%2e%2e', '/%63am/x', '/cam/stream=9x',
           '/cam/stream=', '/CAM', '/cam/stream=0/stream=0', '/' + 'x' * 3000)


@test
def an_unknown_path_starts_nothing():
    with Origin() as origin, Proxy({'/cam': {'upstream': origin.url}}) as proxy:
        transport = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
        for path in UNKNOWN:
            for method, headers in (('DESCRIBE', None), ('SETUP', transport)):
                status = proxy.ask(method, path, headers=headers)[0]
                assert status in (400, 404, 414, 454), (method, path, status)
        assert origin.count('connect') == 0, origin.output()
        proxy.check_alive()


@test
def a_missing_track_is_refused():
    with Origin() as origin, Proxy({'/cam': serve(origin)}) as proxy:
        transport = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
        for track in 'stream=9', 'stream=2', 'stream=-1':
            status = proxy.ask('SETUP', f'/cam/{track}', headers=transport)[0]
            assert status in (400, 404, 454, 459), (track, status)
        assert Read(proxy.url(), duration=1).result()['totals']['ok'] == 1
        # The upstream that these readers used has been released.
        origin.wait_for('teardown', 5)


def serve(origin):
    return {'upstream': origin.url, **QUICK}


SDP = (b'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n'
       b'a=rtpmap:96 H264/90000\r\na=control:stream=0\r\n')


@test
def publishing_is_refused():
    with Origin() as origin, Proxy({'/cam': serve(origin)}) as proxy:
        with Rtsp(proxy.port) as rtsp:
            options = rtsp.request('OPTIONS', proxy.url())
            assert options[0] == 200
            status = rtsp.request('ANNOUNCE', proxy.url(), {'Content-Type': 'application/sdp'},
                                  SDP)[0]
            assert 400 <= status < 600, status
            record = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1;mode=record'}
            status = rtsp.request('SETUP', f'{proxy.url()}/stream=0', record)[0]
            assert 400 <= status < 600, status
            status = rtsp.request('RECORD', proxy.url())[0]
            assert 400 <= status < 600, status
        assert Read(proxy.url(), duration=1).result()['totals']['ok'] == 1


if __name__ == '__main__':
    run()
