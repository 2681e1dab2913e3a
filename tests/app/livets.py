# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with a live mount, and readers of its transport stream over HTTP."""

import os
import socket
import subprocess
import tempfile
from functools import lru_cache

from control import Controlled

ENCODED = ['-c:v', 'libx264', '-g', '25', '-bf', '2', '-b:v', '600k', '-pix_fmt', 'yuv420p',
           '-c:a', 'aac']


SOURCE = ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25', '-f', 'lavfi', '-i',
          'sine=frequency=440:sample_rate=48000']
VP8 = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8']
CLIPS = {
    'b.mp4': ['-t', '12', *ENCODED],  # with B-frames, and a keyframe a second
    'long.mp4': ['-t', '40', *ENCODED],
    'vp8.webm': ['-t', '5', *VP8, '-c:a', 'libopus'],
    'vp8-only.webm': ['-t', '3', *VP8, '-an'],
    'aac.mp4': ['-t', '8', '-vn', '-c:a', 'aac'],
}


@lru_cache
def clips():
    return tempfile.TemporaryDirectory()


def clip(name='b.mp4'):
    path = os.path.join(clips().name, name)
    if not os.path.exists(path):
        subprocess.run(['ffmpeg', '-v', 'error', *SOURCE, *CLIPS[name], path], check=True,
                       stdin=subprocess.DEVNULL)
    return path


class Served(Controlled):
    """A proxy that serves a clip as /cam, also over HTTP."""

    def __init__(self, name='b.mp4', mount=None, mounts=None, **top):
        cam = {'upstream': f'file://{clip(name)}', 'linger': '500ms', **(mount or {})}
        super().__init__({'/cam': cam, **(mounts or {})}, http={'listen': '127.0.0.1:0'}, **top)
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])

    def stream(self, path='/ts/cam', rcvbuf=None, headers=''):
        """Returns the status, the head and the socket after it."""
        reader = socket.socket()
        if rcvbuf:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        reader.settimeout(20)
        reader.connect(('127.0.0.1', self.web_port))
        reader.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n'.encode())
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            byte = reader.recv(1)
            assert byte, head
            head += byte
        return int(head.split()[1]), head.decode(), reader

    def readers(self):
        return self.get('/v1/readers')['readers']
