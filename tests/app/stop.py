# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy and its readers end properly."""

import contextlib
import re
import signal
import socket
import sys

from proc import Proc, Rtsp
from proxy import Origin, Proxy, Read, environment, program, wait_for_readers
from tap import run, test


def stopped_by(number):
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy, contextlib.ExitStack() as open_:
        udp = open_.enter_context(Read(proxy.url(), transport='udp', readers=3, duration=30))
        tcp = open_.enter_context(Read(proxy.url(), transport='tcp', readers=2, duration=30))
        idle = open_.enter_context(Rtsp(proxy.port))
        half = open_.enter_context(Rtsp(proxy.port))
        half.send(f'DESCRIBE {proxy.url()} RTSP/1.0\r\nCSe'.encode())
        asked = open_.enter_context(Rtsp(proxy.port))
        assert asked.request('OPTIONS', proxy.url())[0] == 200
        wait_for_readers(proxy, 5)

        proxy.check_leaves(number)
        assert udp.result(None)['totals']['statuses'] == {'disconnected': 3}
        assert tcp.result(None)['totals']['statuses'] == {'disconnected': 2}
        for connection in idle, half, asked:
            assert connection.closed()
        origin.wait_for('teardown', 2)
        assert len([line for line in proxy.lines if 'the proxy is stopping' in line]) == 5
        assert proxy.lines[-1].endswith(' stopped'), proxy.lines[-1]


@test
def sigterm_ends_the_proxy_and_its_readers():
    stopped_by(signal.SIGTERM)


@test
def sigint_ends_the_proxy_and_its_readers():
    stopped_by(signal.SIGINT)


@test
def the_proxy_stops_without_readers():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        proxy.check_leaves(signal.SIGTERM, 2)


# Connects and closes at once, without end.
FLOOD = """
import itertools, socket, sys
for n in itertools.count():
    if n == 5000:
        print('many', flush=True)
    with socket.socket() as one:
        one.setblocking(False)
        one.connect_ex(('127.0.0.1', int(sys.argv[1])))
"""


@test
def the_proxy_stops_while_clients_connect_without_pause():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy, contextlib.ExitStack() as floods:
        for each in [floods.enter_context(Proc(sys.executable, '-c', FLOOD, str(proxy.port))) for _ in range(2)]:
            each.wait_for_line('many')
        proxy.check_leaves(signal.SIGTERM, 9)


@test
def the_proxy_stops_while_the_upstream_hangs():
    with Origin('hang') as origin, Proxy({'/cam': origin.url}) as proxy, Rtsp(proxy.port) as rtsp:
        rtsp.send(f'DESCRIBE {proxy.url()} RTSP/1.0\r\nCSeq: 1\r\n\r\n'.encode())
        origin.wait_for('connect', 5)
        proxy.check_leaves(signal.SIGTERM)
        assert rtsp.closed()


@test
def a_port_in_use_is_reported():
    with socket.create_server(('127.0.0.1', 0)) as other:
        port = other.getsockname()[1]
        with Proc(program(), '--mount', '/cam=rtsp://127.0.0.1:1/x', '--listen',
                  f'127.0.0.1:{port}', env=environment()) as proxy:
            assert proxy.wait(5) == 1, proxy.output()
            proxy_says = rf"^rtsp-proxy: cannot listen on 127\.0\.0\.1 port {port}: .*in use"
            assert len(proxy.lines) == 1, proxy.output()
            assert re.search(proxy_says, proxy.lines[0]), proxy.output()


@test
def a_killed_reader_is_removed_at_once():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        for n, transport in enumerate(('tcp', 'udp'), 1):
            with Read(proxy.url(), transport=transport, duration=30) as read:
                wait_for_readers(proxy, n)
                start = len(proxy.lines)
                read.kill()
                proxy.wait_for_line(r' reader \S+ out: /cam: connection closed$', 1, start)
        assert Read(proxy.url(), duration=1).result()['totals']['ok'] == 1


if __name__ == '__main__':
    run()
