# SPDX-License-Identifier: LGPL-2.1-or-later
"""Packets that the system drops, because a receive buffer of the proxy is full, are counted.

The test stops the proxy for a moment and sends more than the buffer holds."""

import re
import signal
import socket
import threading
from contextlib import contextmanager

from control import Controlled
from proc import free_port, read_threads
from proxy import wait_until
from scripted import KEY_PICTURE, Server, rtp
from tap import run, test

LARGE = KEY_PICTURE + bytes(1000)
# More than fit into the largest buffer, of 8 MiB as the kernel accounts it, at 2304 bytes a packet.
FLOOD = 6000
PAUSE = 0.02


class Sequence:
    """Sends packets with consecutive numbers by `send`, a few at a time."""

    def __init__(self, send):
        self._send, self.sent = send, 0

    def send(self, number):
        for _ in range(number):
            packet = bytearray(rtp(self.sent, self.sent * 90, LARGE))
            packet[1] |= 0x80 # the end of a frame
            self._send(packet)
            self.sent += 1

    @contextmanager
    def going(self):
        """Sends slowly meanwhile."""
        end = threading.Event()

        def work():
            while not end.wait(PAUSE):
                self.send(1)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


@contextmanager
def stopped(proxy):
    proxy.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: state(proxy) == 'T', 10, 'all threads are stopped')
        yield
    finally:
        proxy.signal(signal.SIGCONT)


def state(proxy):
    """Returns the state of the process, T if all its threads are stopped."""
    states = {text.rpartition(') ')[2][0] for text in read_threads(proxy.pid, 'stat').values()}
    return 'T' if states == {'T'} else 'running'


def check_overflow(proxy, sequence, mounts=('/cam',)):
    """Each packet is received or counted as an overflow, for each mount. The first few may come
    before the proxy takes any."""
    def ingest(mount):
        return proxy.get('/v1/mounts' + mount)['ingest']

    def counted(mount):
        counts = ingest(mount)
        return counts['packets'] + counts['overflow']

    with sequence.going():
        for mount in mounts:
            wait_until(lambda mount=mount: ingest(mount)['packets'] > 0, 20, f'{mount} receives')
            assert ingest(mount)['overflow'] == 0, ingest(mount)
    first = sequence.sent
    with stopped(proxy):
        sequence.send(FLOOD)
    with sequence.going():
        for mount in mounts:
            wait_until(lambda mount=mount: ingest(mount)['overflow'] > 0, 20,
                       f'{mount} counts the overflow')
    for mount in mounts:
        wait_until(lambda mount=mount: counted(mount) >= sequence.sent - first, 20,
                   f'{mount} has counted each packet')
        assert counted(mount) <= sequence.sent, (ingest(mount), sequence.sent)
        text = proxy.get('/metrics').decode()
        value = re.search(rf'^weir_ingest_overflow_packets_total{{mount="{mount}"}} (\d+)$', text,
                          re.M)[1]
        assert int(value) == ingest(mount)['overflow'], (mount, value, ingest(mount))


@test
def of_rtsp():
    """packets of an RTSP upstream, also behind a stage"""
    with Server() as server:
        mount = {'upstream': server.url, 'client': 'light', 'transport': 'udp', 'on-demand': False}
        with Controlled({'/cam': mount, '/staged': {**mount, 'pipeline': ['pull', 'restamp']}}) \
                as proxy:
            wait_until(lambda: server.sessions and 'PLAY' in server.sessions[0].asked, 10,
                       'the proxy plays')
            sequence = Sequence(lambda packet: server.sessions[0].send(0, packet))
            check_overflow(proxy, sequence, ('/cam', '/staged'))


@test
def of_rtp():
    """packets of an upstream that sends RTP to this host"""
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, \
            Controlled({'/cam': {
                'upstream': f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96',
                'on-demand': False}}) as proxy:
        sequence = Sequence(lambda packet: sender.sendto(packet, ('127.0.0.1', port)))
        check_overflow(proxy, sequence)


if __name__ == '__main__':
    run()
