# SPDX-License-Identifier: LGPL-2.1-or-later
"""A reader over RTSP and TCP behind a line that becomes narrow, and wide again."""

import time
from contextlib import contextmanager

from clips import ffmpeg
from control import Controlled
from layered import play, published
from networks import lines
from proc import Proc
from proxy import wait_until
from svcfile import Sender
from tap import run, test

ALL = '*.*.*'  # 2 Mb/s


@contextmanager
def served():
    """A proxy for all networks, with a stream of layers."""
    with Controlled({'/cam': {'upstream': 'publish'}}, listen='0.0.0.0:0',
                    users=[{'name': 'any', 'permissions': [{'action': each} for each in ('read', 'publish', 'api')]}]) as proxy, \
            published(proxy.url(), proxy.port) as send, Sender(send, 30):
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'up', 10, 'the stream is up')
        with play(proxy) as near:
            near.wait_for(3)
            yield proxy


@contextmanager
def reads(client, proxy):
    """A player behind the line."""
    with Proc(*client.words, ffmpeg(), '-nostdin', '-v', 'error', '-rtsp_transport', 'tcp', '-i',
              f'rtsp://{client.address}:{proxy.port}/cam', '-c', 'copy', '-f', 'null', '-'):
        wait_until(lambda: layers_of(proxy), 20, 'the player is a reader')
        yield


def layers_of(proxy):
    found = [each['layers'] for each in proxy.get('/v1/readers')['readers'] if each['peer'].startswith('10.81.')]
    return found[0] if found else None


def stays(proxy, seconds):
    """Checks that the reader gets all, whatever the frames of the stream do to a queue."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert layers_of(proxy)['wanted'] == ALL, layers_of(proxy)
        time.sleep(0.1)


@test(timeout=150)
def what_waits_in_a_socket_tells_of_a_narrow_line():
    """a reader over TCP gets less soon after its line was cut, and all again soon after that has ended"""
    with lines(1) as (client,), served() as proxy:
        client.narrow(5e6)
        with reads(client, proxy):
            wait_until(lambda: (layers_of(proxy)['line'] or {}).get('state') == 'clear', 10, 'the line is known')
            stays(proxy, 5)
            client.narrow(6e5)
            begin = time.monotonic()
            wait_until(lambda: layers_of(proxy)['wanted'] != ALL, 10, 'the reader gets less')
            print(f'# down after {time.monotonic() - begin:.1f} s')
            wait_until(lambda: 200000 < layers_of(proxy)['estimate'] < 900000, 5, 'the estimate is that of the line')
            assert layers_of(proxy)['line']['reason'] == 'the queue on its line grows', layers_of(proxy)
            time.sleep(2)
            assert layers_of(proxy)['wanted'] != ALL
            client.narrow(5e6)
            begin = time.monotonic()
            wait_until(lambda: layers_of(proxy)['wanted'] == ALL, 60, 'the reader gets all again')
            print(f'# up after {time.monotonic() - begin:.1f} s')
            assert layers_of(proxy)['line']['reason'] in ('its line has carried more', 'its line may carry more')


if __name__ == '__main__':
    run()
