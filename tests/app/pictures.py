# SPDX-License-Identifier: LGPL-2.1-or-later
"""Still pictures of live mounts over HTTP."""

import base64
import contextlib
import hashlib
import os
import random
import re
import signal
import struct
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from clips import ffmpeg
from hlsweb import FOLDER, PATIENT, Web
from once import make_once
from proc import Proc, Rtsp
from proxy import wait_until
from tap import run, test

RED, BLUE = (254, 0, 0), (0, 0, 254)
LIVE = {'upstream': 'publish', **PATIENT}
SDP = (b'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n'
       b'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n')
# For each codec: what FFmpeg encodes it with, and whether FFmpeg sends it over RTSP. Its
# packets of VP9 do not say which frames are keyframes.
CODECS = {
    'H264': (['libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-profile:v', 'baseline'], True),
    'H264 high': (['libx264', '-preset', 'veryfast', '-bf', '2', '-profile:v', 'high'], True),
    'H265': (['libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none'], True),
    'VP8': (['libvpx', '-deadline', 'realtime', '-cpu-used', '8'], True),
    'VP9': (['libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'], False),
}
JPEG = ('launch:videotestsrc is-live=true pattern=solid-color foreground-color=0xffff0000 ! '
        'video/x-raw,format=I420,width=160,height=192,framerate=10/1 ! videobox right=-160 fill=blue ! '
        'jpegenc ! rtpjpegpay name=pay0')


def colours(left='red', right='blue', size='320x192', ratio='1'):
    """Returns FFmpeg's options for a picture of two colours."""
    width, height = size.split('x')
    return ['-re', '-f', 'lavfi', '-i',
            f'color={left}:size={int(width) // 2}x{height}:rate=10,pad={width}:{height}:0:0:{right},setsar={ratio}']


def encoder(codec):
    return ['-c:v', *CODECS[codec][0], '-g', '10', '-pix_fmt', 'yuv420p']


def sending(proxy, codec='H264', path='/cam', **picture):
    """Publishes a picture of two colours."""
    return Proc(ffmpeg(), '-nostdin', '-loglevel', 'error', *colours(**picture), *encoder(codec),
                '-f', 'rtsp', '-rtsp_transport', 'tcp', proxy.url(path))


def clip(codec):
    path = os.path.join(FOLDER.name, f'two-colours-{codec}.mkv')
    words = [word for word in colours() if word != '-re']
    return make_once(path, lambda: subprocess.run(
        ['ffmpeg', '-y', '-v', 'error', *words, '-t', '20', *encoder(codec), path], check=True))


def decode(jpeg):
    """Returns the size of a JPEG, and its colours in the middle of the left and of the right half."""
    assert jpeg[:2] == b'\xff\xd8', jpeg[:100]
    with tempfile.NamedTemporaryFile(suffix='.jpg') as file:
        file.write(jpeg)
        file.flush()
        size = subprocess.run(['ffprobe', '-v', 'error', '-show_entries', 'stream=width,height', '-of', 'csv=p=0', file.name],
                              capture_output=True, text=True, check=True).stdout
        raw = subprocess.run(['ffmpeg', '-v', 'error', '-i', file.name, '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'],
                             capture_output=True, check=True).stdout
    width, height = (int(number) for number in size.split(','))
    assert len(raw) == width * height * 3
    return (width, height), *(tuple(raw[at:at + 3]) for at in
                              ((height // 2 * width + width * part // 4) * 3 for part in (1, 3)))


def is_close(colour, wanted):
    return all(abs(a - b) < 24 for a, b in zip(colour, wanted))


def check_picture(jpeg, size=(320, 192), left=RED, right=BLUE):
    found, *both = decode(jpeg)
    assert found == size and is_close(both[0], left) and is_close(both[1], right), (found, both)


def basic(name, password):
    return {'Authorization': 'Basic ' + base64.b64encode(f'{name}:{password}'.encode()).decode()}


class Pictures(Web):
    def picture(self, query='', headers=None, path='/cam', method='GET'):
        return self.fetch(f'{path}/picture.jpg{query}', headers, method)

    def count(self, name='pictures'):
        """Returns how many pictures were made."""
        return int(re.search(rf'^weir_{name}_total (\d+)$', self.get('/metrics').decode(), re.M)[1])

    def worker(self):
        """Returns the process that makes pictures, or None."""
        found = subprocess.run(['pgrep', '-P', str(self.pid), '-f', '^rtsp-proxy-worker picture'],
                               capture_output=True, text=True, check=False).stdout.split()
        return int(found[0]) if found else None


@test(timeout=200)
def a_picture_is_the_newest_keyframe():
    """of each codec, in its own size and narrower; never wider"""
    for codec, (_, over_rtsp) in {**CODECS, 'JPEG': (None, False)}.items():
        upstream = 'publish' if over_rtsp else JPEG if codec == 'JPEG' else f'file://{clip(codec)}'
        with Pictures(upstream) as proxy, sending(proxy, codec) if over_rtsp else contextlib.nullcontext():
            if over_rtsp:
                proxy.wait_for_line(' mount /cam up', 30)
            for query, size in (('', (320, 192)), ('?width=160', (160, 96)), ('?width=4000', (320, 192))):
                status, headers, body = proxy.picture(query)
                assert status == 200, (codec, status, body)
                assert headers['content-type'] == 'image/jpeg' and headers['x-content-type-options'] == 'nosniff', headers
                check_picture(body, size)


@test
def pixels_become_square():
    with Pictures('publish') as proxy, sending(proxy, size='240x192', ratio='4/3'):
        proxy.wait_for_line(' mount /cam up', 30)
        check_picture(proxy.picture()[2])
        check_picture(proxy.picture('?width=160')[2], (160, 96))


@test
def a_keyframe_is_decoded_once_for_all():
    """twenty clients at once, then others that have the picture already"""
    with Pictures(f'file://{clip("H265")}', {'linger': '60s'}) as proxy:
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: proxy.picture(), range(20)))
        assert {status for status, _, _ in answers} == {200}, answers
        assert len({body for _, _, body in answers}) == proxy.count() == 1
        _, headers, body = answers[0]
        tag, modified = headers['etag'], headers['last-modified']
        assert int(headers['content-length']) == len(body) and headers['cache-control'] == 'private, no-cache'
        for condition in ({'If-None-Match': tag}, {'If-None-Match': f'"x", {tag}'}, {'If-Modified-Since': modified}):
            status, headers, body = proxy.picture(headers=condition)
            assert (status, body, headers['etag']) == (304, b'', tag), (condition, status, headers)
        status, headers, body = proxy.picture(method='HEAD')
        assert (status, body, headers['etag']) == (200, b'', tag) and int(headers['content-length']) > 0
        assert proxy.count() == 1


@test
def the_next_keyframe_is_another_picture():
    with Pictures('publish', {'takeover': True}) as proxy:
        with sending(proxy):
            proxy.wait_for_line(' mount /cam up', 30)
            tag = proxy.picture()[1]['etag']
            wait_until(lambda: proxy.picture(headers={'If-None-Match': tag})[0] == 200, 10, 'another picture')
            with sending(proxy, left='blue', right='red'):
                wait_until(lambda: is_close(decode(proxy.picture()[2])[1], BLUE), 20, 'the other picture')


@test
def nothing_runs_that_nobody_asks_for():
    """an upstream on demand ends after the last picture, and runs without a worker before the first"""
    with Pictures(f'file://{clip("H265")}', {'linger': '100ms'}) as proxy:
        assert proxy.worker() is None
        assert proxy.picture()[0] == 200
        assert proxy.worker()
        state = lambda: proxy.get('/v1/mounts/cam')['state']
        assert state() == 'up', state()
        wait_until(lambda: state() == 'idle', 40, 'the upstream ends')


@test
def what_cannot_be_shown_is_said():
    sound = ['-re', '-f', 'lavfi', '-i', 'sine', '-c:a', 'aac', '-f', 'rtsp', '-rtsp_transport', 'tcp']
    with Pictures('publish', {'start-timeout': '1s'}, {'/sound': LIVE, '/gone': {'upstream': 'rtsp://127.0.0.1:9/', 'connect-timeout': '1s', 'start-timeout': '5s'}}) as proxy, \
            Proc(ffmpeg(), '-nostdin', '-loglevel', 'error', *sound, proxy.url('/sound')):
        proxy.wait_for_line(' mount /sound up', 30)
        for path, query, status, words in (
                ('/sound', '', 404, 'it has no video of H.264, H.265, VP8, VP9, AV1 or JPEG'),
                ('/nosuch', '', 404, 'Not Found'),
                ('/cam', '?width=15', 400, 'width must be one number from 16 to 4096'),
                ('/cam', '?width=4097', 400, 'width must be one number from 16 to 4096'),
                ('/cam', '?width=-1', 400, 'width must be one number from 16 to 4096'),
                ('/cam', '?width=20&width=30', 400, 'width must be one number from 16 to 4096'),
                ('/cam', '', 503, 'the upstream takes too long to start (start-timeout)'),
                ('/gone', '', 503, '/gone has no media at the moment')):
            found, headers, body = proxy.picture(query, path=path)
            assert found == status and words in body.decode(), (path, query, found, body)
            assert headers.get('cache-control') != 'private, no-cache', headers
        assert proxy.picture(path='/cam/picture.jpg')[0] == 404
        assert proxy.fetch('/cam/picture.jpg/more')[0] == 404
        assert proxy.picture(method='POST')[0] == 405
        assert proxy.worker() is None


@test
def pictures_need_the_right_to_read():
    user = {'name': 'ann', 'hash': 'sha256:' + hashlib.sha256(b'secret').hexdigest(), 'permissions': [{'action': 'read', 'path': '/cam'}]}
    other = {'name': 'any', 'networks': ['127.0.0.1/32'], 'permissions': [{'action': action} for action in ('publish', 'api', 'metrics')]}
    with Pictures('publish', mounts={'/other': LIVE}, users=[user, other], **{'basic-without-tls': True}) as proxy, sending(proxy):
        proxy.wait_for_line(' mount /cam up', 30)
        assert proxy.picture()[0] == 401
        assert proxy.picture(headers=basic('ann', 'wrong'))[0] == 401
        assert proxy.picture(headers=basic('ann', 'secret'), path='/other')[0] == 403
        check_picture(proxy.picture(headers=basic('ann', 'secret'))[2])


class Hostile(Rtsp):
    """A publisher of H.264 whose keyframes are what it says."""

    def __init__(self, proxy, path, unit):
        super().__init__(proxy.port)
        url = proxy.url(path)
        steps = (('ANNOUNCE', url, {'Content-Type': 'application/sdp'}, SDP),
                 ('SETUP', url + '/streamid=0', {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1;mode=record'}),
                 ('RECORD', url, {'Range': 'npt=0-'}))
        for step in steps:
            assert self.request(*step)[0] == 200, step
        self._unit, self._over = unit, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self):
        number = 0
        with contextlib.suppress(OSError):
            while not self._over.wait(0.04):
                unit = self._unit if number % 5 == 0 else b'\x41' + bytes(20)
                data = struct.pack('>BBHII', 0x80, 0x80 | 96, number, number * 3600, 77) + unit
                self.send(struct.pack('>cBH', b'$', 0, len(data)) + data)
                number += 1

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()
        return super().__exit__(*error)


@test(timeout=90)
def a_hostile_keyframe_harms_no_other():
    """one that no decoder can read, and a decoder that hangs or dies"""
    with Pictures('publish', mounts={'/bad': LIVE}) as proxy, sending(proxy), \
            Hostile(proxy, '/bad', b'\x65\x88' + random.Random(1).randbytes(900)):
        proxy.wait_for_line(' mount /bad up', 30)
        status, _, body = proxy.picture(path='/bad')
        assert status == 503, (status, body)
        assert proxy.count('picture_failures') >= 1
        check_picture(proxy.picture()[2])
        worker = proxy.worker()
        time.sleep(1.2)  # a picture stays the newest for a second
        os.kill(worker, signal.SIGSTOP)
        with ThreadPoolExecutor(2) as pool:
            asked = pool.submit(proxy.picture)
            time.sleep(0.5)
            os.kill(worker, signal.SIGKILL)
            status, _, body = asked.result()
        assert status == 503 and f'worker {worker} ended by SIGKILL'.encode() in body, (status, body)
        proxy.wait_for_line(rf' worker {worker} ended by SIGKILL; it ran 1 job$')
        status, headers, body = proxy.picture()
        assert status == 503, 'the keyframe may have been the reason'
        assert headers['retry-after']
        assert proxy.picture(path='/bad')[0] == 503 and proxy.worker() not in (None, worker)


if __name__ == '__main__':
    run()
