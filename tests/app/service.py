# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy's messages to a service manager follow systemd's protocol."""

import contextlib
import os
import signal
import socket
import tempfile
import time

from control import CLIP_URI, Controlled, config
from proc import Rtsp
from tap import run, test

MOUNTS = {'/cam': {'upstream': CLIP_URI}}


class Manager:
    """A service manager's socket, at a path or, with an @, in the abstract namespace."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(10)
        self.socket.bind('\0' + name[1:] if name.startswith('@') else name)

    def environment(self, **more):
        return {'NOTIFY_SOCKET': self.name, **more}

    def next(self):
        """Returns the next message as a dictionary."""
        lines = self.socket.recv(4096).decode().split('\n')
        return dict(line.split('=', 1) for line in lines)


@contextlib.contextmanager
def manager(name=None):
    with tempfile.TemporaryDirectory() as directory:
        made = Manager(name or os.path.join(directory, 'notify'))
        with made.socket:
            yield made


@test
def a_life():
    """the proxy reports that it is ready, that it reloads and that it stops"""
    with manager() as systemd, Controlled(MOUNTS, env=systemd.environment()) as proxy:
        assert systemd.next() == {'READY': '1'}
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('OPTIONS', proxy.url())[0] == 200
        for text in config({**MOUNTS, '/new': {'upstream': CLIP_URI}}), 'mounts: [':
            before = time.monotonic()
            proxy.hang_up(text)
            reloading = systemd.next()
            assert set(reloading) == {'RELOADING', 'MONOTONIC_USEC'}, reloading
            assert before <= int(reloading['MONOTONIC_USEC']) / 1e6 + 1e-3, (before, reloading)
            assert systemd.next() == {'READY': '1'}
        proxy.signal(signal.SIGTERM)
        assert systemd.next() == {'STOPPING': '1'}
        assert proxy.wait() == 0


@test
def abstract_socket():
    """the socket may be an abstract one"""
    with manager(f'@weir-test-{os.getpid()}') as systemd, \
            Controlled(MOUNTS, env=systemd.environment()):
        assert systemd.next() == {'READY': '1'}


@test
def watchdog():
    """the main loop feeds the watchdog twice in each interval"""
    with manager() as systemd, \
            Controlled(MOUNTS, env=systemd.environment(WATCHDOG_USEC='200000')):
        assert systemd.next() == {'READY': '1'}
        start = time.monotonic()
        for _ in range(5):
            assert systemd.next() == {'WATCHDOG': '1'}
        assert time.monotonic() - start >= 0.4, 'the watchdog messages come too fast'


@test
def watchdog_of_another():
    """the proxy ignores a watchdog for another process"""
    mean = {'WATCHDOG_USEC': '1000', 'WATCHDOG_PID': str(os.getpid())}
    with manager() as systemd, Controlled(MOUNTS, env=systemd.environment(**mean)) as proxy:
        assert systemd.next() == {'READY': '1'}
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
        proxy.signal(signal.SIGTERM)
        assert systemd.next() == {'STOPPING': '1'}


@test
def no_such_socket():
    """a missing socket is logged, and the proxy serves"""
    with Controlled(MOUNTS, env={'NOTIFY_SOCKET': '/nonexistent/notify'}) as proxy:
        proxy.wait_for_line(r" cannot notify the service manager at /nonexistent/notify ")
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('OPTIONS', proxy.url())[0] == 200


if __name__ == '__main__':
    run()
