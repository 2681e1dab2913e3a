# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy with a live stream of layers, and its readers."""

import contextlib

from control import Controlled
from layerreader import LayerReader
from proc import free_udp_pair
from proxy import wait_until
from svcfile import Sender


@contextlib.contextmanager
def served(fps=30, **settings):
    """Runs the proxy with a live stream at /cam."""
    rtp, rtcp = free_udp_pair()
    port = rtp.getsockname()[1]
    rtp.close()
    rtcp.close()
    mount = {'upstream': f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96', 'on-demand': 'no',
             **settings}
    with Controlled({'/cam': mount}) as proxy, Sender(port, fps):
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'up', 10, 'the stream is up')
        with play(proxy) as first:
            first.wait_for(fps // 10)
            yield proxy


def play(proxy, query='', **options):
    return LayerReader(proxy.port, proxy.url('/cam' + query), **options)
