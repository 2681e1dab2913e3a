# SPDX-License-Identifier: LGPL-2.1-or-later
"""The compared servers, their upstream, and their use of CPU, memory and threads."""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time
from typing import NamedTuple

from proc import Proc
from rig import EVERYBODY
from tap import Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('WEIR_BUILD', ROOT / 'build-bench')).resolve()
# What a program needs in its environment to find the plugins.
PLUGINS = {'GST_PLUGIN_PATH': str(BUILD / 'plugins'), 'GST_REGISTRY': str(BUILD / 'registry.bin')}
CACHE = ROOT / 'build' / 'bench'
CLIP = ROOT / 'tests' / 'data' / 'bigbuckbunny.mp4'

ORIGIN_PORT, ORIGIN_RTP = 8000, 8002
SECOND_PORT, SECOND_RTP = 8010, 8012
PORT = 8554
FILES = 65536
GOP_SECONDS = 2


def raise_file_limit():
    """Raises the limit of open files: a server of thousands of readers needs thousands. Children
    inherit the limit. Returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (FILES, FILES), (min(hard, FILES), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
            return limit[0]
        except (ValueError, PermissionError):
            continue
    return soft


def clip_of(megabits, gop=GOP_SECONDS, live=False):
    """Returns a clip encoded at this rate, with a keyframe every `gop` seconds.

    With `live`, the clip looks like a zero-latency encoder's: a frame is an access unit delimiter
    and two slices.
    """
    path = CACHE / (f'clip-{megabits}M' + ('' if gop == GOP_SECONDS else f'-{gop:g}s')
                    + ('-live' if live else '') + '.mp4')
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix('.part.mp4')
        rate = f'{megabits}M'
        # Without added noise the picture would not need so many bits.
        subprocess.run(
            ['ffmpeg', '-nostdin', '-loglevel', 'error', '-y', '-stream_loop', '-1', '-i', CLIP,
             '-t', '20', '-vf', 'noise=alls=8:allf=t', '-r', '25', '-c:v', 'libx264',
             '-preset', 'veryfast', '-profile:v', 'main', '-bf', '0', '-sc_threshold', '0',
             '-g', str(round(25 * gop)), '-keyint_min', str(round(25 * gop)),
             '-b:v', rate, '-maxrate', rate, '-bufsize', rate,
             *(('-tune', 'zerolatency', '-x264-params', 'slices=2:sliced-threads=0:aud=1')
               if live else ()),
             '-c:a', 'aac', '-b:a', '64k', part], check=True)
        part.rename(path)
    return path


class Origin(Proc):
    """The upstream of all servers, on their side of the rig: it costs each server the same.

    It sends only video, the measured stream. A second origin can run beside it.
    """

    def __init__(self, rig, megabits, gop=GOP_SECONDS, second=False, live=False):
        self.address = rig.server_address
        port, rtp = (SECOND_PORT, SECOND_RTP) if second else (ORIGIN_PORT, ORIGIN_RTP)
        super().__init__(
            *rig.server, self.program(), 'origin', '--listen', f'{self.address}:{port}',
            '--udp-ports', f'{rtp},{rtp + 1}', '--clip', clip_of(megabits, gop, live),
            '--misbehave', 'other-tracks')
        self.url = self.wait_for_line(r'^READY (rtsp://\S+)')[1]

    @staticmethod
    def program():
        path = BUILD / 'tests/interop/interop'
        if not os.access(path, os.X_OK):
            raise Skip('needs the Go test origin, which could not be built (tests/interop/README.md)')
        return path


class Usage(NamedTuple):
    """The CPU time that a process has used so far, and the memory and threads that it holds."""

    at: float
    cpu: float  # seconds, user and system
    rss: int
    threads: int

    @classmethod
    def of(cls, pid):
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='utf-8')
        fields = stat.rpartition(')')[2].split()
        status = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8')
        values = dict(line.split(':', 1) for line in status.splitlines())
        assert 'VmRSS' in values, f'{values["Name"].strip()} has ended'
        ticks = int(fields[11]) + int(fields[12])
        return cls(time.monotonic(), ticks / os.sysconf('SC_CLK_TCK'),
                   int(values['VmRSS'].split()[0]) * 1024, int(values['Threads']))


def children_of(pid):
    return [int(word) for path in pathlib.Path(f'/proc/{pid}/task').glob('*/children')
            for word in path.read_text(encoding='ascii').split()]


class Upstream(NamedTuple):
    """How a server reads its upstreams."""

    tcp: bool = False
    always: bool = False  # without readers, too
    sound: bool = False   # a second track


class Server(Proc):
    """A server to compare. `mounts` is {path without slash: upstream URL}."""

    name = None
    ready = None  # a pattern of the line that says that it listens
    environment = {}

    def __init__(self, rig, mounts, upstream=Upstream()):
        self.address = rig.server_address
        self.upstream = upstream
        self._folder = tempfile.TemporaryDirectory()  # mediamtx writes keys where it runs
        super().__init__(*rig.server, *self.words(mounts), cwd=self._folder.name,
                         env={**os.environ, **self.environment})
        try:
            self.wait_for_line(self.ready, timeout=30)
        except AssertionError:
            self.kill()
            last = self.lines[-1] if self.lines else 'it printed nothing'
            raise AssertionError(f'{self.name} does not start: {last}') from None
        except BaseException:
            self.kill()
            raise

    @classmethod
    def there(cls):
        return True

    @classmethod
    def can(cls, upstream):
        return not upstream.always

    def dump(self):
        """Prints the last lines of the output, which may have thousands."""
        for line in self.lines[-20:]:
            print(f'# {self.name}: {line}')

    def words(self, mounts):
        raise NotImplementedError

    def url(self, path):
        return f'rtsp://{self.address}:{PORT}/{path}'

    def usage(self):
        return Usage.of(self.pid)


class Weir(Server):
    name = 'rtsp-proxy'
    ready = r' serves rtsp://'
    environment = PLUGINS

    keys = {}  # of each mount
    whole = {}  # keys of the whole file

    @classmethod
    def can(cls, upstream):
        return True

    def words(self, mounts):
        keys = dict(self.keys)
        if self.upstream.tcp:
            keys['transport'] = 'tcp'
        if self.upstream.always:
            keys['on-demand'] = False
        path = os.path.join(self._folder.name, 'proxy.json')
        with open(path, 'w', encoding='utf-8') as file:
            # JSON is YAML too.
            json.dump({'listen': f'{self.address}:{PORT}', 'api': 'off', **EVERYBODY,
                       **self.whole, 'mounts': {
                f'/{path}': {'upstream': url, **keys} for path, url in mounts.items()}}, file)
        return [BUILD / 'apps/rtsp-proxy/rtsp-proxy', '--config', path]


def start_proxy(folder, keys, where=()):
    """Starts rtsp-proxy, of which everybody may read, with a file of these keys in `folder`; on the
    rig's side that the words `where` enter."""
    path = os.path.join(folder, 'proxy.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'api': 'off', **EVERYBODY, **keys}, file)
    return Proc(*where, BUILD / 'apps/rtsp-proxy/rtsp-proxy', '--config', path,
                env={**os.environ, **Weir.environment})


class WeirKernel(Weir):
    """Serves readers over UDP by clones; needs the kernel path, and root."""

    name = 'rtsp-proxy, kernel path'
    whole = {'kernel': 'on'}


class WeirRtspsrc(Weir):
    name = 'rtsp-proxy with rtspsrc'
    keys = {'client': 'rtspsrc'}


class WeirElements(Weir):
    name = 'rtsp-proxy as elements'
    keys = {'client': 'rtspsrc', 'fan-out': 'elements'}


class Stock(Server):
    name = 'stock gst-rtsp-server'
    ready = r'^READY'

    def words(self, mounts):
        return [BUILD / 'tests/bench/stock-proxy', self.address, PORT,
                *(['tcp'] if self.upstream.tcp else ()),
                *(['sound'] if self.upstream.sound else ()),
                *(f'/{path}={url}' for path, url in mounts.items())]


class MediaMtx(Server):
    name = 'mediamtx'
    ready = r'\[RTSP\] (listener opened|started with listeners)'
    # Set in the environment: a version without this option rejects it only in the settings file.
    environment = {'MTX_MOQ': 'no'}

    @classmethod
    def there(cls):
        return shutil.which('mediamtx')

    @classmethod
    def can(cls, upstream):
        return True

    whole = {}  # settings besides

    def words(self, mounts):
        # JSON is YAML too.
        settings = {
            'rtspAddress': f'{self.address}:{PORT}',
            'rtpAddress': f'{self.address}:18000', 'rtcpAddress': f'{self.address}:18001',
            'rtmp': False, 'hls': False, 'webrtc': False, 'srt': False, **self.whole,
            'paths': {path: {'source': url, 'sourceOnDemand': not self.upstream.always,
                             'rtspTransport': 'tcp' if self.upstream.tcp else 'udp'}
                      for path, url in mounts.items()},
        }
        self._settings = tempfile.NamedTemporaryFile('w', suffix='.yml', encoding='utf-8')
        json.dump(settings, self._settings)
        self._settings.flush()
        return ['mediamtx', self._settings.name]


class Live555(Server):
    name = 'live555ProxyServer'
    ready = r'(?i)play this stream using the URL'

    @classmethod
    def there(cls):
        return shutil.which('live555ProxyServer')

    def words(self, mounts):
        self._names = ({path: f'proxyStream-{n}' for n, path in enumerate(mounts, 1)}
                       if len(mounts) > 1 else dict.fromkeys(mounts, 'proxyStream'))
        return ['live555ProxyServer', '-p', PORT, *(['-t'] if self.upstream.tcp else ()),
                *mounts.values()]

    def url(self, path):
        return super().url(self._names[path])


_left_out = set()


def leave_out_those_that_fail(rig):
    """Starts each peer once. Leaves out a peer that does not start, and prints its last line."""
    for server in MediaMtx, Live555:
        try:
            if server.there():
                with server(rig, {'s': f'rtsp://{rig.server_address}:{ORIGIN_PORT}/s'}):
                    pass
        except AssertionError as error:
            print(f'skipped: {error}')
            _left_out.add(server)


def servers():
    return [server for server in (Weir, Stock, MediaMtx, Live555)
            if server.there() and server not in _left_out]
