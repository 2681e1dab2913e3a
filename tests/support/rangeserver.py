# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP origin with ranges that can be wrong in each way, and torrents of its titles."""

import contextlib
import hashlib
import pathlib
import subprocess
import tempfile
import threading
import time

from sanitized import environment
from webserver import WebServer

SWARM_TORRENT = '/srv/films/bars.torrent'
SWARM_ORIGIN = 'localhost:8080'


def bencode(value):
    if isinstance(value, int):
        return b'i%de' % value
    if isinstance(value, bytes):
        return b'%d:%s' % (len(value), value)
    if isinstance(value, str):
        return bencode(value.encode())
    if isinstance(value, list):
        return b'l%se' % b''.join(map(bencode, value))
    return b'd%se' % b''.join(bencode(key) + bencode(value[key]) for key in sorted(value))


def make_torrent(folder, names, piece, private=True):
    """Writes a torrent of the files `names` in `folder`, or of one file `folder`/`names`. Returns
    the path of the torrent."""
    several = isinstance(names, list)
    files = {name: (folder / name).read_bytes() for name in (names if several else [names])}
    data = b''.join(files.values())
    info = {'name': 'set' if several else names, 'piece length': piece, 'private': int(private),
            'pieces': b''.join(hashlib.sha1(data[i:i + piece]).digest()
                               for i in range(0, len(data), piece))}
    if several:
        info['files'] = [{'length': len(body), 'path': [name]} for name, body in files.items()]
    else:
        info['length'] = len(data)
    path = folder / f'{info["name"]}.torrent'
    path.write_bytes(bencode({'info': info}))
    return path


class Origin(WebServer):
    """An origin of `data`, at the path /`name`, and of what is added to `files`. `manner` is a fault: '404', 'slow' (no answer),
    'whole' (no ranges), 'long' (another length), 'wrong' (other bytes), 'short' (it ends early),
    'down' (it closes the connection). `sent` counts the bytes that it sends, `missed` has the times
    of requests while it was down."""

    def __init__(self, data, name='title'):
        super().__init__(None)
        self.files = {f'/{name}': data}
        self.url = f'{self.base}/{name}'
        self.manner = 'good'
        self.sent = 0
        self._counting = threading.Lock()
        self.missed = []
        self._server.RequestHandlerClass.do_GET = lambda request: self._give(request)

    def _give(self, request):
        manner, data = self.manner, self.files.get(request.path)
        if manner == '404' or data is None:
            request.send_error(404)
            return
        if manner == 'down':
            self.missed.append(time.monotonic())
            request.close_connection = True
            return
        if manner == 'slow':
            self.ends.wait(60)
            return
        first, last = map(int, request.headers['Range'].removeprefix('bytes=').split('-'))
        if manner == 'long':
            data = data + b'x'
        body = data[first:last + 1]
        if manner == 'wrong':
            body = bytes(len(body))
        if manner == 'whole':
            body = data
        request.send_response(200 if manner == 'whole' else 206)
        if manner != 'whole':
            request.send_header('Content-Range', f'bytes {first}-{last}/{len(data)}')
        request.send_header('Content-Length', str(len(body)))
        request.end_headers()
        with self._counting:
            self.sent += len(body)
        request.wfile.write(body[:len(body) // 2] if manner == 'short' else body)
        if manner == 'short':
            request.close_connection = True


@contextlib.contextmanager
def swarm_title():
    """Serves a title. Returns what SWARM_TORRENT and SWARM_ORIGIN are to be replaced with."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(
            ['sh', '-c', 'exec gst-launch-1.0 videotestsrc num-buffers=50 ! vp8enc deadline=1 ! '
             f'webmmux ! filesink location={folder}/bars.webm'],
            check=True, env=environment(), capture_output=True)
        torrent = make_torrent(folder, 'bars.webm', 1 << 14)
        with Origin((folder / 'bars.webm').read_bytes(), 'bars.webm') as origin:
            yield str(torrent), f'localhost:{origin.port}'
