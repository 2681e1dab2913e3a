# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weir's elements in media factories, with and without weir_serve(), judged by other people's players.

Each of intervalcache, intervalcachesrc, svclayerfilter and ratepacer stands in a line of its own, and
all in one; fanoutsink serves where weir_serve() was called."""

import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from arrivals import Player
from proc import Proc
from tap import SLOWER, Skip, run, test

# Two temporal layers: the upper one has every second picture.
ENCODED = ('video/x-raw,width=320,height=240,framerate=25/1 '
           '! svcenc spatial-layers=1 temporal-layers=2 gop-size=8')
CAMERA = f'videotestsrc is-live=true pattern=ball ! {ENCODED}'
READ = 'intervalcachesrc channel=camera'
LINES = {
    '/read': f'{READ} start=join-point ! rtph264pay',
    '/late': f'{READ} delay=1500000000 ! rtph264pay ! ratepacer',
    '/small': f'{READ} start=join-point ! svclayerfilter max-temporal=0 ! rtph264pay',
    '/small-rtp': f'{READ} start=join-point ! rtph264pay ! svclayerfilter max-temporal=0',
    '/paced': f'{READ} start=join-point ! rtph264pay ! ratepacer',
    '/own': f'{CAMERA} ! intervalcache name=c c.src_0 ! rtph264pay',
    '/own-late': f'{CAMERA} ! intervalcache name=c src_0::delay=1000000000 c.src_0 ! rtph264pay',
    '/all': f'{CAMERA} ! intervalcache name=c c.src_0 ! svclayerfilter max-temporal=0 ! rtph264pay '
            '! ratepacer',
}
# The times of the window begin an hour after 0, so that a PLAY from 0 asks for what is long gone.
PUBLISH = (f'videotestsrc timestamp-offset=3600000000000 is-live=true pattern=ball ! {ENCODED} '
           '! intervalcache channel=camera max-time=30000000000')


class Server(Proc):
    """A running tests/embed/lines.c."""

    def __init__(self, how):
        words = []
        for path, line in LINES.items():
            words += [path, f'( {line} ! rtprelaypay name=pay0 )']
        super().__init__(os.environ['WEIR_LINES'], how, PUBLISH, *words)
        self.port = int(self.wait_for_line(r'^READY (\d+)')[1])

    def url(self, path):
        return f'rtsp://127.0.0.1:{self.port}{path}'


def require_encoder():
    if subprocess.run(['gst-inspect-1.0', 'svcenc'], capture_output=True, check=False).returncode != 0:
        raise Skip('svcenc was not built')


def run_player(*command, timeout=30):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=timeout, check=False)


def load(server, path):
    """rtsp-load plays each line over UDP and TCP, and loses nothing"""
    done = run_player(os.environ['WEIR_RTSP_LOAD'], '--readers', 2, '--transport', 'mixed', '--duration', 5,
                      '--json', server.url(path))
    assert done.returncode == 0, (path, done.stdout, done.stderr)
    result = json.loads(done.stdout)
    assert (result['connected'], result['lost'], result['errors']) == (2, 0, {}), (path, result)


def decode(url, transport, number):
    """Has FFmpeg decode this number of pictures. Returns a line for each, and its warnings."""
    done = run_player('ffmpeg', '-v', 'warning', '-rtsp_transport', transport, '-i', url, '-frames:v', number,
                      '-f', 'framemd5', '-')
    assert done.returncode == 0, (url, transport, done.stderr)
    return [line for line in done.stdout.splitlines() if not line.startswith('#')], done.stderr


def ffmpeg(server, path):
    """FFmpeg decodes each line over UDP and TCP without an error"""
    for transport in 'udp', 'tcp':
        pictures, wrong = decode(server.url(path), transport, 10)
        assert len(pictures) == 10, (path, transport, pictures, wrong)


def rtspsrc(server, path):
    """GStreamer's rtspsrc decodes each line"""
    done = run_player('gst-launch-1.0', '-v', 'rtspsrc', f'location={server.url(path)}', 'latency=50', '!',
                      'decodebin', '!', 'identity', 'eos-after=15', '!', 'fakesink', 'silent=false', 'sync=false')
    words = [line for line in done.stdout.splitlines() if ' = ' not in line] # -v prints every property
    # Its exit status does not count: after the last picture it sends PAUSE, on a connection that may be closed.
    assert done.stdout.count('last-message = chain') >= 14, (path, words, done.stderr)


def open_rtsp(server, path):
    """live555's openRTSP writes pictures of each line"""
    if not shutil.which('openRTSP'):
        return
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(['openRTSP', '-d', '2', server.url(path)], cwd=directory, capture_output=True,
                       timeout=30 * SLOWER, check=True)
        name, = os.listdir(directory)
        assert os.path.getsize(os.path.join(directory, name)) > 1000, path


def pause_and_seek(server, path):
    """a reader pauses, plays on, and asks for times in, before and behind the window, over UDP and TCP"""
    for transport in 'udp', 'tcp':
        with Player(server.port, server.url(path), transport) as player:
            for position in None, 'npt=0-', 'npt=3-', 'npt=100-', None:
                headers = {'Range': position} if position else {}
                status = player.request('PLAY', player.url, headers)[0]
                assert status == 200, (path, transport, position, status)
                player.packets(6)
                assert player.request('PAUSE', player.url)[0] == 200, (path, transport, position)


CHECKS = load, ffmpeg, rtspsrc, open_rtsp, pause_and_seek


def check_all(how):
    """Lets each kind of player play all lines at once."""
    require_encoder()
    with Server(how) as server, ThreadPoolExecutor(len(LINES)) as pool:
        for check in CHECKS:
            for done in [pool.submit(check, server, path) for path in LINES]:
                done.result()
        assert server.running(), 'the server is gone'


@test(timeout=120)
def stock_medias():
    """without weir_serve(): rtsp-load, FFmpeg, rtspsrc and openRTSP play each line, and a client pauses and seeks"""
    check_all('stock')


@test(timeout=120)
def served_medias():
    """with weir_serve(): the same"""
    check_all('weir')


@test(timeout=120)
def relay_medias():
    """with relay medias: the same"""
    check_all('relay')


@test
def the_example():
    """docs/examples/factories.c serves all its mounts"""
    require_encoder()
    with Proc(os.environ['WEIR_FACTORIES'], 0) as server, ThreadPoolExecutor(4) as pool:
        server.wait_for_line(r'/even$')
        urls = [line for line in server.lines if line.startswith('rtsp://')]
        assert len(urls) == 4, urls
        for pictures, wrong in pool.map(lambda url: decode(url, 'tcp', 8), urls):
            assert len(pictures) == 8, (pictures, wrong)
        assert server.running(), 'the server is gone'


if __name__ == '__main__':
    run()
