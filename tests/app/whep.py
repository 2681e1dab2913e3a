# SPDX-License-Identifier: LGPL-2.1-or-later
"""Live mounts over WebRTC: the requests and answers of WHEP, and Pion, which shares no code with Weir, as a reader."""

import base64
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from functools import lru_cache

from hlsweb import clip
from proc import Proc, thread_names
from proxy import CLIP, matches, wait_until
from sent import frames
from tap import SLOWER, Skip, run, test
from webrtcproxy import (ALLOWED, FRAGMENT, SDP, WebrtcProxy, folder, media_port, offer, program, raw_socket,
                         send_as)


def pion(url, *flags):
    """Reads with Pion. Returns its results."""
    done = subprocess.run([program(), 'read', '--json', *flags, url], check=False, timeout=120 * SLOWER,
                          capture_output=True, text=True)
    print(f'# {done.stdout.strip()} {done.stderr.strip()}')
    return json.loads(done.stdout)


# ---- requests ----

@test
def an_offer_is_answered():
    with WebrtcProxy(webrtc={'stun-servers': ['stun:stun.example.org:3478'], 'additional-hosts': ['192.0.2.1']},
              web={'allow-origins': ['https://other.example']}) as proxy:
        path, head, answer = proxy.post(Origin='https://other.example')
        lines = answer.split('\r\n')
        assert 'a=ice-lite' in lines and 'a=setup:passive' in lines and 'a=end-of-candidates' in lines, answer
        assert 'm=video 9 UDP/TLS/RTP/SAVPF 108 109' in lines and 'm=audio 9 UDP/TLS/RTP/SAVPF 111' in lines, answer
        found = [line.split() for line in lines if line.startswith('a=candidate:')]
        assert [(each[2], each[4]) for each in found] == [
            ('udp', '192.0.2.1'), ('udp', '127.0.0.1'), ('tcp', '192.0.2.1'), ('tcp', '127.0.0.1')], found
        assert head['link'] == '<stun:stun.example.org:3478>; rel="ice-server"', head
        assert head['access-control-expose-headers'] == 'Location, ETag, Link, Retry-After', head
        assert proxy.ask('DELETE', path, If_Match='"x"')[0] == 200
        wait_until(lambda: proxy.ask('DELETE', path)[0] == 404, 10, 'the session to end')


@test
def wrong_requests_are_refused():
    with WebrtcProxy() as proxy:
        good = offer()
        for method, path, body, kind, wanted in [
                ('GET', '/cam/whep', None, None, 204), ('HEAD', '/cam/whep', None, None, 200),
                ('GET', '/none/whep', None, None, 404), ('POST', '/none/whep', good, SDP, 404),
                ('PATCH', '/cam/whep', good, SDP, 405), ('DELETE', '/cam/whep', None, None, 405),
                ('PUT', '/cam/whep', good, SDP, 405),
                ('POST', '/cam/whep', good, 'text/plain', 415), ('POST', '/cam/whep', good, None, 415),
                ('POST', '/cam/whep', '', SDP, 400), ('POST', '/cam/whep', 'v=0\n', SDP, 400),
                ('POST', '/cam/whep', offer('obs'), SDP, 400),
                ('POST', '/cam/whep', good.replace('a=recvonly', 'a=inactive'), SDP, 400),
                ('POST', '/cam/whep', good + 'a=x\n' * 20000, SDP, 413),
                ('POST', '/cam/whep', good.replace('H264', 'H263').replace('opus', 'xopus'), SDP, 406),
                ('DELETE', '/cam/whep/' + '0' * 32, None, None, 404)]:
            status, head, text = proxy.ask(method, path, body, kind)
            print(f'# {method} {path} {kind}: {status} {text.strip()}')
            assert status == wanted, (method, path, status, text)
            assert wanted != 405 or head['allow'] == (
                ALLOWED if method == 'PUT' else 'GET, HEAD, POST, OPTIONS'), head
            assert wanted != 204 or not text, text
            if method == 'HEAD':
                assert head['content-type'] == SDP, head
        assert not proxy.readers()


@test
def a_page_of_another_site_may_ask():
    with WebrtcProxy() as proxy:
        for path in '/cam/whep', '/cam/whep/' + '0' * 32:
            status, head, _ = proxy.ask('OPTIONS', path, Origin='https://other.example',
                                        Access_Control_Request_Method='POST')
            assert status == 204 and head['accept-post'] == SDP, head
            assert head['access-control-allow-methods'] == ALLOWED, head
            assert head['access-control-allow-headers'] == 'Authorization, Content-Type, If-Match', head
            assert head['access-control-allow-origin'] == '*', head


@test
def a_session_is_changed_by_who_knows_its_etag():
    candidate = 'm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=candidate:1 1 udp 1 x.local 9 typ host\r\n'
    restart = 'a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n' + candidate
    with WebrtcProxy() as proxy:
        path, head, answer = proxy.post()
        tag = head['etag']
        for body, kind, match, wanted in [
                (candidate, FRAGMENT, tag, 204), (candidate, SDP, tag, 415), (candidate, FRAGMENT, None, 428),
                (candidate, FRAGMENT, '"old"', 412), (candidate, FRAGMENT, '*', 204), ('', FRAGMENT, tag, 400),
                ('a=ice-ufrag:abcd\r\na=ice-pwd:short\r\n', FRAGMENT, '*', 400),
                (restart, FRAGMENT, '"old"', 412),
                (candidate.replace('a=mid:0', 'a=mid:7'), FRAGMENT, tag, 422),
                (restart.replace('a=mid:0', 'a=mid:7'), FRAGMENT, '*', 422),
                ('m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=inactive\r\n', FRAGMENT, tag, 422)]:
            headers = {'If_Match': match} if match else {}
            status, head, text = proxy.ask('PATCH', path, body, kind, **headers)
            assert status == wanted and 'etag' not in head, (status, wanted, text)
        status, head, text = proxy.ask('PATCH', path, restart, FRAGMENT, If_Match='*')
        assert status == 200 and head['content-type'] == FRAGMENT and head['etag'] != tag, (status, head, text)
        ufrag = re.search(r'a=ice-ufrag:(\S+)', answer)[1]
        assert re.search(r'a=ice-ufrag:(\S+)', text)[1] != ufrag and 'a=candidate:' in text, text
        assert proxy.ask('PATCH', path, candidate, FRAGMENT, If_Match=tag)[0] == 412
        # Candidates that come with the new user name do not restart again.
        for match in head['etag'], '*':
            again, other, _ = proxy.ask('PATCH', path, restart, FRAGMENT, If_Match=match)
            assert again == 204 and 'etag' not in other, (again, other)
        assert proxy.ask('PATCH', path, candidate, FRAGMENT, If_Match=head['etag'])[0] == 204
        status, head, text = proxy.ask('PATCH', path, restart.replace('abcd', 'wxyz'), FRAGMENT, If_Match='"*"')
        assert status == 200 and head['etag'] != tag, (status, head, text)
        for method in 'GET', 'HEAD', 'POST':
            status, head, _ = proxy.ask(method, path, offer() if method == 'POST' else None)
            assert status == 405 and head['allow'] == 'PATCH, DELETE, OPTIONS', (method, status, head)


@test
def a_mount_without_media_gets_409():
    with WebrtcProxy(mounts={'/live': {'upstream': 'publish', 'start-timeout': '300ms'}}) as proxy:
        status, head, text = proxy.ask('POST', '/live/whep', offer())
        assert status == 409 and int(head['retry-after']) > 0, (status, head, text)


@test
def nothing_in_common_gets_406():
    with WebrtcProxy(f'file://{clip("h265", None)}') as proxy:
        status, _, text = proxy.ask('POST', body=offer('gstreamer'))
        assert status == 406 and 'H264' in text and 'H265' in text, (status, text)


@test(timeout=90)
def where_nothing_fits_a_rendition_does():
    motion_jpeg = ('launch: videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=25/1 ! '
                   'jpegenc ! rtpjpegpay name=pay0')
    renditions = {'choices': {'transcode': ['size', 'rate']}, 'renditions': ['layers=0.0.*', 'size=160x90&rate=300k']}
    with WebrtcProxy(motion_jpeg, mount=renditions) as proxy:
        result = pion(f'{proxy.web}/cam/whep', '--duration', '2')[0]
        assert result['status'] == 'ok' and [track['kind'] for track in result['tracks']] == ['video'], result
        assert result['tracks'][0]['units'] > 20 and result['tracks'][0]['lost'] == 0, result
        proxy.wait_for_line(r'reader \S+ in: /cam\?size=160x90&rate=300k over WebRTC')
        wait_until(lambda: not proxy.readers(), 10, 'no readers')
        # Neither a rendition that does not fit, nor another form than was asked for.
        status, _, text = proxy.ask('POST', body=offer('gstreamer').replace('H264', 'VP8'))
        assert status == 406 and 'VP8' in text and 'JPEG' in text, (status, text)
        status, _, text = proxy.ask('POST', '/cam/whep?layers=0.0.0', offer('gstreamer'))
        assert status == 406 and 'H264' in text and 'JPEG' in text, (status, text)
    with WebrtcProxy(motion_jpeg, mount={**renditions, 'max-presentations': 1}) as proxy:
        proxy.post('gstreamer', '/cam/whep?size=128x72')
        status, _, text = proxy.ask('POST', body=offer('gstreamer'))
        assert status == 406 and 'H264' in text and 'JPEG' in text and 'max-presentations' in text, (status, text)


@test
def a_reader_needs_the_permission():
    digest = ['MD5:' + hashlib.md5(b'ann:rtsp-proxy:secret').hexdigest()]
    users = [{'name': 'ann', 'digest': digest, 'permissions': [{'action': 'read', 'path': '/cam'}]}]
    basic = 'Basic ' + base64.b64encode(b'ann:secret').decode()
    with WebrtcProxy(users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        for path in '/cam/whep', '/none/whep':
            for method in 'GET', 'HEAD', 'POST':
                status, head, _ = proxy.ask(method, path, offer() if method == 'POST' else None)
                assert status == 401 and 'www-authenticate' in head, (path, method, status)
        path, _, _ = proxy.post(Authorization=basic)
        assert proxy.ask('DELETE', path)[0] == 200 # the URL is the secret


@test
def sessions_are_limited():
    with WebrtcProxy(mount={'max-readers': 2}) as proxy:
        paths = [proxy.post()[0] for _ in range(2)]
        status, head, text = proxy.ask('POST', body=offer())
        assert status == 503 and 'max-readers' in text and int(head['retry-after']) > 0, (status, text)
        proxy.ask('DELETE', paths[0])
        wait_until(lambda: proxy.ask('POST', body=offer())[0] == 201, 10, 'room')


# ---- media ----

def check_media(result, seconds):
    assert result['status'] == 'ok', result
    tracks = {track['kind']: track for track in result['tracks']}
    video, audio = tracks['video'], tracks['audio']
    assert video['lost'] == audio['lost'] == 0 and video['keyframes'] > 0, tracks
    assert video['units'] > 20 * seconds and audio['units'] > 40 * seconds, tracks
    assert video['ts_backward'] == audio['ts_backward'] == 0, tracks
    assert video['largest'] <= 1188 and video['sender_reports'] >= seconds, tracks


@test(timeout=90)
def pion_plays():
    with WebrtcProxy() as proxy:
        result = pion(f'{proxy.web}/cam/whep', '--duration', '4')[0]
        check_media(result, 3)
        assert 'GCM' in result['cipher'], result
        wait_until(lambda: not proxy.readers(), 10, 'no readers')
        proxy.wait_for_line(r'reader \S+ in: /cam over WebRTC')


@test(timeout=90)
def the_timestamps_of_encoded_sound_are_even():
    """a browser drops a packet whose timestamp is a tick too early, so each is exactly 20 ms after the one before"""
    for _ in range(3):  # the first timestamp decides on how later ones are rounded
        with WebrtcProxy(mount={'on-demand': False}) as proxy:
            done = subprocess.run([program(), 'read', '--units', '--duration', '2', f'{proxy.web}/cam/whep'],
                                  capture_output=True, text=True, check=True, timeout=60 * SLOWER)
            times = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith('audio ')]
            steps = {(b - a) % 2 ** 32 for a, b in zip(times, times[1:])}
            assert len(times) > 50 and steps == {960}, (len(times), steps)


@test(timeout=90)
def pion_plays_over_tcp_and_with_the_other_cipher():
    with WebrtcProxy() as proxy:
        check_media(pion(f'{proxy.web}/cam/whep', '--duration', '3', '--tcp')[0], 2)
        check_media(pion(f'{proxy.web}/cam/whep', '--duration', '3', '--cm')[0], 2)


@test(timeout=90)
def a_mount_without_sound_plays():
    with WebrtcProxy(f'file://{clip(audio=None)}') as proxy:
        result = pion(f'{proxy.web}/cam/whep', '--duration', '2')[0]
        assert result['status'] == 'ok', result
        assert [(track['kind'], track['lost']) for track in result['tracks']] == [('video', 0)], result


@test(timeout=90)
def the_first_reader_begins_with_the_first_picture():
    with tempfile.TemporaryDirectory() as rare:
        path = os.path.join(rare, 'rare.mp4')
        subprocess.run(['ffmpeg', '-v', 'error', '-i', clip(audio=None), '-an', '-c:v', 'libx264', '-tune', 'zerolatency',
                        '-preset', 'ultrafast', '-g', '250', '-t', '20', path], check=True, timeout=60 * SLOWER)
        with WebrtcProxy(f'file://{path}') as proxy:
            result = pion(f'{proxy.web}/cam/whep', '--duration', '4')[0]
            video, = result['tracks']
            # The next keyframe comes 10 s after the first one.
            assert video['keyframe_ms'] > 0 and video['units'] > 50 and video['lost'] == 0, result


def rare_keyframes():
    """A clip of H.264 and AAC with a keyframe every 10 s."""
    return keyframes_every(250)


@lru_cache
def keyframes_every(n):
    """A clip of H.264 and AAC with 25 pictures a second and every `n`th one a keyframe."""
    path = os.path.join(folder().name, f'every-{n}.mp4')
    subprocess.run(['ffmpeg', '-v', 'error', '-i', clip(), '-c:v', 'libx264', '-tune', 'zerolatency', '-preset', 'ultrafast',
                    '-g', str(n), '-sc_threshold', '0', '-c:a', 'copy', '-t', '30', path], check=True, timeout=60 * SLOWER)
    return path


@test(timeout=120)
def the_first_reader_of_a_stream_that_plays_begins_at_once():
    for _ in range(2):
        with WebrtcProxy(f'file://{rare_keyframes()}', mount={'on-demand': False, 'linger': '0s'}) as proxy:
            proxy.wait_for_line('mount /cam up')
            time.sleep(1)  # what plays is older than the reader
            result = pion(f'{proxy.web}/cam/whep', '--duration', '3')[0]
            tracks = {track['kind']: track for track in result['tracks']}
            # The next keyframe comes 9 s later. What has gone by comes too, faster than it was.
            assert 0 < tracks['video']['keyframe_ms'] < 2000, result
            assert tracks['video']['units'] > 85 and tracks['video']['lost'] == 0, result
            assert tracks['audio']['units'] > 50 and tracks['audio']['lost'] == 0, result


def workers_of(proxy, stage):
    return [int(node['params']['worker']) for node in proxy.get('/v1/graph')['nodes']
            if node['kind'] == 'stage' and node['label'] == stage and 'worker' in node['params']]


@test(timeout=120)
def the_picture_goes_on_while_the_sound_cannot_be_encoded():
    with WebrtcProxy(isolate='yes') as proxy, \
            Proc(program(), 'read', '--json', '--duration', '10', f'{proxy.web}/cam/whep') as reading:
        wait_until(lambda: [each for each in proxy.readers() if each['packets'] > 100], 30, 'a reader')
        proxy.wait_for_line(r' mount /cam has what its stage opus makes$', 30)
        for _ in range(3):  # the stage waits ever longer until it starts again
            seen = len(proxy.lines)
            victim, = workers_of(proxy, 'opus')
            os.kill(victim, signal.SIGKILL)
            proxy.wait_for_line(rf' mount /cam goes on without what its stage opus makes: stage opus: worker {victim} '
                                r'ended by SIGKILL; next try in', start=seen)
            proxy.wait_for_line(r' mount /cam has what its stage opus makes$', 30, start=seen)
        result = json.loads(reading.wait_for_line(r'^\[.*\]$', 60)[0])[0]
        print(f'# {result}')
        tracks = {track['kind']: track for track in result['tracks']}
        video, audio = tracks['video'], tracks['audio']
        assert video['lost'] == 0 and video['units'] > 200 and video['max_gap_ms'] < 1000 < audio['max_gap_ms'], result
        assert audio['units'] > 200 and audio['ts_backward'] == 0 and not matches(proxy, ' mount /cam down'), result


@test(timeout=90)
def webrtcbin_plays():
    """GStreamer's webrtcbin plays pictures, none of them broken, and sound, also if it loses packets"""
    path = keyframes_every(25)
    whole = [digest for _, digest in frames(path, seconds=30)['video']]
    pairs = set(zip(whole, whole[1:]))
    with WebrtcProxy(f'file://{path}') as proxy:
        for words in [], ['50']:
            done = subprocess.run([os.environ['WEIR_WEBRTCBIN_READER'], f'{proxy.web}/cam/whep', '4', *words], capture_output=True,
                                  text=True, timeout=60 * SLOWER, check=False)
            if done.returncode == 77:
                raise Skip(done.stdout.strip())
            assert done.returncode == 0, done.stderr
            result = json.loads(done.stdout)
            pictures, sound = result['video'].pop('pictures'), result['audio']
            gaps = [n for n, pair in enumerate(zip(pictures, pictures[1:])) if pair not in pairs]
            print(f'# {result} {len(pictures)} pictures')
            assert len(pictures) > 90 and not set(pictures) - set(whole), pictures
            # Of what it loses, webrtcbin asks for nearly all again.
            assert len(gaps) <= (3 if words else 0), gaps
            assert sound['packets'] > 150 and sound['ms'] > 3000, sound
            assert bool(result['lost']) == bool(words), result


@test(timeout=90)
def what_is_lost_comes_again():
    # Pion asks up to ten times for a packet, also after it has come: only the first times get an answer, so all that
    # is lost fits into the budget.
    with WebrtcProxy(f'file://{CLIP}') as proxy:
        result = pion(f'{proxy.web}/cam/whep', '--duration', '6', '--lose', '50')[0]
        video, = (track for track in result['tracks'] if track['kind'] == 'video')
        assert result['status'] == 'ok' and video['late'] > 1 and video['lost'] == 0, result


@test(timeout=90)
def a_keyframe_that_has_just_left_comes_again():
    with WebrtcProxy(f'file://{keyframes_every(50)}', mount={'on-demand': False}) as proxy:
        proxy.wait_for_line('mount /cam up')
        result = pion(f'{proxy.web}/cam/whep', '--duration', '7', '--pli', '40')[0]
        video, = [track for track in result['tracks'] if track['kind'] == 'video']
        # Three or four keyframes are in 7 s, and the one that the reader begins with. Each comes once more, and not twice.
        assert 7 <= video['keyframes'] <= 10, result
        assert video['ts_backward'] == video['lost'] == 0, result


@test(timeout=90)
def packets_have_transport_wide_numbers():
    """all tracks and what is sent again share one row of numbers, from which nothing is left out"""
    with WebrtcProxy() as proxy:
        result = pion(f'{proxy.web}/cam/whep', '--duration', '4', '--twcc')[0]
        check_media(result, 3)
        assert result['numbered'] > 200 and result['unnumbered'] == result['missing'] == 0, result
        result = pion(f'{proxy.web}/cam/whep', '--duration', '4', '--twcc', '--lose', '10')[0]
        assert result['status'] == 'ok' and result['unnumbered'] == 0, result
        assert result['numbered'] > 200 and 0 < result['missing'] <= result['dropped'], result
        # Who does not offer it has none.
        result = pion(f'{proxy.web}/cam/whep', '--duration', '2')[0]
        assert result['status'] == 'ok' and result['numbered'] == 0, result


def line_of(proxy):
    """What the API says of the only reader: its state, and its line."""
    readers = proxy.readers()
    return (readers[0]['state'], readers[0]['layers'] and readers[0]['layers']['line']) if readers else (None, None)


@test(timeout=120)
def a_reader_gets_what_its_line_carries():
    with WebrtcProxy(f'file://{keyframes_every(25)}') as proxy:
        with Proc(program(), 'read', '--twcc', '--duration', '60', f'{proxy.web}/cam/whep'):
            wait_until(lambda: line_of(proxy)[1], 30, 'an estimate of the line')
            time.sleep(4)
            state, line = line_of(proxy)
            assert state == 'ok' and line['state'] == 'clear' and line['gets'] == 'layers', line
            assert line['reason'] == 'all that is allowed', line
            estimate = proxy.readers()[0]['layers']['estimate']
            assert estimate > 50000, estimate
            assert proxy.metric('readers_by_line{mount="/cam",state="clear"}') == 1
        wait_until(lambda: not proxy.readers(), 20, 'no readers')
        # Half of the packets are lost, whatever it gets.
        with Proc(program(), 'read', '--twcc', '--lose', '2', '--duration', '60', f'{proxy.web}/cam/whep'):
            wait_until(lambda: line_of(proxy)[0] == 'keyframes', 30, 'keyframes only')
            line = line_of(proxy)[1]
            assert line['gets'] == 'keyframes' and line['reason'] == 'its line loses packets', line
            assert proxy.metric('adaptation_down_total') >= 1
        # One without feedback on each packet has no estimate.
        wait_until(lambda: not proxy.readers(), 20, 'no readers')
        with Proc(program(), 'read', '--duration', '60', f'{proxy.web}/cam/whep'):
            wait_until(lambda: proxy.readers() and proxy.readers()[0]['packets'] > 100, 30, 'packets')
            assert line_of(proxy) == ('ok', None), line_of(proxy)


@test
def what_the_port_refuses_is_counted():
    with WebrtcProxy() as proxy:
        port = media_port(proxy.post()[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for first in 0xff, 0x80, 0x80:
                stranger.sendto(bytes([first]) * 100, ('127.0.0.1', port))
        wait_until(lambda: (proxy.metric('webrtc_refused_total{reason="malformed"}'),
                            proxy.metric('webrtc_refused_total{reason="stranger"}')) == (1, 2), 10, 'the counts')


@test(timeout=90)
def reports_that_are_not_authentic_are_counted():
    with WebrtcProxy() as proxy, raw_socket() as raw:
        port = media_port(proxy.post()[2])
        with Proc(program(), 'read', '--duration', '60', f'{proxy.web}/cam/whep') as reading:
            wait_until(lambda: [each for each in proxy.readers() if each['packets'] > 100], 30, 'a reader')
            before = proxy.metric('srtcp_refused_total')
            send_as(raw, reading, port, b'\x80\xc9' + bytes(58))
            wait_until(lambda: proxy.metric('srtcp_refused_total') == before + 1, 10, 'the count')
            assert before == 0


@test(timeout=90)
def a_reader_is_shown_and_closed():
    with WebrtcProxy() as proxy, Proc(program(), 'read', '--json', '--duration', '60', f'{proxy.web}/cam/whep') as reading:
        wait_until(lambda: [each for each in proxy.readers() if each['transport'] == 'WebRTC'
                            and each['packets'] > 100], 30, 'a reader')
        reader = proxy.readers()[0]
        assert reader['mount'] == '/cam' and reader['state'] == 'ok', reader
        assert proxy.http('DELETE', f'/v1/readers/{reader["id"]}')[0] in (200, 204)
        wait_until(lambda: not proxy.readers(), 10, 'no readers')
        result = json.loads(reading.wait_for_line(r'^\[.*\]$', 60)[0])[0]
        assert result['disconnected_ms'] > 0, result


@test(timeout=90)
def a_reader_that_plays_needs_no_thread_for_handshakes():
    with WebrtcProxy() as proxy, Proc(program(), 'read', '--duration', '60', f'{proxy.web}/cam/whep'):
        wait_until(proxy.readers, 30, 'a reader')
        wait_until(lambda: not {'webrtc-dtls', 'pool-rtsp-proxy'} & set(thread_names(proxy.pid).values()), 20,
                   'no idle threads')
        assert proxy.readers()


@test(timeout=90)
def the_proxy_ends_with_readers():
    with WebrtcProxy() as proxy, Proc(program(), 'read', '--duration', '60', f'{proxy.web}/cam/whep'):
        wait_until(proxy.readers, 30, 'a reader')
        start = time.monotonic()
        assert proxy.stop() == 0
        assert time.monotonic() - start < 3


run()
