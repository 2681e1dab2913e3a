# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that serves titles at /films over RTSP and HTTP, and a player's view of them."""

import http.client

from control import Controlled
from films import ffmpeg
from proc import Rtsp
from proxy import CLIP

PICTURES = 133  # of the clip


class TitleProxy(Controlled):
    def __init__(self, mount, others=None, **top):
        super().__init__({'/films': mount, **(others or {})}, http={'listen': '127.0.0.1:0'}, **top)
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])

    def fetch(self, path, headers=None, may_be_cut=False):
        """Returns status and body of an answer. A body that ends early is an error, unless
        `may_be_cut`."""
        connection = http.client.HTTPConnection('127.0.0.1', self.web_port, timeout=60)
        connection.request('GET', path, headers=headers or {})
        answer = connection.getresponse()
        try:
            body = answer.read()
        except http.client.IncompleteRead as cut:
            if not may_be_cut:
                raise
            body = cut.partial
        connection.close()
        return answer.status, body


def clip():
    with open(CLIP, 'rb') as file:
        return file.read()


def pictures(source, *words):
    """Returns the hashes of the pictures that FFmpeg gets."""
    lines = ffmpeg(*words, '-i', source, '-an', '-f', 'framemd5', '-').decode().splitlines()
    return [line.split(',')[-1].strip() for line in lines if not line.startswith('#')]


def check_rtsp(proxy):
    """FFmpeg gets the pictures of the clip, which is a.mp4, also from a position; other titles are
    not there."""
    expected = pictures(CLIP)
    got = pictures(proxy.url('/films/a.mp4'), '-rtsp_transport', 'tcp')
    assert got == expected[:len(got)] and len(got) > PICTURES - 10, (len(got), len(expected))
    with_start = pictures(proxy.url('/films/a.mp4'), '-rtsp_transport', 'tcp', '-ss', '2')
    assert with_start and set(with_start) <= set(expected), len(with_start)
    with Rtsp(proxy.port) as rtsp:
        assert rtsp.request('DESCRIBE', proxy.url('/films/none.mp4'))[0] == 404
