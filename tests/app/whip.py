# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishers over WebRTC: the requests and answers of WHIP, and Pion, which shares no code with Weir, as a publisher."""

import base64
import hashlib
import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache

from chromium import Chromium
from lipsync import CLICK, FLASH, lateness
from proc import Proc
from proxy import wait_until
from sent import frames
from tap import SLOWER, Skip, run, test
from webrtcproxy import ALLOWED, SDP, folder, media_port, offer, program, raw_socket, send_as
from whipproxy import Whip, clip, pion, told


@lru_cache
def ffmpeg_with_whip():
    """Returns an FFmpeg that publishes over WebRTC: version 8 or later, of the system or of imageio-ffmpeg (PyPI)."""
    programs = ['ffmpeg']
    with suppress(ImportError):
        import imageio_ffmpeg  # pylint: disable=import-outside-toplevel
        programs.append(imageio_ffmpeg.get_ffmpeg_exe())
    for program_name in programs:
        with suppress(OSError):
            muxers = subprocess.run([program_name, '-hide_banner', '-muxers'], capture_output=True, text=True, check=False).stdout
            if ' whip ' in muxers:
                return program_name
    raise Skip('no FFmpeg publishes over WebRTC')


def check_frames(proxy, seconds=3):
    """Checks that a reader over RTSP gets the clip's pictures, each of them and none broken, and the sound."""
    whole = [frame for _, frame in frames(clip()[0], seconds=10)['video']]
    known = set(zip(whole, whole[1:] + whole[:1]))
    times = frames(proxy.url('/live'), '-rtsp_transport', 'tcp', seconds=seconds)
    got = [frame for _, frame in times['video']]
    # A reader begins with a keyframe, of which there is one a second.
    assert len(got) > 20 * (seconds - 1) and len(times['audio']) > 45 * seconds, {kind: len(each) for kind, each in times.items()}
    alien = [i for i, pair in enumerate(zip(got, got[1:])) if pair not in known]
    assert not alien, (len(got), alien)


# ---- requests ----

@test
def an_offer_is_answered():
    with Whip() as proxy:
        path, _, answer = proxy.post('chromium-publish', '/live/whip')
        lines = answer.split('\r\n')
        assert 'a=ice-lite' in lines and lines.count('a=recvonly') == 2, answer
        assert 'a=sendonly' not in lines and not [line for line in lines if line.startswith('a=ssrc')], answer
        assert not proxy.publisher()
        for name, status in ('chromium-publish', 409), ('obs', 409):
            again, head, text = proxy.ask('POST', '/live/whip', offer(name))
            assert again == status and 'publishes /live already' in text and int(head['retry-after']) > 0, (again, text)
        assert proxy.ask('DELETE', path)[0] == 200
        wait_until(lambda: proxy.ask('DELETE', path)[0] == 404, 10, 'the session to end')
        assert proxy.ask('POST', '/live/whip', offer('obs'))[0] == 201


@test
def wrong_requests_are_refused():
    with Whip() as proxy:
        good = offer('obs')
        two = good.replace('a=group:BUNDLE 0 1', 'a=group:BUNDLE 0 1 2') + good[good.index('m=video'):].replace('a=mid:1', 'a=mid:2')
        for method, path, body, kind, wanted in [
                ('GET', '/live/whip', None, None, 204), ('HEAD', '/live/whip', None, None, 200),
                ('POST', '/none/whip', good, SDP, 404), ('POST', '/cam/whip', good, SDP, 404),
                ('DELETE', '/live/whip', None, None, 405), ('PUT', '/live/whip', good, SDP, 405),
                ('POST', '/live/whip', good, 'text/plain', 415), ('POST', '/live/whip', good, None, 415),
                ('POST', '/live/whip', '', SDP, 400), ('POST', '/live/whip', 'v=0\n', SDP, 400),
                ('POST', '/live/whip', offer('chromium'), SDP, 400),
                ('POST', '/live/whip', good.replace('a=sendonly', 'a=inactive'), SDP, 400),
                ('POST', '/live/whip', good + 'a=x\n' * 20000, SDP, 413),
                ('POST', '/live/whip', good.replace('H264', 'H263'), SDP, 406),
                ('POST', '/live/whip', good.replace('packetization-mode=1', 'packetization-mode=0'), SDP, 406),
                ('POST', '/live/whip', good.replace('opus', 'red'), SDP, 406),
                ('POST', '/live/whip', good.replace('SAVPF 111', 'SAVPF 96').replace(':111 ', ':96 '), SDP, 422),
                ('POST', '/live/whip', two, SDP, 422),
                ('DELETE', '/live/whip/' + '0' * 32, None, None, 404)]:
            status, head, text = proxy.ask(method, path, body, kind)
            print(f'# {method} {path} {kind}: {status} {text.strip()}')
            assert status == wanted, (method, path, status, text)
            assert wanted != 405 or head['allow'] == (
                ALLOWED if method == 'PUT' else 'GET, HEAD, POST, OPTIONS'), head
        assert not proxy.publisher()


@test
def a_publisher_needs_the_permission():
    digest = ['MD5:' + hashlib.md5(b'ann:rtsp-proxy:secret').hexdigest()]
    users = [{'name': 'ann', 'digest': digest, 'permissions': [{'action': 'publish', 'path': '/live'}]},
             {'name': 'any', 'permissions': [{'action': 'read'}]}]
    basic = 'Basic ' + base64.b64encode(b'ann:secret').decode()
    with Whip(users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        for path in '/live/whip', '/none/whip':
            for method in 'GET', 'HEAD', 'POST':
                status, head, _ = proxy.ask(method, path, offer('obs') if method == 'POST' else None)
                assert status == 401 and 'www-authenticate' in head, (path, method, status)
        path, _, _ = proxy.post('obs', '/live/whip', Authorization=basic)
        assert proxy.ask('DELETE', path)[0] == 200  # the URL is the secret
        # Whoever has a password may publish from any page.
        wait_until(lambda: proxy.ask('POST', '/live/whip', offer('obs'), Authorization=basic,
                                     Origin='https://other.example')[0] == 201, 10, 'a session')


@test
def a_page_of_another_site_publishes_only_with_a_secret():
    with Whip(web={'allow-origins': ['https://good.example']}) as proxy:
        for origin, wanted in ('https://other.example', 403), ('null', 403), ('https://good.example', 201):
            status, _, text = proxy.ask('POST', '/live/whip', offer('obs'), Origin=origin)
            assert status == wanted, (origin, status, text)
    with Whip() as proxy:
        assert proxy.ask('POST', '/live/whip', offer('obs'), Origin=proxy.web)[0] == 201


# ---- media ----

@test(timeout=90)
def what_pion_publishes_arrives_unchanged():
    """what Pion publishes over UDP, TCP and with the other cipher arrives over RTSP unchanged"""
    with Whip() as proxy:
        for words in (), ('--tcp',), ('--cm',):
            with pion(proxy, *words) as publisher:
                publisher.wait_for_line('^CONNECTED$', 20)
                proxy.wait_for_publisher()
                assert proxy.publisher()['transport'] == 'WebRTC', proxy.publisher()
                check_frames(proxy)
                publisher.stop()
            proxy.wait_for_none('the client has ended the session')



@test(timeout=90)
def a_reader_gets_each_publisher_from_the_first_picture_on():
    whole = [frame for _, frame in frames(clip()[0], seconds=10)['video']]
    with Whip() as proxy, ThreadPoolExecutor(1) as pool:
        for n in range(6):
            with pion(proxy, *(['--tcp'] if n % 2 else [])):
                wait_until(proxy.publisher, 20, 'a publisher')
                if n == 0:
                    reading = pool.submit(frames, proxy.url('/live'), '-rtsp_transport', 'tcp', seconds=4)
                    proxy.wait_for_line(r' reader \S+ in: /live over TCP')
                time.sleep(1)  # of pictures
        got = [whole.index(frame) if frame in whole else -1 for _, frame in reading.result()['video']]
        print(f'# {got}')
        assert -1 not in got and got.count(0) >= 3, got
        assert all(b in (a + 1, 0) for a, b in zip(got, got[1:])), got


@test(timeout=90)
def what_is_lost_comes_again():
    with Whip() as proxy, pion(proxy, '--lose', '50') as publisher:
        proxy.wait_for_publisher()
        check_frames(proxy, seconds=6)
        publisher.stop()
        assert told(publisher, 'dropped') > 5 and told(publisher, 'nacked') > 2  # none of sound
        assert told(publisher, 'transport') > 60 and told(publisher, 'reports') > 8


@test(timeout=90)
def sound_and_pictures_have_one_clock():
    with Whip() as proxy, pion(proxy, files=clip(FLASH, CLICK, 30)):
        proxy.wait_for_publisher()
        late = lateness(proxy.url('/live'), spread=20)
        print(f'# {late:.1f} ms')
        assert abs(late - 6.5) < 20, late  # Opus delays what it encodes by 6.5 ms


@test(timeout=90)
def a_reader_over_webrtc_gets_what_is_published():
    with Whip() as proxy, pion(proxy):
        proxy.wait_for_publisher()
        done = subprocess.run([program(), 'read', '--json', '--duration', '4', f'{proxy.web}/live/whep'], check=True,
                              timeout=60 * SLOWER, capture_output=True, text=True)
        result, = json.loads(done.stdout)
        tracks = {track['kind']: track for track in result['tracks']}
        assert result['status'] == 'ok' and tracks['video']['units'] > 50 and tracks['audio']['units'] > 150, result
        assert not any(track['lost'] or track['ts_backward'] for track in tracks.values()), result


@test(timeout=90)
def the_requests_of_readers_reach_the_publisher():
    with Whip() as proxy, pion(proxy) as publisher:  # which has a keyframe each second: the proxy asks for none by itself
        proxy.wait_for_publisher()
        subprocess.run([program(), 'read', '--duration', '4', '--pli', '500', f'{proxy.web}/live/whep'], check=True, timeout=60 * SLOWER,
                       stdout=subprocess.DEVNULL)
        publisher.stop()
        assert 1 <= told(publisher, 'keys') < 8


ENCODERS = {'vp8': ('libvpx', '-deadline', 'realtime', '-auto-alt-ref', '0', '-b:v', '800k'),
            'vp9': ('libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '800k'),
            'av1': ('libsvtav1', '-preset', '12', '-svtav1-params', 'pred-struct=1:lookahead=0:keyint=25'),
            'h265': ('libx265', '-preset', 'ultrafast', '-tune', 'zerolatency', '-x265-params', 'log-level=error:keyint=25:bframes=0')}


def encoded(codec):
    """Returns the name of a file with 5 s of pictures."""
    path = os.path.join(folder().name, f'clip.{"h265" if codec == "h265" else codec + ".ivf"}')
    subprocess.run(['ffmpeg', '-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=25', '-t', '5', '-pix_fmt', 'yuv420p',
                    '-g', '25', '-c:v', *ENCODERS[codec], *(['-f', 'hevc'] if codec == 'h265' else []), path],
                   check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60 * SLOWER)
    return path


@test(timeout=180)
def other_codecs_than_h264_arrive():
    """VP8, VP9, AV1 and H.265 of Pion arrive over RTSP and WebRTC, of which FFmpeg reads all but AV1"""
    for codec in ENCODERS:
        path = encoded(codec)
        with Whip() as proxy, pion(proxy, '--lose', '100', files=(path, clip()[1])):
            proxy.wait_for_publisher()
            done = subprocess.run([program(), 'read', '--json', '--duration', '3', '--codecs', f'{codec},opus', f'{proxy.web}/live/whep'],
                                  check=True, timeout=60 * SLOWER, capture_output=True, text=True)
            result, = json.loads(done.stdout)
            tracks = {track['kind']: track for track in result['tracks']}
            print(f'# {codec}: {tracks["video"]}')
            assert tracks['video']['units'] > 50 and tracks['audio']['units'] > 100, result
            assert not tracks['video']['ts_backward'] and tracks['video']['codec'].lower() == f'video/{codec}', result
            if codec != 'av1':
                whole = [frame for _, frame in frames(path, seconds=10)['video']]
                got = [frame for _, frame in frames(proxy.url('/live'), '-rtsp_transport', 'tcp')['video']]
                assert len(got) > 40 and not set(got) - set(whole), (codec, len(got), len(set(got) - set(whole)))


@test(timeout=90)
def what_ffmpeg_publishes_arrives_unchanged():
    program_name, film = ffmpeg_with_whip(), os.path.join(folder().name, 'film.mkv')
    picture, sound = clip()
    subprocess.run(['ffmpeg', '-v', 'error', '-y', '-r', '25', '-i', picture, '-i', sound, '-c', 'copy', film], check=True, timeout=60 * SLOWER)
    with Whip() as proxy:
        # It waits for the answer to DELETE.
        with Proc(program_name, '-nostdin', '-v', 'error', '-re', '-stream_loop', '3', '-i', film, '-c', 'copy', '-f', 'whip',
                  f'{proxy.web}/live/whip') as publisher:
            proxy.wait_for_publisher()
            check_frames(proxy)
            publisher.wait(30)
        proxy.wait_for_none('the client has ended the session')


PUBLISH = '''(async () => {
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 360 }, audio: true });
    window.peer = new RTCPeerConnection();
    for (const track of stream.getTracks())
      peer.addTransceiver(track, { direction: 'sendonly', streams: [stream],
                                   sendEncodings: track.kind === 'video' ? ENCODINGS : [{}] });
    await peer.setLocalDescription();
    const answer = await fetch('/live/whip', { method: 'POST', body: peer.localDescription.sdp,
                                               headers: { 'Content-Type': 'application/sdp' } });
    if (answer.status !== 201)
      return answer.status;
    window.session = answer.headers.get('Location');
    await peer.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
    return 201;
  })()'''
# The layers that are sent.
SENT = '''(async () => [...(await peer.getStats()).values()].filter(
    (each) => each.type === 'outbound-rtp' && each.kind === 'video' && each.framesSent > 0))()'''


def chromium_publishes(encodings):
    with Whip() as proxy, Chromium('--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream') as browser:
        browser.open(f'{proxy.web}/')
        browser.wait('location.port && document.readyState === "complete"', 30, 'the page')
        assert browser.run(PUBLISH.replace('ENCODINGS', encodings)) == 201
        proxy.wait_for_publisher()
        times = frames(proxy.url('/live'), '-rtsp_transport', 'tcp', seconds=6)
        sent = browser.run(SENT)
        print(f'# {sent}')
        assert len(sent) == 1, sent
        assert len(times['video']) > 60 and len(times['audio']) > 200, {kind: len(each) for kind, each in times.items()}
        # By itself the browser makes a keyframe at the beginning only.
        assert 2 <= sent[0]['pliCount'] < 8 and sent[0]['keyFramesEncoded'] > 2, sent
        assert browser.run('fetch(session, { method: "DELETE" }).then((answer) => answer.status)') == 200
        proxy.wait_for_none('the client has ended the session')


@test(timeout=120)
def what_chromium_publishes_is_read():
    chromium_publishes('[{}]')


@test(timeout=120)
def of_several_layers_of_chromium_one_is_taken():
    chromium_publishes('[{ rid: "h" }, { rid: "l", scaleResolutionDownBy: 2 }]')


@test(timeout=90)
def packets_that_are_not_authentic_are_counted():
    with Whip() as proxy, raw_socket() as raw:
        path, _, answer = proxy.post('obs', '/live/whip')
        proxy.ask('DELETE', path)
        proxy.wait_for_none('the client has ended the session')
        with pion(proxy) as publisher:
            proxy.wait_for_publisher()
            for first in 96, 200:  # RTP and RTCP
                send_as(raw, publisher, media_port(answer), bytes([0x80, first]) + bytes(58))
            wait_until(lambda: proxy.metric('webrtc_unused_total{reason="forged"}') == 2, 10, 'the counts')
            check_frames(proxy)


# ---- the end ----

@test(timeout=90)
def a_publisher_that_is_killed_leaves():
    with Whip({'read-timeout': '1s'}) as proxy:
        for _ in range(2):
            with pion(proxy) as publisher:
                proxy.wait_for_publisher()
                publisher.kill()
                proxy.wait_for_none('no media for 1.0 s')
        with pion(proxy):
            proxy.wait_for_publisher()


@test(timeout=90)
def another_publisher_takes_a_mount_over_if_that_is_allowed():
    with Whip() as proxy, pion(proxy) as first:
        proxy.wait_for_publisher()
        status, head, text = proxy.ask('POST', '/live/whip', offer('obs'))
        assert status == 409 and int(head['retry-after']) > 0 and 'publishes' in text, (status, text)
        with pion(proxy) as second:
            second.wait_for_line('status 409', 20)
            second.wait(10)
        first.stop()
        proxy.wait_for_none('the client has ended the session')
    with Whip({'takeover': 'yes'}) as proxy, pion(proxy) as first:
        proxy.wait_for_publisher()
        before = proxy.publisher()['peer']
        with pion(proxy):
            proxy.wait_for_line(r' publisher \S+ out: /live: another publisher has taken the mount over')
            first.wait_for_line('the connection has ended', 20)
            wait_until(lambda: (proxy.publisher() or {}).get('peer') not in (None, before), 10, 'the other publisher')
            check_frames(proxy)


@test(timeout=90)
def a_publisher_ends_with_its_mount():
    with Whip() as proxy, pion(proxy) as publisher:
        proxy.wait_for_publisher()
        assert proxy.http('DELETE', '/v1/mounts/live')[0] in (200, 204)
        proxy.wait_for_line(r' publisher \S+ out: /live: the mount no longer takes publishers')
        publisher.wait_for_line('the connection has ended', 20)


@test(timeout=90)
def the_proxy_ends_with_publishers():
    with Whip() as proxy, pion(proxy):
        proxy.wait_for_publisher()
        start = time.monotonic()
        assert proxy.stop() == 0
        assert time.monotonic() - start < 3


run()
