# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that speaks WebRTC, and the offers of its clients."""

import os
import re

from hlsweb import Web

OFFERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'offers')
SDP, FRAGMENT = 'application/sdp', 'application/trickle-ice-sdpfrag'
ALLOWED = 'GET, HEAD, POST, PATCH, DELETE, OPTIONS'


def offer(name='chromium'):
    with open(os.path.join(OFFERS, f'{name}.sdp'), encoding='utf-8') as file:
        return file.read()


class WebrtcProxy(Web):
    """A proxy that serves a clip as /cam over WebRTC."""

    def __init__(self, *words, webrtc=None, **top):
        super().__init__(*words, webrtc={'listen': '127.0.0.1:0', **(webrtc or {})}, **top)

    def ask(self, method, path='/cam/whep', body=None, kind=SDP, **headers):
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        if kind and body is not None:
            headers['Content-Type'] = kind
        status, head, data = self.fetch(path, headers, method, body)
        return status, head, data.decode()

    def post(self, name='chromium', path='/cam/whep', **headers):
        """Begins a session. Returns the path of its URL, its headers and the answer."""
        status, head, text = self.ask('POST', path, offer(name), **headers)
        assert status == 201, (status, text)
        assert head['content-type'] == SDP and head['etag'][0] == '"', head
        found = re.fullmatch(rf'http://127\.0\.0\.1:{self.web_port}(/.*/whi?e?p/[0-9a-f]{{32}})', head['location'])
        assert found, head
        return found[1], head, text

    def readers(self):
        return self.get('/v1/readers')['readers']
