# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with a rewritable configuration file, and readers that need no other program."""

import http.client
import json
import os
import re
import signal
import tempfile

from proc import Proc, Rtsp
from proxy import CLIP, environment, program, wait_until, with_client

CLIP_URI = f'file://{os.path.realpath(CLIP)}'


def config(mounts, **top):
    """Returns the configuration file for {path: {key: value}}, with other top-level keys. The API may
    name the clips of the tests."""
    top = {'listen': '127.0.0.1:0', 'api': '127.0.0.1:0', **top}
    mounts = {path: with_client(settings) for path, settings in mounts.items()}
    roots = {'file-roots': [os.path.dirname(os.path.realpath(CLIP))], **top}
    return json.dumps({**top, 'mounts': mounts, 'file-roots': roots['file-roots']}, indent=1)


class Controlled(Proc):
    """The proxy with its own configuration file, and the port of its API. It listens at `host`, which
    may be in a network that the words of `inside` enter."""

    host, inside = '127.0.0.1', ()

    def __init__(self, mounts, env=None, **top):
        self._directory = tempfile.TemporaryDirectory()
        self.file = os.path.join(self._directory.name, 'proxy.yaml')
        self.write(config(mounts, **top))
        super().__init__(*self.inside, program(), '--config', self.file, env=environment(env))
        try:
            self.port = int(self.wait_for_line(r' serves rtsp://[\d.]+:(\d+)/')[1])
            self.api_port = None
            if top.get('api') != 'off':
                self.api_port = int(self.wait_for_line(r' api http://\S+:(\d+)/v1')[1])
        except BaseException:
            self.kill()
            self.dump()
            raise

    def write(self, text):
        with open(self.file, 'w', encoding='utf-8') as file:
            file.write(text)

    def url(self, path='/cam'):
        return f'rtsp://{self.host}:{self.port}{path}'

    def hang_up(self, text):
        """Writes this file and sends SIGHUP. Returns the line that reports the result."""
        seen = len(self.lines)
        self.write(text)
        self.signal(signal.SIGHUP)
        return self.wait_for_line(r' (reloaded: .*|not reloaded.*)', start=seen)[1]

    def http(self, method, path, body=None, headers=None, host=None):
        """Sends one request. Returns (status, headers, body); a JSON body is parsed."""
        fields = {'Host': host or f'{self.host}:{self.api_port}', **(headers or {})}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            fields.setdefault('Content-Type', 'application/json')
        connection = http.client.HTTPConnection(self.host, self.api_port, timeout=20)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        got = {name.lower(): value for name, value in answer.getheaders()}
        if data and got.get('content-type', '').startswith('application/json'):
            data = json.loads(data)
        return answer.status, got, data

    def get(self, path, status=200):
        got = self.http('GET', path)
        assert got[0] == status, got
        return got[2]

    def switch(self, path, pipeline):
        """Changes the stages of a mount, and waits until the new ones have taken over."""
        seen = len(self.lines)
        status, _, answer = self.http('PATCH', f'/v1/mounts{path}', {'pipeline': pipeline})
        assert status == 200, answer
        self.wait_for_line(rf' mount {re.escape(path)} switched to its new pipeline', 30, start=seen)

    def metric(self, name):
        """Returns the value of the metric weir_NAME. The name includes the labels, if it has any."""
        value, = re.findall(rf'^weir_{re.escape(name)} (\d+)$', self.get('/metrics').decode(), re.M)
        return int(value)


class Watch(Rtsp):
    """A playing reader over TCP."""

    def __init__(self, proxy, path='/cam'):
        super().__init__(proxy.port)
        url = proxy.url(path)
        status, _, sdp = self.request('DESCRIBE', url)
        assert status == 200, status
        for track in range(sdp.decode().count('\nm=')):
            status = self.request('SETUP', f'{url}/stream={track}', {
                'Transport': f'RTP/AVP/TCP;unicast;interleaved={2 * track}-{2 * track + 1}'})[0]
            assert status == 200, status
        assert self.request('PLAY', url)[0] == 200
        self.frame()

    def receive(self):
        """Receives what has come, for take() to read later."""
        self.socket.setblocking(False)
        try:
            while True:
                self._more()
        except BlockingIOError:
            self.socket.settimeout(30)

    def take(self, number=50):
        """Reads this number of frames, to check that media flows."""
        for _ in range(number):
            self.frame()
        self.frames.clear()


def rss_kib(proxy, field='VmRSS'):
    with open(f'/proc/{proxy.pid}/status', encoding='ascii') as file:
        return int(next(line for line in file if line.startswith(field)).split()[1])


def cpu_seconds(proxy):
    with open(f'/proc/{proxy.pid}/stat', encoding='ascii') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def sent_packets(proxy, path='/cam'):
    found = re.search(rf'^weir_sent_packets_total{{mount="{path}"}} (\d+)$',
                      proxy.get('/metrics').decode(), re.M)
    return int(found[1]) if found else 0


def wait_for_packets(proxy, number, path='/cam'):
    """Waits until the mount's readers have been sent this number of packets more."""
    enough = sent_packets(proxy, path) + number
    wait_until(lambda: sent_packets(proxy, path) >= enough, 20, f'{number} packets more')


def wait_for_readers_of(proxy, number):
    wait_until(lambda: len(proxy.get('/v1/readers')['readers']) == number, 10,
               f'{number} readers are listed')
