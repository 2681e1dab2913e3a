# SPDX-License-Identifier: LGPL-2.1-or-later
"""The RTMP listener: publishers, well and badly."""

import os
import random
import re
import signal
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from librtmp import AUDIO, DATA, NULL, VIDEO, command, fields, message, number, text
from livets import clip
from nginxrtmp import RtmpServer
from proc import Proc, free_port
from proxy import CLIP, Read, program, tracks, wait_for_readers, wait_until
from rtmpproxy import LIVE, Rtmp, read_parts
from sanitized import stock_environment
from secured import make_certificate
from sent import Sender, check_frames, frames, sync
from tap import Skip, run, test

FILE = {'upstream': f'file://{CLIP}'}


@test
def what_ffmpeg_publishes_arrives_unchanged():
    """frames that FFmpeg publishes reach an RTSP reader unchanged and in sync; the API shows the publisher"""
    with Rtmp({'/live/cam': LIVE}) as proxy, proxy.send('/live/cam'):
        proxy.wait_for_line(r' publisher 127\.0\.0\.1:\d+ in: /live/cam over RTMP$', 30)
        proxy.wait_for_mount(path='/live/cam')
        times = check_frames(proxy, ('video', 'audio'), path='/live/cam')
        assert abs(sync(times)) < 5, sync(times)
        told = proxy.http('GET', '/v1/mounts/live/cam')[2]['publisher']
        assert told['transport'] == 'RTMP', told
        assert proxy.metric('rtmp_connections') == 1


@test
def what_gstreamer_publishes_arrives_unchanged():
    """frames that rtmp2sink publishes, with B-frames and without sound, arrive unchanged"""
    launch = ['filesrc', f'location={clip()}', '!', 'qtdemux', '!', 'h264parse', '!', 'flvmux', 'streamable=true',
              '!', 'rtmp2sink']
    with Rtmp({'/live/cam': LIVE}) as proxy, \
            Proc('gst-launch-1.0', '-q', *launch, f'location={proxy.rtmp("/live/cam")}', 'sync=true',
                 env=stock_environment()):
        proxy.wait_for_mount(1, '/live/cam')
        known = {frame for _, frame in frames(clip(), seconds=12)['video']}
        got = frames(proxy.url('/live/cam'), '-rtsp_transport', 'tcp')
        assert set(got) == {'video'} and len(got['video']) > 40, {kind: len(each) for kind, each in got.items()}
        assert not [frame for _, frame in got['video'] if frame not in known]


@test
def what_nginx_pushes_arrives_unchanged():
    """frames that nginx pushes on from another publisher arrive unchanged and in sync, again after nginx died"""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, Rtmp({'/live/cam': LIVE}) as proxy:
        os.chmod(folder, 0o777)
        for _ in range(2):
            seen = len(proxy.lines)
            with RtmpServer(port, folder, f'push {proxy.rtmp("/live")};'), \
                    Sender('-c', 'copy', '-f', 'flv', f'rtmp://127.0.0.1:{port}/live/cam'):
                proxy.wait_for_mount(path='/live/cam', start=seen)
                times = check_frames(proxy, ('video', 'audio'), path='/live/cam')
                assert abs(sync(times)) < 5, sync(times)
            proxy.wait_for_line(r' publisher \S+ out: /live/cam', 30, start=seen)


@test
def publishers_over_tls():
    """frames that FFmpeg publishes over TLS arrive unchanged, and its password is taken"""
    with tempfile.TemporaryDirectory() as folder:
        pem, secret = (os.path.join(folder, name) for name in ('proxy.pem', 'secret'))
        make_certificate(pem)
        with open(secret, 'w', encoding='ascii') as file:
            file.write('S3cret\n')
        os.chmod(secret, 0o600)
        users = [{'name': 'camera', 'password-file': secret, 'permissions': [{'action': 'publish'}]},
                 {'name': 'any', 'permissions': [{'action': 'read'}]}]
        with Rtmp({'/live/cam': LIVE}, 'tls-listen', users=users, api='off',
                  tls={'certificate': pem, 'listen': '127.0.0.1:0'}) as proxy:
            with proxy.send('/live/cam?user=camera&pass=S3cret'):
                proxy.wait_for_line(r' publisher 127\.0\.0\.1:\d+ in: /live/cam over RTMP$', 30)
                proxy.wait_for_mount(path='/live/cam')
                times = check_frames(proxy, ('video', 'audio'), path='/live/cam')
                assert abs(sync(times)) < 5, sync(times)
            proxy.wait_for_line(r' publisher \S+ out: /live/cam', 30)
            with proxy.publisher() as publisher: # without TLS
                publisher.send(b'\3' + bytes(1536))
                assert publisher.is_closed()


# ---- H.265, in the enhanced form, which FFmpeg before 6.1 cannot send ----

@lru_cache
def hevc():
    """Returns a folder, a clip with B-frames and AAC, and what it consists of: the record of its video and of its
    audio, and (time in ms, kind, key, composition offset in ms, frame) in order."""
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, 'hevc.mp4')
    done = subprocess.run(
        ['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25', '-f', 'lavfi', '-i',
         'sine=frequency=440:sample_rate=48000', '-t', '8', '-c:v', 'libx265', '-x265-params',
         'keyint=25:bframes=2:log-level=none', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-tag:v', 'hvc1', '-c:a', 'aac', path],
        stdin=subprocess.DEVNULL, check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Skip(f'FFmpeg cannot make H.265: {done.stderr.strip()[-80:]}')
    return folder, path, *read_parts(path, b'hvcC')


def send_hevc(publisher, stop, metadata=True):
    """Sends the clip as fast as the proxy reads, with the times of the clip, twice a second of it at most."""
    _, _, record, sound, parts = hevc()
    lead = 1000 # composition times of the first frames are before 0
    if metadata:
        publisher.media(DATA, text('@setDataFrame') + text('onMetaData')
                        + fields(videocodecid=number(0x68766331), audiocodecid=number(10)), 0)
    publisher.media(VIDEO, b'\x90hvc1' + record, 0)
    publisher.media(AUDIO, b'\xaf\0' + sound, 0)
    for start in range(0, 60000, 8000):
        for time, kind, key, offset, frame in parts:
            if kind == 'audio':
                body = b'\xaf\1' + frame
            elif offset:
                body = bytes([0x91 if key else 0xa1]) + b'hvc1' + offset.to_bytes(3, 'big', signed=True) + frame
            else:
                body = bytes([0x93 if key else 0xa3]) + b'hvc1' + frame
            publisher.media(AUDIO if kind == 'audio' else VIDEO, body, lead + start + time)
            if kind == 'audio' and stop.wait(0.01):
                return


@test
def h265_arrives_unchanged():
    """H.265 by its FourCC, with B-frames and sound, arrives over RTSP and HTTP unchanged and in sync"""
    stop = threading.Event()
    path = hevc()[1]
    with Rtmp({'/cam': LIVE}, http={'listen': '127.0.0.1:0'}) as proxy, proxy.publisher() as publisher:
        port = proxy.wait_for_line(r' titles http://[\d.]+:(\d+)')[1]
        publisher.publish('cam')
        thread = threading.Thread(target=send_hevc, args=(publisher, stop))
        thread.start()
        try:
            proxy.wait_for_mount()
            original = frames(path, seconds=8)
            with ThreadPoolExecutor(2) as pool:
                stream = pool.submit(frames, f'http://127.0.0.1:{port}/ts/cam')
                got = frames(proxy.url(), '-rtsp_transport', 'tcp')
                pictures = [frame for _, frame in stream.result()['video']]
        finally:
            stop.set()
            thread.join()
        for kind in 'video', 'audio':
            known = {frame for _, frame in original[kind]}
            wrong = [frame for _, frame in got[kind][1:] if frame not in known]
            assert len(got[kind]) > 40 and not wrong, (kind, len(got[kind]), len(wrong))
        known = {frame for _, frame in original['video']}
        assert len(pictures) > 40 and not [frame for frame in pictures if frame not in known]
        # The clip repeats every 8 s, and so do its frames.
        lags = {}
        for kind, each in got.items():
            known = {frame: time for time, frame in original[kind]}
            found = sorted((time - known[frame]) % 8 for time, frame in each if frame in known)
            lags[kind] = found[len(found) // 2]
        apart = (lags['audio'] - lags['video'] + 4) % 8 - 4
        assert abs(apart) < 0.005, (apart, lags)


# ---- bad publishers ----

def refusal(proxy, app, name):
    """Returns the code with which a publisher is refused, or None."""
    with proxy.publisher() as publisher:
        answer = publisher.ask(app, name).until('onStatus')
        if b'NetStream.Publish.Start' in answer:
            return None
        assert publisher.is_closed()
        return next(code for code in ('BadName', 'Denied', 'Failed') if code.encode() in answer)


@test
def unknown_mounts_are_refused():
    """a path that takes no publisher is refused with a code and a reason, and the log has the reason"""
    with Rtmp({'/cam': LIVE, '/file': FILE}) as proxy:
        for app, name in (('none', ''), ('cam', 'below'), ('file', ''), ('', ''), ('c\x1b[2Jam', ''),
                          ('cam', 'x' * 900)):
            assert refusal(proxy, app, name) == 'BadName', (app, name)
        assert refusal(proxy, 'cam', '') is None
        assert refusal(proxy, '', 'cam') is None
        proxy.wait_for_line(r' publisher \S+ refused: there is no such mount$')
        proxy.wait_for_line(r' publisher \S+ refused: the mount takes no publishers: its upstream is not publish$')
        proxy.wait_for_line(r' publisher \S+ refused: the name of its stream cannot be used: it has no path')
        assert not [line for line in proxy.lines if '\x1b' in str(line)]


@test
def only_users_with_the_permission_publish():
    """credentials in the URL follow the rules of RTSP, and are in no line of the log"""
    folder = tempfile.TemporaryDirectory()
    secret = os.path.join(folder.name, 'secret')
    with open(secret, 'w', encoding='ascii') as file:
        file.write('pa:s&s\n')
    os.chmod(secret, 0o600)
    hashed = subprocess.run([program(), 'hash-password', '--user', 'hashed'], input='pass\n', text=True,
                            capture_output=True, check=True).stdout
    users = [{'name': 'camera', 'password-file': secret, 'permissions': [{'action': 'publish', 'path': '/cam'}]},
             {'name': 'viewer', 'password-file': secret, 'permissions': [{'action': 'read'}]},
             {'name': 'hashed', 'hash': re.search(r'\$argon2id\S+(?<!["\'])', hashed)[0],
              'permissions': [{'action': 'publish', 'path': '/cam'}]}]
    mounts = {'/cam': LIVE, '/other': LIVE}
    with Rtmp(mounts, users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        for name, code in (('cam', 'Denied'), ('cam?user=camera&pass=wrong', 'Denied'),
                           ('cam?user=viewer&pass=pa:s%26s', 'Denied'), ('other?user=camera&pass=pa:s%26s', 'Denied'),
                           ('none?user=camera&pass=pa:s%26s', 'Denied'), ('cam?user=camera&pass=pa:s%26s', None),
                           ('cam?user=hashed&pass=pass', None), ('cam?user=hashed&pass=wrong', 'Denied')):
            seen = len(proxy.lines)
            assert refusal(proxy, name, '') == code, name
            if code:
                proxy.wait_for_line(' refused: its URL needs credentials' if name == 'cam' else
                                    r' refused: it(s credentials are not accepted| has no permission)', 30,
                                    start=seen)
            else:
                proxy.wait_for_line(r' publisher \S+ out: /cam', 30, start=seen)
        assert not [line for line in proxy.lines if 'pa:s' in str(line)]
    # RTMP is not encrypted, so without this key no password is taken.
    with Rtmp(mounts, users=users[:2], api='off') as proxy: # the third could never log in
        assert refusal(proxy, 'cam?user=camera&pass=pa:s%26s', '') == 'Denied'
        proxy.wait_for_line(r'password without TLS')


@test
def a_second_publisher_is_refused_or_takes_over():
    """a second publisher is refused with a code, or replaces the first if the mount says so"""
    with Rtmp({'/cam': LIVE, '/free': {**LIVE, 'takeover': 'yes'}}) as proxy:
        with proxy.send('/cam'), proxy.send('/free'):
            proxy.wait_for_mount()
            proxy.wait_for_mount(path='/free')
            assert refusal(proxy, 'cam', '') == 'BadName'
            seen = len(proxy.lines)
            with proxy.send('/free'):
                proxy.wait_for_line(r' publisher \S+ out: /free: another publisher has taken the mount over', 30)
                proxy.wait_for_mount(path='/free', start=seen)


@test
def a_publisher_that_lost_its_line_comes_back_at_once():
    """a publisher may replace itself when it has been silent for a second; another user may not"""
    with Rtmp({'/cam': LIVE}) as proxy:
        sender = proxy.send('/cam')
        name = proxy.wait_for_line(r' publisher (\S+) in: /cam over RTMP$', 30)[1]
        proxy.wait_for_mount()
        sender.signal(signal.SIGSTOP)
        wait_until(lambda: refusal(proxy, 'cam', '') is None, 30, 'the next connection of the publisher')
        proxy.wait_for_line(rf' publisher {name} out: /cam: another publisher has taken the mount over$')
        sender.kill()
    folder = tempfile.TemporaryDirectory()
    secret = os.path.join(folder.name, 'secret')
    with open(secret, 'w', encoding='ascii') as file:
        file.write('pass\n')
    os.chmod(secret, 0o600)
    users = [{'name': name, 'password-file': secret, 'permissions': [{'action': 'publish'}]} for name in ('one', 'two')]
    with Rtmp({'/cam': LIVE}, users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        sender = proxy.send('/cam?user=one&pass=pass')
        name = proxy.wait_for_line(r' publisher (\S+) in: /cam over RTMP$', 30)[1]
        proxy.wait_for_mount()
        sender.signal(signal.SIGSTOP)
        codes = []

        def is_back():
            codes.append(refusal(proxy, 'cam?user=two&pass=pass', ''))
            return refusal(proxy, 'cam?user=one&pass=pass', '') is None
        wait_until(is_back, 30, 'the next connection')
        assert set(codes) == {'BadName'}, codes
        proxy.wait_for_line(rf' publisher {name} out: /cam: another publisher has taken the mount over$')
        sender.kill()


@test
def a_publisher_may_die_and_come_back():
    """readers stay while a publisher is killed, and continue when it comes back; so do they when it says goodbye"""
    with Rtmp({'/cam': LIVE}) as proxy:
        sender = proxy.send('/cam')
        proxy.wait_for_mount()
        read = Read(proxy.url(), duration=6)
        wait_for_readers(proxy, 1)
        sender.kill()
        proxy.wait_for_line(r' mount /cam waits for a publisher: publish: the publisher has left', 30)
        seen = len(proxy.lines)
        with proxy.send('/cam'):
            proxy.wait_for_mount(start=seen)
            for number_, name, track in tracks(read.result()):
                for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes'):
                    assert track[key] == 0, (number_, name, key, track)
        proxy.wait_for_line(r' publisher \S+ out: /cam', 30, start=seen)
        seen = len(proxy.lines)
        with proxy.publisher() as publisher:
            publisher.publish('cam').send(command('FCUnpublish', 6, NULL, text('')) + command('deleteStream', 7, NULL, number(1)))
            proxy.wait_for_line(r' publisher \S+ out: /cam: it has ended the stream$', 30, start=seen)
            assert publisher.is_closed()


@test
def a_mount_that_is_removed_closes_its_publisher():
    with Rtmp({'/cam': LIVE, '/other': LIVE}) as proxy, proxy.publisher() as publisher:
        publisher.publish('cam')
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] in (200, 204)
        proxy.wait_for_line(r' publisher \S+ out: /cam: the mount takes no publishers any more', 30)
        assert publisher.is_closed()


@test
def noise_is_refused():
    """what is not RTMP is refused, and changed sessions leave a publisher alone"""
    dice = random.Random(7)
    session = (command('connect', 1, fields(app=text('x'))) + command('createStream', 2, NULL)
               + message(20, text('publish') + number(5) + NULL + text('x')) + message(VIDEO, b'\x17\0\0\0\0' + bytes(20)))
    with Rtmp({'/cam': LIVE, '/x': LIVE}) as proxy, proxy.send('/cam'):
        proxy.wait_for_mount()
        with proxy.publisher() as publisher:
            publisher.send(b'GET / HTTP/1.1\r\n\r\n')
            assert publisher.is_closed()
        proxy.wait_for_line(r' client \S+ refused: its first byte is not that of RTMP')
        for _ in range(200):
            data = bytearray(session)
            for _ in range(dice.randrange(1, 6)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            with proxy.publisher() as publisher:
                publisher.send(b'\3' + bytes(2 * 1536) + data[:dice.randrange(len(data) + 1)])
        with Read(proxy.url(), duration=2) as read:
            for number_, name, track in tracks(read.result()):
                assert track['lost'] == 0 and track['packets'] > 20, (number_, name, track)
        assert proxy.http('GET', '/v1/mounts/cam')[2]['state'] == 'up'
        wait_until(lambda: proxy.metric('rtmp_connections') == 1, 30, 'the end of all others')


@test
def a_slow_handshake_ends():
    """a client that does not ask to publish in time is closed, wherever it stops"""
    with Rtmp({'/cam': LIVE}, limits={'request-timeout': '1s'}) as proxy:
        with proxy.publisher() as silent, proxy.publisher() as slow, proxy.publisher() as shaken, \
                proxy.publisher() as good:
            slow.send(b'\3' + bytes(100))
            shaken.shake_hands()
            good.publish('cam')
            for each in silent, slow, shaken:
                assert each.is_closed()
            assert proxy.metric('rtmp_connections') == 1
        proxy.wait_for_line(r' client \S+ refused: it did not ask to publish in time \(limits.request-timeout\)')


@test
def a_huge_message_ends_its_connection():
    """a message above the limits ends its connection: 16 KiB before it may publish, 4 MiB afterwards"""
    with Rtmp({'/cam': LIVE}) as proxy:
        with proxy.publisher() as publisher:
            publisher.shake_hands().send(message(20, bytes(16385)))
            assert publisher.is_closed()
        proxy.wait_for_line(r' client \S+ refused: one of its messages is too long$')
        with proxy.publisher() as publisher:
            publisher.publish('cam')
            publisher.media(VIDEO, bytes(4 << 20), 0)
            publisher.send(message(VIDEO, bytes((4 << 20) + 1))[:200])
            proxy.wait_for_line(r' publisher \S+ out: /cam: one of its messages is too long$', 30)
            assert publisher.is_closed()


@test
def wrong_media_harm_nobody():
    """media that cannot be read, or are of other codecs, are counted or end their publisher with the reason"""
    with Rtmp({'/cam': LIVE}) as proxy:
        for bodies, why in (
                ([(VIDEO, b'\x22\0\0'), (AUDIO, b'\x2f\0')], 'it has no track that can be relayed'),
                ([(VIDEO, b'\x17\0\0\0\0\1')], 'the record of its video codec is malformed'),
                ([(AUDIO, b'\xaf\0\xff')], 'the record of its audio codec is malformed')):
            seen = len(proxy.lines)
            with proxy.publisher() as publisher:
                publisher.publish('cam')
                for kind, body in bodies:
                    publisher.media(kind, body, 0)
                proxy.wait_for_line(rf' publisher \S+ out: /cam: {why}$', 30, start=seen)
                assert publisher.is_closed()
        proxy.wait_for_line(r' publisher \S+: its audio is left out: MP3 is not taken over RTMP$')
        before = proxy.metric('rtmp_unusable_total')
        with proxy.publisher() as publisher:
            publisher.publish('cam')
            for body in b'', b'\x27\1', b'\x27\1\0\0\0before its record':
                publisher.media(VIDEO, body, 0)
            wait_until(lambda: proxy.metric('rtmp_unusable_total') == before + 3, 30, 'the count')
            assert refusal(proxy, 'cam', '') == 'BadName'


@test
def a_client_that_wants_to_play_is_told():
    with Rtmp({'/cam': LIVE}) as proxy, proxy.publisher() as publisher:
        publisher.shake_hands().send(command('connect', 1, fields(app=text('cam'))))
        publisher.until('NetConnection.Connect.Success')
        publisher.send(message(20, text('play') + number(0) + NULL + text('cam')))
        publisher.until('NetStream.Play.Failed')
        assert publisher.is_closed()
        proxy.wait_for_line(r' client \S+ refused: it asks to play, which is not offered over RTMP$')


if __name__ == '__main__':
    run()
