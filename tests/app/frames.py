# SPDX-License-Identifier: LGPL-2.1-or-later
"""All who need the frames of a track share one depayloader and one parser: recordings, HLS, transport streams and
pushes."""

import os
import socket
import tempfile
import urllib.error
import urllib.request

from control import Controlled
from livets import clip
from proxy import QUICK, wait_until
from tap import run, test

FACTORIES = {'GST_DEBUG': 'GST_ELEMENT_FACTORY:4', 'GST_DEBUG_NO_COLOR': '1'}
CHAIN = ('rtph264depay', 'h264parse', 'rtpmp4gdepay', 'aacparse')
ONE_EACH = dict.fromkeys(CHAIN, 1)


def made(proxy):
    """Returns how many of the elements that make frames a proxy has made."""
    return {each: sum(f'creating element "{each}"' in line for line in proxy.lines) for each in CHAIN}


def size(folder):
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(folder) for name in names)


def get(proxy, path):
    """Returns what the HTTP listener answers, or '' for an error."""
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{proxy.web_port}{path}', timeout=20) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError:
        return ''


class Camera(Controlled):
    """A server of a film that repeats, which also takes what is pushed to it."""

    def __init__(self):
        super().__init__({'/cam': {'upstream': f'file://{clip("long.mp4")}', 'on-demand': False},
                          '/in/cam': {'upstream': 'publish'}},
                         rtmp={'listen': '127.0.0.1:0'}, **{'file-roots': [os.path.dirname(clip('long.mp4'))]})
        self.rtmp_port = self.wait_for_line(r' rtmp://[\d.]+:(\d+)')[1]


class Reading(Controlled):
    """A proxy whose mount /cam is that of a camera, over TCP."""

    def __init__(self, camera, **keys):
        super().__init__({'/cam': {'upstream': camera.url(), 'transport': 'tcp', **QUICK, **keys}}, env=FACTORIES,
                         http={'listen': '127.0.0.1:0'})
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])


@test
def a_camera_with_all_takers_has_one_depayloader_and_one_parser_a_track():
    """a recording, pushes over UDP and RTMP, and readers of HLS and HTTP-TS"""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, Camera() as camera:
        receiver.bind(('127.0.0.1', 0))
        receiver.settimeout(30)
        pushes = [f'udp://127.0.0.1:{receiver.getsockname()[1]}', f'rtmp://127.0.0.1:{camera.rtmp_port}/in/cam']
        with Reading(camera, record={'folder': folder, 'part': '200ms'}, push=pushes) as proxy:
            wait_until(lambda: size(folder) > 100000, 30, 'the recording')
            assert receiver.recv(2048)
            camera.wait_for_line(' mount /in/cam up', 30)
            wait_until(lambda: get(proxy, '/hls/cam/index.m3u8'), 30, 'the playlist')
            with urllib.request.urlopen(f'http://127.0.0.1:{proxy.web_port}/ts/cam', timeout=20) as stream:
                assert len(stream.read(188000)) == 188000
            before = size(folder)
            wait_until(lambda: size(folder) > before, 30, 'the recording goes on')
            assert made(proxy) == ONE_EACH, made(proxy)
            assert proxy.stop() == 0


@test
def frames_are_made_from_the_first_taker_to_the_last():
    with Camera() as camera, Reading(camera) as proxy:
        assert made(proxy) == dict.fromkeys(CHAIN, 0)
        for n in (1, 2):
            with urllib.request.urlopen(f'http://127.0.0.1:{proxy.web_port}/ts/cam', timeout=20) as stream:
                assert len(stream.read(188000)) == 188000
                assert made(proxy) == dict.fromkeys(CHAIN, n), made(proxy)
            wait_until(lambda: not proxy.get('/v1/readers')['readers'], 20, 'the reader has gone')
            wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] != 'up', 20, 'the mount rests')


if __name__ == '__main__':
    run()
