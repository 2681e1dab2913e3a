# SPDX-License-Identifier: LGPL-2.1-or-later
"""GET /v1/events: what happens to streams, as server-sent events."""

import contextlib
import json
import shutil
import socket
import tempfile
import time

from control import Controlled
from proc import Proc
from proxy import CLIP, QUICK, Origin, Read, environment, wait_until
from tap import SLOWER, Skip, run, test

NAMES = ['up', 'down', 'reader', 'reader-left', 'publish', 'publish-end', 'record', 'record-done']


class Events:
    """A client of the stream of events."""

    def __init__(self, proxy, last=None, size=None):
        self.socket = socket.socket()
        if size:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        self.socket.settimeout(30 * SLOWER)
        self.socket.connect(('127.0.0.1', proxy.api_port))
        head = f'Last-Event-ID: {last}\r\n' if last is not None else ''
        self.socket.sendall(f'GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{proxy.api_port}\r\n{head}\r\n'.encode())
        self.file = self.socket.makefile('rb')
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()):
            name, value = line.decode().split(': ', 1)
            self.headers[name.lower()] = value
        self.text = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def next(self):
        """Returns the next event as (id, name, data)."""
        while True:
            while b'\n\n' not in self.text:
                size = int(self.file.readline(), 16)
                assert size, 'the stream has ended'
                self.text += self.file.read(size)
                self.file.readline()
            block, self.text = self.text.split(b'\n\n', 1)
            fields = dict(line.split(': ', 1) for line in block.decode().split('\n') if not line.startswith(':'))
            if fields:
                return int(fields['id']) if 'id' in fields else None, fields['event'], json.loads(fields['data'])

    def until(self, name):
        """Returns the data of the next event of this name, and the names before it."""
        before = []
        while True:
            number, event, data = self.next()
            assert number is None or number == data['number'] and event == data['event'], (number, event, data)
            if event == name:
                return data, before
            before.append(event)


@test
def what_happens_to_a_mount_is_told():
    with tempfile.TemporaryDirectory() as folder, Origin() as origin, Controlled({'/cam': {
            'upstream': origin.url, 'record': {'folder': folder, 'segment': '1s'}, **QUICK}}) as proxy, Events(proxy) as events:
        assert events.status == 200 and events.headers['content-type'] == 'text/event-stream', events.headers
        seen = {}
        with Read(proxy.url(), duration=3) as read:
            for name in 'up', 'record', 'record-done', 'reader':
                if name not in seen:
                    while name not in seen:
                        number, event, data = events.next()
                        seen[event] = data
            read.result()
        origin.kill()
        while not {'reader-left', 'down'} <= set(seen):
            number, event, data = events.next()
            seen[event] = data
        assert all(data['mount'] == '/cam' and data['time'].endswith('Z') for data in seen.values()), seen
        assert seen['reader']['transport'] == 'TCP' and seen['reader']['peer'].startswith('127.0.0.1:'), seen
        assert seen['record']['file'].startswith(folder + '/cam/') and float(seen['record-done']['duration']) >= 1, seen
        assert int(seen['record-done']['bytes']) > 0 and seen['down']['reason'], seen


@test
def publishers_are_told_of_once():
    if not shutil.which('ffmpeg'):
        raise Skip('ffmpeg is not on the PATH')
    with Controlled({'/live': {'upstream': 'publish'}}) as proxy, Events(proxy) as events:
        with Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', CLIP, '-c', 'copy', '-f', 'rtsp', proxy.url('/live'),
                  env=environment()) as publisher:
            data, before = events.until('publish')
            assert data['mount'] == '/live' and data['peer'] and 'up' not in before, data
            events.until('up')
            publisher.kill()
        data, before = events.until('publish-end')
        assert 'publisher' in data['reason'] and 'publish' not in before, (data, before)


def make_readers(proxy, number):
    with Read(proxy.url(), duration=1, readers=number) as read:
        read.result(None)


@test
def a_client_goes_on_where_it_was():
    with Origin() as origin, Controlled({'/cam': {'upstream': origin.url, **QUICK}}) as proxy:
        with Events(proxy) as events:
            make_readers(proxy, 20)
            first, _ = events.until('reader')
            numbers = [events.next()[0] for _ in range(10)]
            assert numbers == list(range(first['number'] + 1, first['number'] + 11)), numbers
        with Events(proxy, last=first['number']) as events:
            assert [events.next()[0] for _ in range(10)] == numbers
        for last in 0, 1 << 62:  # of a run before, and of none
            with Events(proxy, last=last) as events:
                assert events.next()[1] == 'lost' and events.next()[1] in NAMES
        for last in 'x', '-1', '1 2', '9' * 30:
            with Events(proxy, last=last) as events:
                assert events.status == 400, last
        assert proxy.http('GET', '/v1/events?x=1')[0] == 400
        assert proxy.http('POST', '/v1/events')[0] == 405


@test(timeout=120)
def a_client_that_does_not_read_costs_nothing():
    with Origin() as origin, Controlled({'/cam': {'upstream': origin.url, **QUICK}}, limits={'write-timeout': '1s'}) as proxy:
        with Events(proxy) as quick, Events(proxy, size=4096) as slow:
            time.sleep(2)  # the time for reading a response does not count while there is nothing to read
            make_readers(proxy, 600)
            names = [quick.next()[1] for _ in range(1200)]
            assert names.count('reader') >= 500 and not slow.text, set(names)
        wait_until(lambda: proxy.http('GET', '/v1/health')[0] == 200, 10, 'the API answers')


@test
def clients_are_bounded():
    with Controlled({'/cam': {'upstream': f'file://{CLIP}'}}) as proxy, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Events(proxy)) for _ in range(16)]
        assert all(client.status == 200 for client in clients)
        with Events(proxy) as one_more:
            assert one_more.status == 503
        clients[0].__exit__()

        def again():
            with Events(proxy) as events:
                return events.status == 200
        wait_until(again, 40, 'another client gets the place')
        proxy.signal(15)
        assert proxy.wait(10 * SLOWER) == 0


if __name__ == '__main__':
    run()
