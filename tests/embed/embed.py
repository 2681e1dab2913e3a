# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with gst-rtsp-server that call weir_serve()."""

import os
import re
import socket
import struct
import subprocess
import tempfile
import time

from arrivals import Player
from proc import Proc, Rtsp, free_udp_pair
from served import Served
from tap import SLOWER, Skip, run, test


def made(server, element):
    """Reports whether the server has created an element with this factory name."""
    return re.search(rf'creating element "{element}"', server.output()) is not None


def transport(n, first=0):
    return f'RTP/AVP/TCP;unicast;interleaved={first + 2 * n}-{first + 2 * n + 1}'


def set_up(rtsp, url, tracks=(0, 1), first=0):
    for n in tracks:
        answer = rtsp.request('SETUP', f'{url}/stream={n}', {'Transport': transport(n, first)})
        assert answer[0] == 200, answer
        channels = f'interleaved={first + 2 * n}-{first + 2 * n + 1}'
        assert channels in answer[1]['transport'], answer


def play(rtsp, url, tracks=(0, 1), first=0):
    set_up(rtsp, url, tracks, first)
    answer = rtsp.request('PLAY', url)
    assert answer[0] == 200, answer
    return answer


def play_described(rtsp, url):
    """Sends DESCRIBE first: without it, a SETUP creates another media."""
    assert rtsp.request('DESCRIBE', url)[0] == 200
    play(rtsp, url)


def read_packets(rtsp, number, channels=(0, 2)):
    """Reads until this number of RTP packets has come on each channel, without a gap."""
    last, count = {}, dict.fromkeys(channels, 0)
    while min(count.values()) < number:
        channel, packet = rtsp.frame()
        if channel not in count:
            continue
        assert packet[0] >> 6 == 2, packet[:12]
        seq = struct.unpack('>H', packet[2:4])[0]
        assert channel not in last or seq == (last[channel] + 1) % 65536, (channel, seq, last)
        last[channel] = seq
        count[channel] += 1


def wait_until(true, timeout, what):
    deadline = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < deadline, f'not within {timeout} s: {what}'
        time.sleep(0.02)


def stalled(server, url, tracks):
    """Returns a playing reader with a small receive buffer that does not read."""
    rtsp = Rtsp(server.port)
    rtsp.socket.close()
    rtsp.socket = socket.socket()
    rtsp.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    rtsp.socket.settimeout(10)
    rtsp.socket.connect(('127.0.0.1', server.port))
    play(rtsp, url, tracks)
    return rtsp


def ffmpeg_reads(url, *options, seconds=2):
    command = ['ffmpeg', '-nostdin', '-v', 'error', *options, '-t', str(seconds), '-i', url,
               '-map', '0:v', '-f', 'framemd5', '-']
    done = subprocess.run(command, capture_output=True, text=True, timeout=40 * SLOWER, check=False)
    frames = [line for line in done.stdout.splitlines() if line and line[0] != '#']
    assert done.returncode == 0 and len(frames) > 10, (done.returncode, done.stderr, frames)


@test
def the_example_serves_udp_and_tcp_without_appsinks():
    environment = {**os.environ, 'GST_DEBUG': 'GST_ELEMENT_FACTORY:4', 'GST_DEBUG_NO_COLOR': '1'}
    with Proc(os.environ['WEIR_EXAMPLE'], '0', env=environment) as server:
        url = server.wait_for_line(r'^(rtsp://\S+)')[1]
        for way in 'tcp', 'udp', 'tcp':
            ffmpeg_reads(url, '-rtsp_transport', way)
        assert made(server, 'multiudpsink') and made(server, 'vp8enc')
        assert not made(server, 'appsink') and not made(server, 'udpsink'), server.output()


@test
def both_tracks_and_their_reports_arrive_in_order():
    with Served() as server, Rtsp(server.port) as rtsp:
        play(rtsp, server.url())
        read_packets(rtsp, 100)
        # Responses come between frames, never within one.
        for _ in range(20):
            assert rtsp.request('GET_PARAMETER', server.url())[0] == 200
        read_packets(rtsp, 20)
        reports = set()
        while reports != {1, 3}:
            channel, packet = rtsp.frame()
            if channel in (1, 3) and packet[1] == 200:
                reports.add(channel)


@test
def responses_are_complete_and_hide_the_token():
    with Served() as server, Rtsp(server.port) as rtsp:
        status, headers, body = rtsp.request('DESCRIBE', server.url())
        assert status == 200 and body.startswith(b'v=0') and body.count(b'\nm=') == 2, (headers, body)
        assert headers['content-type'] == 'application/sdp' and 'date' in headers, headers
        assert headers['cseq'] == '1', headers
        texts = [str(headers), body.decode()]
        for n in 0, 1:
            answer = rtsp.request('SETUP', f'{server.url()}/stream={n}',
                                  {'Transport': transport(n)})
            assert answer[0] == 200 and answer[1]['session'], answer
            texts.append(str(answer))
        answer = rtsp.request('PLAY', server.url())
        assert answer[0] == 200 and answer[1]['rtp-info'].count('url=') == 2, answer
        texts.append(str(answer))
        assert not re.search('[0-9a-f]{32}', ' '.join(texts)), texts
        assert rtsp.request('SETUP', server.url('/nothing'), {'Transport': transport(0)})[0] == 404
        assert rtsp.request('PLAY', server.url(), {'Session': 'x'})[0] == 454


@test
def pipelined_requests_are_answered_in_order():
    with Served() as server, Rtsp(server.port) as rtsp:
        url = server.url()
        asked = ''.join(f'OPTIONS {url} RTSP/1.0\r\nCSeq: {n}\r\n\r\n' for n in range(300))
        rtsp.send(asked.encode())
        for n in range(300):
            status, headers, _ = rtsp.answer()
            assert status == 200 and headers['cseq'] == str(n), (n, status, headers)
        # SETUP and PLAY at once, before the response to SETUP.
        set_up(rtsp, url, (0,))
        rtsp.send((f'SETUP {url}/stream=1 RTSP/1.0\r\nCSeq: 500\r\nSession: {rtsp.session}\r\n'
                   f'Transport: {transport(1)}\r\n\r\n'
                   f'PLAY {url} RTSP/1.0\r\nCSeq: 501\r\nSession: {rtsp.session}\r\n\r\n').encode())
        assert rtsp.answer()[0] == 200
        assert rtsp.answer()[1]['cseq'] == '501'
        read_packets(rtsp, 20)


def udp_reader(server, path='/test'):
    """Returns a UDP reader that sends nothing, so that its session expires."""
    rtp, rtcp = free_udp_pair()
    rtsp = Rtsp(server.port)
    port = rtp.getsockname()[1]
    answer = rtsp.request('SETUP', f'{server.url(path)}/stream=0',
                          {'Transport': f'RTP/AVP;unicast;client_port={port}-{port + 1}'})
    assert answer[0] == 200, answer
    assert rtsp.request('PLAY', server.url(path))[0] == 200
    return rtsp, rtp, rtcp


@test
def a_silent_tcp_reader_does_not_time_out_while_it_plays():
    with Served(timeout=1) as server, Rtsp(server.port) as rtsp:
        play(rtsp, server.url())
        for _ in range(2):
            # The session of a silent UDP reader expires, the one over TCP stays.
            silent, rtp, rtcp = udp_reader(server)
            start = len(server.lines)
            while f'removed {silent.session}' not in server.lines[start:]:
                rtsp.frame()
            for thing in silent.socket, rtp, rtcp:
                thing.close()
        assert f'removed {rtsp.session}' not in server.lines
        rtsp.frames.clear()
        read_packets(rtsp, 10)
        # It expires while it is paused.
        assert rtsp.request('PAUSE', server.url())[0] == 200
        server.wait_for_line(f'removed {re.escape(rtsp.session)}')


@test
def a_session_ends_with_its_connection():
    with Served(timeout=60) as server:
        for path in '/test', '/keep':
            for how in 'close', 'reset', 'in the middle of a frame':
                start = len(server.lines)
                with Rtsp(server.port) as rtsp:
                    play(rtsp, server.url(path))
                    read_packets(rtsp, 3)
                    if how == 'reset':
                        rtsp.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                               struct.pack('ii', 1, 0))
                    elif how != 'close':
                        rtsp.socket.recv(5)
                server.wait_for_line(f'removed {re.escape(rtsp.session)}', 5, start)
        server.check_alive()


@test
def a_client_that_never_reads_responses_is_closed():
    with Served() as server, Rtsp(server.port) as other:
        play(other, server.url())
        with socket.create_connection(('127.0.0.1', server.port), 10) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = f'OPTIONS {server.url()} RTSP/1.0\r\nCSeq: 1\r\n\r\n'.encode() * 1000
            try:
                for _ in range(1000):
                    deaf.sendall(request)
                raise AssertionError('the server has read all requests')
            except (ConnectionError, BrokenPipeError):
                pass
        server.wait_for_line('closed: the client does not read its responses', 5)
        read_packets(other, 20)


@test
def a_reader_can_tear_down_and_play_again():
    with Served() as server, Rtsp(server.port) as rtsp:
        for _ in range(3):
            play(rtsp, server.url())
            read_packets(rtsp, 5)
            assert rtsp.request('TEARDOWN', server.url())[0] == 200
            # The server ignores data for a channel that does not exist any more.
            rtsp.send_frame(1, b'\x80\xc9\x00\x01abcd')
            rtsp.session = None
            rtsp.frames.clear()
        play(rtsp, server.url())
        assert rtsp.request('PAUSE', server.url())[0] == 200
        rtsp.frames.clear()
        assert rtsp.request('PLAY', server.url())[0] == 200
        read_packets(rtsp, 5)


@test
def rtp_info_has_the_first_packet_of_the_reader():
    with Served() as server, Rtsp(server.port) as early:
        play(early, server.url())
        for _ in range(5):
            read_packets(early, 7)
            with Rtsp(server.port) as rtsp:
                info = play(rtsp, server.url())[1]['rtp-info']
                first = {}
                while len(first) < 2:
                    channel, packet = rtsp.frame()
                    if channel in (0, 2):
                        first.setdefault(channel // 2, struct.unpack('>HI', packet[2:8]))
                for n, (seq, rtptime) in first.items():
                    told = re.search(rf'stream={n};seq=(\d+)(?:;rtptime=(\d+))?', info)
                    assert told and int(told[1]) == seq, (info, first)
                    assert told[2] is None or int(told[2]) == rtptime, (info, first)


@test
def no_packet_comes_before_the_response_to_play():
    with Served() as server, Rtsp(server.port) as early:
        play_described(early, server.url())
        for transport_name in ('tcp', 'udp') * 3:
            with Player(server.port, server.url(), transport_name, (0, 1)) as player:
                answer, before = player.play({'X-Wait': 200})
                assert answer[0] == 200 and not before, (transport_name, answer, before)


@test
def after_a_refused_play_no_packet_comes_until_a_play_succeeds():
    with Served() as server, Rtsp(server.port) as early:
        play_described(early, server.url())
        for transport_name in 'tcp', 'udp':
            with Player(server.port, server.url(), transport_name, (0, 1)) as player:
                for _ in range(2):
                    assert player.request('PLAY', server.url(), {'Scale': '0'})[0] == 400
                read_packets(early, 10)
                early.frames.clear()
                answer, before = player.play({'X-Wait': 200})
                assert answer[0] == 200 and not before, (transport_name, answer, before)


@test
def a_refused_play_does_not_stop_a_playing_reader():
    with Served() as server, Rtsp(server.port) as rtsp:
        play(rtsp, server.url())
        read_packets(rtsp, 5)
        rtsp.frames.clear()
        assert rtsp.request('PLAY', server.url(), {'Scale': '0'})[0] == 400
        read_packets(rtsp, 20)
        # Packets before and after this response are in order.
        assert rtsp.request('PLAY', server.url())[0] == 200
        read_packets(rtsp, 20)


@test
def a_track_can_be_set_up_while_another_plays():
    with Served() as server, Rtsp(server.port) as early, Rtsp(server.port) as rtsp:
        play(early, server.url())
        play(rtsp, server.url(), (0,))
        read_packets(rtsp, 5, (0,))
        set_up(rtsp, server.url(), (1,))
        rtsp.frames.clear()
        assert rtsp.request('PLAY', server.url(), {'X-Wait': 200})[0] == 200
        assert not [channel for channel, _ in rtsp.frames if channel in (2, 3)], rtsp.frames
        read_packets(rtsp, 10)


@test
def setup_of_a_playing_track_is_refused():
    with Served() as server, Rtsp(server.port) as rtsp:
        play(rtsp, server.url())
        for first in 0, 4:
            answer = rtsp.request('SETUP', f'{server.url()}/stream=0',
                                  {'Transport': transport(0, first)})
            assert answer[0] == 455, answer
        rtsp.frames.clear()
        read_packets(rtsp, 10)


@test
def high_channel_numbers_work():
    with Served() as server, Rtsp(server.port) as rtsp:
        play(rtsp, server.url(), first=252)
        read_packets(rtsp, 10, (252, 254))


# Bytes; more than the kernel buffers for a reader that does not read.
MORE_THAN_KEPT = 12 << 20


@test
def stalled_readers_do_not_affect_others_and_are_closed():
    with Served() as server:
        url = server.url('/heavy')
        udp, rtp, rtcp = udp_reader(server, '/heavy')
        deaf = [stalled(server, url, (0,)) for _ in range(5)]
        # All TCP readers stall, and the UDP reader still gets its packets.
        rtp.settimeout(10)
        got = 0
        while got < MORE_THAN_KEPT:
            got += len(rtp.recv(2000))
        # So does a TCP reader that reads, without packet loss.
        with Rtsp(server.port) as rtsp:
            play(rtsp, url, (0,))
            read_packets(rtsp, MORE_THAN_KEPT // 1400, (0,))
        while server.output().count('closed: the client stopped reading') < len(deaf):
            rtp.recv(2000)
        for thing in [udp.socket, rtp, rtcp] + [reader.socket for reader in deaf]:
            thing.close()
        server.check_alive()


@test
def readers_that_leave_free_their_resources():
    with Served() as server:
        with Rtsp(server.port) as rtsp:
            play(rtsp, server.url())
            before = None
            for n in range(60):
                with Rtsp(server.port) as guest:
                    play(guest, server.url())
                    if n % 3 == 0:
                        guest.frame()
                    if n % 2:
                        guest.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                struct.pack('ii', 1, 0))
                if n == 10:
                    wait_until(lambda: server.output().count('closed: ') >= 11, 10, '11 guests have left')
                    before = server.n_descriptors()
            wait_until(lambda: server.output().count('closed: ') >= 60, 10, 'all guests have left')
            wait_until(lambda: server.n_descriptors() <= before, 10,
                       f'{before} descriptors, as before')
            rtsp.frames.clear()
            read_packets(rtsp, 10)
        server.check_alive()


@test
def gst_rtsp_server_serves_clients_that_record():
    with Served() as server:
        command = ['ffmpeg', '-nostdin', '-v', 'error', '-re', '-f', 'lavfi', '-i',
                   'sine=sample_rate=8000', '-t', '8', '-c:a', 'pcm_alaw', '-f', 'rtsp',
                   '-rtsp_transport', 'tcp', server.url('/record')]
        with Proc(*command) as sender:
            server.wait_for_line('recorded 20', 15)
            assert sender.running()
        server.check_alive()


@test
def a_reader_over_tcp_asks_for_a_keyframe():
    """a TCP reader asks for a keyframe, without an extra sink"""
    pli = struct.pack('>BBHIBBHI', 0x80, 201, 1, 7, 0x81, 206, 2, 7)
    with Served(debug='GST_ELEMENT_FACTORY:4,GST_EVENT:6') as server, \
            Rtsp(server.port) as rtsp, Rtsp(server.port) as other:
        for reader in rtsp, other:
            play_described(reader, server.url())
        channel = None
        while channel != 0:
            channel, packet = rtsp.frame()
        rtsp.send_frame(1, pli + struct.pack('>I', 1))  # of another stream
        rtsp.send_frame(1, b'\x81')
        rtsp.send_frame(1, bytes(2000))
        read_packets(rtsp, 20)
        assert 'GstForceKeyUnit' not in server.output()
        rtsp.send_frame(1, pli + packet[8:12])
        server.wait_for_line('GstForceKeyUnit', 10)
        for reader in rtsp, other:
            read_packets(reader, 20)
        assert len(re.findall('creating element "appsrc"', server.output())) == 1
        assert not made(server, 'appsink'), server.output()


@test
def gst_rtsp_server_serves_http_tunnels():
    with Served(debug='GST_ELEMENT_FACTORY:4') as server:
        url = server.url()
        ffmpeg_reads(url, '-rtsp_transport', 'http')
        assert made(server, 'appsink')
        ffmpeg_reads(url, '-rtsp_transport', 'tcp')


@test
def gst_rtsp_server_serves_tls():
    with tempfile.TemporaryDirectory() as directory:
        pem = os.path.join(directory, 'pem')
        try:
            subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout',
                            pem, '-out', pem + '.crt', '-days', '2', '-subj', '/CN=127.0.0.1'],
                           check=True, capture_output=True)
        except FileNotFoundError:
            raise Skip('no openssl command') from None
        with open(pem, 'a', encoding='ascii') as both, open(pem + '.crt', encoding='ascii') as crt:
            both.write(crt.read())
        with Served(pem=pem, debug='GST_ELEMENT_FACTORY:4') as server:
            ffmpeg_reads(server.url().replace('rtsp:', 'rtsps:'), '-rtsp_transport', 'tcp')
            assert made(server, 'appsink')


if __name__ == '__main__':
    run()
