# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers, changes and failing upstreams, at random and together, leave nothing behind."""

import os
import random
import shutil
import tempfile
import threading
import time

from control import CLIP_URI, Controlled, config
from proc import Rtsp
from proxy import CLIP, Origin, Read, wait_until
from tap import run, test

SECONDS = float(os.environ.get('WEIR_SOAK_SECONDS', '25'))
WORKERS = 4
QUICK = {'linger': '200ms', 'connect-timeout': '1s', 'read-timeout': '2s'}
PATHS = ('/cam', '/cache', '/cache?delay=1', '/title', '/films/a.mp4', '/slate', '/warm', '/pipe',
         '/clip')
RANGES = 'npt=0-', 'npt=now-', 'npt=3-', 'npt=1-2', 'clock=20200101T000000Z-'


def mounts(origin, folder, seconds=2):
    return {
        '/cam': {'upstream': origin, **QUICK},
        '/cache': {'upstream': origin, 'cache': {'time': '5s', 'bytes': '8M', 'spill': folder},
                   **QUICK},
        '/title': {'upstream': origin, 'interval': '1s', **QUICK},
        '/films': {'upstream': f'file://{folder}/', 'linger': '200ms'},
        '/slate': {'upstreams': ['rtsp://127.0.0.1:9/none', origin], 'slate': CLIP, **QUICK},
        '/warm': {'upstreams': [origin, CLIP_URI], 'standby': 'warm', **QUICK},
        '/pipe': {'upstream': origin, 'pipeline': ['pull', {'restamp': {'limit': f'{seconds}s'}}],
                  **QUICK},
        '/clip': {'upstream': CLIP_URI, 'linger': '0s'},
    }


def set_up(rtsp, url):
    """Sets up a session. Returns the URL to play, or None if the path is not served now."""
    status, headers, _ = rtsp.request('DESCRIBE', url, {'Accept': 'application/sdp'})
    if status != 200:
        return None
    base, session = headers.get('content-base', url).rstrip('/'), {}
    for n in 0, 1:
        transport = f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
        status, headers, _ = rtsp.request('SETUP', f'{base}/stream={n}',
                                          {'Transport': transport, **session})
        if status != 200:
            return None
        session = {'Session': headers['session'].split(';')[0]}
    return base, session


def seek_about(proxy, chance):
    with Rtsp(proxy.port) as rtsp:
        found = set_up(rtsp, proxy.url(chance.choice(PATHS)))
        for _ in range(chance.randrange(5) if found else 0):
            url, session = found
            what = chance.choice(('PLAY', 'PAUSE', 'RANGE'))
            extra = {'Range': chance.choice(RANGES)} if what == 'RANGE' else {}
            rtsp.request('PAUSE' if what == 'PAUSE' else 'PLAY', url, {**session, **extra})
            time.sleep(chance.random() / 2)
        if found and chance.random() < 0.5:
            rtsp.request('TEARDOWN', *found)


def work(proxy, chance, stop):
    while not stop.is_set():
        try:
            if chance.random() < 0.5:
                Read(proxy.url(chance.choice(PATHS)), transport=chance.choice(('tcp', 'udp')),
                     duration=chance.choice((0.2, 1, 2))).result(None)
            else:
                seek_about(proxy, chance)
        except (AssertionError, OSError):
            pass  # the proxy may close at any time; the test's end checks the proxy


def change(proxy, origin, folder, chance):
    """Makes one random change. Returns the origin."""
    what = chance.randrange(4)
    if what == 0:
        proxy.http('PATCH', '/v1/mounts' + chance.choice(('/cam', '/cache', '/pipe')),
                   chance.choice(({'priority': 3}, {'join': 'live'}, {'pipeline': None})))
    elif what == 1:
        proxy.hang_up(config(mounts(origin.url, folder, chance.randrange(1, 9))))
    elif what == 2:
        origin.kill()
        time.sleep(chance.random())
        origin = Origin(after=origin)
    else:
        for path in '/metrics', '/v1/graph', '/v1/readers', '/v1/mounts':
            proxy.get(path)
    return origin


def rest(proxy):
    """Waits until the proxy is idle. Returns the number of its open descriptors."""
    wait_until(lambda: all(mount['state'] == 'idle' for mount in proxy.get('/v1/mounts')['mounts'])
               and not proxy.get('/v1/readers')['readers'], 30, 'all is idle')
    return len(os.listdir(f'/proc/{proxy.pid}/fd'))


def touch_all(proxy):
    for path in PATHS:
        Read(proxy.url(path), duration=0.2).result(None)


@test(timeout=int(SECONDS) + 150)
def random_load_leaves_nothing_behind():
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}', flush=True)
    chance, stop = random.Random(seed), threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CLIP, os.path.join(folder, 'a.mp4'))
        origin = Origin()
        with Controlled(mounts(origin.url, folder), env={'G_DEBUG': 'fatal-criticals'}) as proxy:
            touch_all(proxy)
            before = rest(proxy)
            workers = [threading.Thread(target=work, args=(proxy, random.Random(seed + n), stop))
                       for n in range(1, WORKERS + 1)]
            for worker in workers:
                worker.start()
            end = time.monotonic() + SECONDS
            try:
                while time.monotonic() < end and proxy.running():
                    time.sleep(chance.random())
                    origin = change(proxy, origin, folder, chance)
            finally:  # this process would never end while a worker runs
                stop.set()
                for worker in workers:
                    worker.join()
            assert proxy.running(), 'the proxy has died'
            # Threads that GLib keeps for a while have a descriptor each.
            wait_until(lambda: rest(proxy) <= before + 8, 30, 'the descriptors are closed')
            touch_all(proxy)
            assert Read(proxy.url('/clip'), duration=2).result()['totals']['ok'] == 1
            assert proxy.stop() == 0
        origin.kill()


if __name__ == '__main__':
    run()
