# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that may open few more files refuses new work, and goes on with the old."""

import os
import resource
import socket
from contextlib import ExitStack

from control import Watch
from proc import Rtsp
from proxy import Origin, Proxy, wait_until
from tap import run, test

CONNECTIONS = 80


def allow(proxy, more):
    """Limits the proxy to this number of files beyond those that are open."""
    n = len(os.listdir(f'/proc/{proxy.pid}/fd')) + more
    resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE,
                     (n, resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)[1]))


def is_refused(connection):
    connection.settimeout(10)
    try:
        return connection.recv(1) == b''
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@test
def connections_beyond_the_reserve_are_refused_and_readers_go_on():
    with Origin() as origin, Proxy({'/cam': origin.url, '/other': f'{origin.url}?2'}) as proxy, \
            ExitStack() as stack:
        reader = stack.enter_context(Watch(proxy))
        allow(proxy, 40)
        crowd = [stack.enter_context(socket.create_connection(('127.0.0.1', proxy.port)))
                 for _ in range(CONNECTIONS)]
        # The last of them comes when nothing is left.
        assert is_refused(crowd[-1])
        proxy.wait_for_line('a connection was refused: too few open files are left', 5)
        reader.take(100)
        for connection in crowd:
            connection.close()

        def admits():
            with socket.create_connection(('127.0.0.1', proxy.port)) as one:
                one.sendall(b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n')
                one.settimeout(10)
                try:
                    return one.recv(12) == b'RTSP/1.0 200'
                except ConnectionResetError:
                    return False

        wait_until(admits, 10, 'connections are accepted again')
        stack.enter_context(Watch(proxy)).take()
        reader.take(100)


@test
def a_mount_waits_for_files_and_says_so():
    with Origin() as origin, Proxy({'/cam': origin.url, '/other': f'{origin.url}?2'}) as proxy, \
            Watch(proxy) as reader:
        with Rtsp(proxy.port) as early:
            assert early.request('OPTIONS', '*')[0] == 200
            allow(proxy, 2)
            early.send(f'DESCRIBE {proxy.url("/other")} RTSP/1.0\r\nCSeq: 2\r\n\r\n'.encode())
            proxy.wait_for_line('mount /other down: .*: too few open files are left', 10)
            reader.take(100)
        allow(proxy, 200)

        def has_media():
            with Rtsp(proxy.port) as rtsp:
                return rtsp.request('DESCRIBE', proxy.url('/other'))[0] == 200

        wait_until(has_media, 20, 'the mount has media')
        with Watch(proxy, '/other') as other:
            other.take()


if __name__ == '__main__':
    run()
