# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy, and the origin and the readers of tests/interop around it."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from proc import Proc, Rtsp, interop
from tap import SLOWER, Skip

CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')

# Short times, so that tests of time-outs are short. Readers wait longer: an upstream starts slowly
# where the machine has other work.
QUICK = {
    'start-timeout': '20s', 'connect-timeout': '1s', 'read-timeout': '1s', 'linger': '200ms'
}


def program():
    path = os.environ.get('WEIR_RTSP_PROXY')
    if not path:
        raise Skip('WEIR_RTSP_PROXY is not set')
    return path


# The client that reads RTSP upstreams; None: the default one.
CLIENT = os.environ.get('WEIR_CLIENT')


def with_client(settings):
    """Returns a mount's settings with CLIENT, unless they choose a client."""
    upstreams = settings.get('upstreams', [settings.get('upstream', '')])
    if not CLIENT or not any(str(each).startswith('rtsp') for each in upstreams):
        return settings
    return {'client': CLIENT, **settings}


def yaml(mounts):
    """Returns the configuration for {path: {key: value}} or {path: upstream URL}."""
    isolate = os.environ.get('WEIR_ISOLATE')
    lines = ['listen: 127.0.0.1:0', 'api: off', *([f'isolate: {isolate}'] if isolate else []),
             'mounts:']
    for path, settings in mounts.items():
        lines.append(f'  {path}:')
        if isinstance(settings, str):
            settings = {'upstream': settings}
        lines += [f'    {key}: {json.dumps(value)}'
                  for key, value in with_client(settings).items()]
    return '\n'.join(lines) + '\n'


def said(text, *words):
    """Returns what the program with these words says of a configuration, without the path of the file, and its status."""
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program(), '--config', file.name, *words], capture_output=True, text=True, timeout=30 * SLOWER,
                              check=False)
        return (done.stdout + done.stderr).replace(file.name, 'FILE'), done.returncode


def environment(extra=None):
    return {**os.environ, **(extra or {})}


class Proxy(Proc):
    """A running proxy. The constructor returns when it listens.

    `mounts` is a dictionary for yaml(), or a list of command-line words.
    """

    def __init__(self, mounts, *words, env=None):
        with tempfile.TemporaryDirectory() as directory:
            if isinstance(mounts, dict):
                path = os.path.join(directory, 'proxy.yaml')
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(yaml(mounts))
                words = ('--config', path, *words)
            else:
                words = ('--listen', '127.0.0.1:0', *mounts, *words)
            super().__init__(program(), *words, env=environment(env))
            try:
                self.port = int(self.wait_for_line(r' serves rtsp://127\.0\.0\.1:(\d+)/')[1])
            except BaseException:
                self.kill()
                self.dump()
                raise

    def url(self, path='/cam'):
        return f'rtsp://127.0.0.1:{self.port}{path}'

    def ask(self, method, path='/cam', timeout=30, headers=None):
        """Sends one request on a new connection. Returns the status and the seconds that it
        took."""
        start = time.monotonic()
        with Rtsp(self.port, timeout=timeout) as rtsp:
            status = rtsp.request(method, self.url(path), headers)[0]
        return status, time.monotonic() - start

    def check_alive(self):
        assert self.running(), f'the proxy has ended: {self.command}'

    def check_leaves(self, number, timeout=5):
        """Sends a signal. The proxy must exit with 0 in time."""
        self.signal(number)
        status = self.wait(timeout)
        assert status == 0, f'exit status {status}'


class Origin(Proc):
    """The upstream, of tests/interop. With `after`, it takes over the port and the dump of that
    earlier origin."""

    host = '127.0.0.1'

    def __init__(self, misbehave=None, after=None, user=None, password=None, auth=None, token=None,
                 tls=None, clip=CLIP):
        self._directory = after._directory if after else tempfile.TemporaryDirectory()
        self.expect = os.path.join(self._directory.name, 'dump')
        words = ['--clip', clip, '--dump', self.expect]
        words += ['--listen', f'{self.host}:{after.port if after else 0}']
        if misbehave:
            words += ['--misbehave', misbehave]
        if user:
            words += ['--user', user, '--password', password, '--auth', auth]
        if token:
            words += ['--token', token]
        if tls:
            words += ['--tls', tls]
        super().__init__(interop(), 'origin', *words)
        try:
            ready = self.wait_for_line(r'^READY (rtsps?://[\d.]+:(\d+)/\S+)')
        except BaseException:
            self.kill()
            self.dump()
            raise
        self.url, self.port = ready[1], int(ready[2])

    def count(self, event):
        return len(matches(self, rf'\bevent={event}\b'))

    def wait_for(self, event, timeout=10, start=0):
        return self.wait_for_line(rf'\bevent={event}\b', timeout, start)


class Read(Proc):
    """Readers from tests/interop."""

    def __init__(self, url, *words, transport='tcp', readers=1, duration=4, expect=None):
        words = [*words, '--transport', transport, '--readers', readers, '--duration', duration]
        if expect:
            words += ['--expect', expect]
        self.duration = duration
        super().__init__(interop(), 'read', '--json', *words, url)

    def result(self, status=0):
        """Returns the readers' result. Checks the exit status unless `status` is None."""
        ended = self.wait(self.duration + 20)
        assert status is None or ended == status, f'read ended with {ended}: {self.output()}'
        text = self.output()
        return json.loads(text[text.index('{'):text.rindex('}') + 1])

    def finish(self, status=0):
        """Ends the readers before their duration is over. Returns their result."""
        self.signal(signal.SIGINT)
        return self.result(status)


def ffmpeg_reads(url, transport, *words):
    """Checks that FFmpeg gets both tracks."""
    ffmpeg = shutil.which('ffmpeg')
    if not ffmpeg:
        raise Skip('ffmpeg is not on the PATH')
    done = subprocess.run(
        [ffmpeg, '-nostdin', '-loglevel', 'error', '-rtsp_transport', transport, *words, '-i', url,
         '-copyinkf', '-t', '1', '-map', '0', '-c', 'copy', '-f', 'framehash', '-'],
        capture_output=True, text=True, timeout=20 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    frames = [line for line in done.stdout.splitlines() if not line.startswith('#')]
    assert {line.split(',')[0] for line in frames} == {'0', '1'}, done.stdout


def matches(proc, regex, start=0):
    """Returns the matches in all lines from line number `start` on."""
    pattern = re.compile(regex)
    return [match for line in proc.lines[start:] if (match := pattern.search(line))]


def wait_until(true, timeout, what):
    """Waits for a condition for which the proxy prints no line. The limit is for an idle machine."""
    timeout *= SLOWER
    deadline = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < deadline, f'not within {timeout} s: {what}'
        time.sleep(0.02)


def listens(port):
    """Reports whether a socket of this host has this UDP port."""
    found = False
    for table in '/proc/net/udp', '/proc/net/udp6':
        if os.path.exists(table):
            with open(table, encoding='ascii') as file:
                found |= any(f':{port:04X} ' in line[:40] for line in file)
    return found


def listens_tcp(port):
    out = subprocess.run(['ss', '-Hltn', f'sport = :{port}'], capture_output=True, text=True,
                         check=False)
    return bool(out.stdout.strip())


def wait_for_readers(proxy, number, timeout=10, start=0):
    """Waits until `number` readers have begun to play."""
    wait_until(lambda: len(matches(proxy, r' reader \S+ in: ', start)) >= number, timeout,
               f'{number} readers play')


def tracks(result):
    """Returns (reader, name, track) for all tracks."""
    return [
        (reader['reader'], name, track)
        for reader in result['readers'] for name, track in reader['tracks'].items()
    ]


def check_whole(result, readers):
    """Checks that every reader has every packet of both tracks, unchanged and at its time."""
    total = result['totals']
    assert total['readers'] == readers and total['ok'] == readers, total
    for key in ('lost', 'mismatched', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward',
                'decode_errors', 'jumps'):
        assert total[key] == 0, (key, total)
    assert 0 <= total['av_offset_error_max_us'] < 1000, total
    for reader in result['readers']:
        assert set(reader['tracks']) == {'video', 'audio'}, reader
    for number, name, track in tracks(result):
        where = (number, name, track)
        assert track['matched'] > 0, where
        assert track['ntp_compared'] > 0, where
        assert track['ts_delta_constant'], where
