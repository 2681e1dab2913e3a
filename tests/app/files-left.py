# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that may open few more files refuses new work, and goes on with the old."""

import itertools
import os
import resource
import socket
import time
from contextlib import ExitStack
from http.client import HTTPException

from control import Controlled, Watch, cpu_seconds
from proc import Rtsp
from proxy import Origin, Proxy, wait_until
from tap import run, test
from watchers import Watchers

CONNECTIONS = 80


def allow(proxy, more):
    """Limits the proxy to this number of files beyond those that are open."""
    used = {int(number) for number in os.listdir(f'/proc/{proxy.pid}/fd')}
    free = (number for number in itertools.count() if number not in used)
    limit = next(itertools.islice(free, more, None))
    resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE,
                     (limit, resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)[1]))


def is_refused(connection):
    connection.settimeout(10)
    try:
        return connection.recv(1) == b''
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def crowd(port, stack):
    return [stack.enter_context(socket.create_connection(('127.0.0.1', port)))
            for _ in range(CONNECTIONS)]


def starve(proxy, port, stack):
    """Leaves the proxy no file. Returns clients whose connections wait."""
    for _ in range(10):
        start = len(proxy.lines)
        allow(proxy, 0)
        clients = crowd(port, stack)
        try:
            proxy.wait_for_line('connections wait: too few open files are left', 2, start)
            return clients
        except AssertionError:  # the proxy has closed a file meanwhile, and so refused the clients
            for client in clients:
                client.close()
    raise AssertionError('no connection waits')


def admits(proxy):
    with socket.create_connection(('127.0.0.1', proxy.port)) as one:
        one.sendall(b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n')
        one.settimeout(10)
        try:
            return one.recv(12) == b'RTSP/1.0 200'
        except ConnectionResetError:
            return False


def api_answers(proxy):
    try:
        return proxy.get('/v1/health')['status'] == 'live'
    except (OSError, HTTPException):
        return False


def serving(origin):
    return Controlled({'/cam': {'upstream': origin.url, 'transport': 'tcp'},
                       '/other': {'upstream': f'{origin.url}?2', 'transport': 'tcp'}})


@test
def connections_beyond_the_reserve_are_refused_and_readers_go_on():
    with Origin() as origin, serving(origin) as proxy:
        good = Watchers(proxy, 3)
        for port in proxy.port, proxy.api_port:
            with ExitStack() as stack:
                allow(proxy, 40)
                clients = crowd(port, stack)
                # The last of them comes when few are left.
                assert is_refused(clients[-1])
                proxy.wait_for_line('a connection was refused: too few open files are left', 5)
                before = cpu_seconds(proxy)
                time.sleep(1)
                print(f'# {100 * (cpu_seconds(proxy) - before):.0f} % of a processor is used')
            since = time.monotonic()
            wait_until(lambda: admits(proxy) and api_answers(proxy), 10, 'clients are accepted again')
            print(f'# clients are accepted again {time.monotonic() - since:.2f} s after the crowd left')
        with Watch(proxy) as late:
            late.take()
        good.check()


@test
def connections_wait_while_no_file_is_left_and_take_no_time():
    with Origin() as origin, serving(origin) as proxy, Watch(proxy), ExitStack() as stack:
        for port in proxy.port, proxy.api_port:
            clients = starve(proxy, port, stack)
            before = cpu_seconds(proxy)
            time.sleep(1)
            used = cpu_seconds(proxy) - before
            allow(proxy, 300)
            assert used < 0.25, f'{used} s of processor time in 1 s'
            for client in clients:
                client.close()
            wait_until(lambda: admits(proxy) and api_answers(proxy), 10, 'clients are accepted again')


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
