# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with a live mount, and what its HLS says."""

import http.client
import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache

from control import Controlled
from tap import Skip

PATIENT = {'start-timeout': '30s', 'connect-timeout': '30s', 'read-timeout': '30s', 'linger': '200ms'}
VIDEO = {
    'h264': ['libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '25'],
    'h264-reordered': ['libx264', '-preset', 'veryfast', '-bf', '2', '-g', '25', '-x264-params', 'scenecut=0'],
    'h265': ['libx265', '-preset', 'ultrafast', '-x265-params', 'keyint=25:bframes=0:log-level=none'],
    'vp9': ['libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-g', '25'],
}
AUDIO = {'aac': ['aac'], 'opus': ['libopus']}


@lru_cache
def clips():
    return tempfile.TemporaryDirectory()


@lru_cache
def clip(video='h264', audio='aac', seconds=40):
    """Makes a clip. Returns its path."""
    if not shutil.which('ffmpeg'):
        raise Skip('no ffmpeg found')
    path = os.path.join(clips().name, f'{video}-{audio}.{"mp4" if "264" in video else "mkv"}')
    command = ['ffmpeg', '-y', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25']
    if audio:
        command += ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000']
    command += ['-t', str(seconds), '-c:v', *VIDEO[video], '-pix_fmt', 'yuv420p', '-b:v', '300k']
    command += ['-c:a', *AUDIO[audio], '-ac', '2'] if audio else []
    subprocess.run([*command, path], check=True)
    return path


class Web(Controlled):
    """A proxy with /cam, also over HTTP."""

    def __init__(self, upstream=None, mount=None, mounts=None, web=None, **top):
        source = upstream or f'file://{clip()}'
        super().__init__({'/cam': {'upstream': source, **PATIENT, **(mount or {})}, **(mounts or {})},
                         http={'listen': '127.0.0.1:0', **(web or {})}, **top)
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])
        self.web = f'http://127.0.0.1:{self.web_port}'

    def fetch(self, path, headers=None, method='GET'):
        """Returns status, headers and body of an answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.web_port, timeout=60)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body

    def begin(self, name='index.m3u8', mount='/cam'):
        """Begins a session. Returns the folder of its playlist, and the playlist's name."""
        status, _, body = self.fetch(f'/hls{mount}/{name}')
        assert status == 200, (status, body)
        uri = [line for line in body.decode().splitlines() if not line.startswith('#')][0]
        folder, name = uri.rsplit('/', 1)
        return f'/hls{mount}/{folder}', name

    def playlist(self, folder, name='live.m3u8', query=''):
        status, headers, body = self.fetch(f'{folder}/{name}{query}')
        assert status == 200, (status, body)
        assert headers['content-type'] == 'application/vnd.apple.mpegurl', headers
        assert headers['access-control-allow-origin'] == '*', headers
        return body.decode()


# ---- playlists ----

def attributes(line):
    return dict(re.findall(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)', line.split(':', 1)[1]))


def variants(proxy, name='index.m3u8'):
    """Returns [(attributes, URI)] of the master playlist of a new session."""
    status, _, body = proxy.fetch(f'/hls/cam/{name}')
    assert status == 200, (status, body)
    found = re.findall(r'^#EXT-X-STREAM-INF:(.*)\n(~.*)$', body.decode(), re.M)
    return [(attributes('x:' + each), uri) for each, uri in found]
