# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy with a live stream of layers, and its readers."""

import contextlib

from control import Controlled
from layerreader import LayerReader
from proc import Rtsp
from proxy import wait_until
from svcfile import Sender

SDP = """v=0\r
o=- 1 1 IN IP4 127.0.0.1\r
s=layers\r
c=IN IP4 127.0.0.1\r
t=0 0\r
m=video 0 RTP/AVP 96\r
a=rtpmap:96 H264/90000\r
a=fmtp:96 packetization-mode=1\r
a=control:video\r
"""


@contextlib.contextmanager
def published(url, port):
    """Publishes a track over TCP, which loses no packet, however long this machine does something else.
    Yields a function that sends on a channel: RTP on 0, RTCP on 1."""
    with Rtsp(port) as rtsp:
        for method, at, headers, body in (
                ('ANNOUNCE', url, {'Content-Type': 'application/sdp'}, SDP.encode()),
                ('SETUP', f'{url}/video', {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1;mode=record'}, b''),
                ('RECORD', url, {}, b'')):
            status = rtsp.request(method, at, headers, body)[0]
            assert status == 200, (method, status)
        yield rtsp.send_frame


@contextlib.contextmanager
def served(fps=30, **settings):
    """Runs the proxy with a live stream at /cam."""
    with Controlled({'/cam': {'upstream': 'publish', **settings}}) as proxy, \
            published(proxy.url(), proxy.port) as send, Sender(send, fps):
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'up', 10, 'the stream is up')
        with play(proxy) as first:
            first.wait_for(fps // 10)
            yield proxy


def play(proxy, query='', **options):
    return LayerReader(proxy.port, proxy.url('/cam' + query), **options)
