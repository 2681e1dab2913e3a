# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers, changes and failing upstreams, at random and together, leave nothing behind.

The load pauses 24 times in a long run. A run of an hour or more fails if memory at rest grows by
more than 1 MiB an hour after the warm-up, or if descriptors grow. `./dev soak 2h` runs it, and plots
both.
"""

import os
import random
import shutil
import struct
import tempfile
import threading
import time

from control import CLIP_URI, Controlled, config
from good import PATIENCE
from proc import Rtsp
from proxy import CLIP, Origin, Read, wait_until
from samples import Samples
from scripted import KEY_PICTURE, PICTURE, VIDEO, Server, rtp, sender_report
from tap import run, test

SECONDS = float(os.environ.get('WEIR_SOAK_SECONDS', '25'))
OUT = os.environ.get('WEIR_SOAK_OUT')
# In shorter runs, what the allocator keeps hides the trend.
TREND_SECONDS = 3600
ROUND_SECONDS = max(25, SECONDS / 24)
MEMORY_SLOPE_KIB = 1024  # an hour
MORE_DESCRIPTORS = 8
WORKERS = 4
QUICK = {'linger': '200ms', 'connect-timeout': '1s', 'read-timeout': '2s'}
PATHS = ('/cam', '/cache', '/cache?delay=1', '/title', '/films/a.mp4', '/slate', '/warm', '/pipe',
         '/clip')
RANGES = 'npt=0-', 'npt=now-', 'npt=3-', 'npt=1-2', 'clock=20200101T000000Z-'


WRAPS_SECONDS = 60  # a run of the upstream whose counters wrap


def wrap(session):
    """Plays 500 packets a second. Sequence number, RTP time and NTP time begin 2 s below their
    wrap."""
    start, first = time.monotonic(), 65536 - 1000
    try:
        for n in range(500 * WRAPS_SECONDS):
            if session.left.is_set():
                return
            picture = n // 10
            session.send(VIDEO, rtp(first + n, 2**32 - 180000 + picture * 1800,
                                    KEY_PICTURE if picture % 25 == 0 else PICTURE))
            if n % 500 == 0:
                session.send(VIDEO, sender_report((2**64 - (2 << 32) + (picture << 32) // 50) % 2**64,
                                                  (2**32 - 180000 + picture * 1800) % 2**32), rtcp=True)
            if n % 10 == 9:
                time.sleep(max(0, start + n * 0.002 - time.monotonic()))
        session.connection.close()
    except OSError:
        pass


class Wrapping(threading.Thread):
    """Plays /wrap, and fails if a packet is missing or the timestamps go back."""

    def __init__(self, proxy):
        super().__init__(daemon=True)
        self.proxy, self.packets, self.wraps, self.wrong = proxy, 0, 0, None
        self.over = threading.Event()
        self.start()

    def run(self):
        last = None
        try:
            with Rtsp(self.proxy.port, timeout=10 * PATIENCE) as rtsp:
                url = self.proxy.url('/wrap')
                for method, to, headers in (
                        ('DESCRIBE', url, {}), ('SETUP', f'{url}/stream=0', {
                            'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}), ('PLAY', url, {})):
                    assert rtsp.request(method, to, headers)[0] == 200, method
                kept = time.monotonic()
                while not self.over.is_set():
                    channel, data = rtsp.frame()
                    if channel != 0:
                        continue
                    seq, timestamp = struct.unpack_from('>HI', data, 2)
                    assert not last or seq == (last[0] + 1) & 0xffff, f'{seq} after {last}'
                    assert not last or (timestamp - last[1]) & 0xffffffff < 2**31, (timestamp, last)
                    self.wraps += bool(last) and seq < last[0]
                    last, self.packets = (seq, timestamp), self.packets + 1
                    if time.monotonic() > kept + 20:
                        kept = time.monotonic()
                        assert rtsp.request('OPTIONS', url)[0] == 200
        except (OSError, AssertionError) as error:
            self.wrong = repr(error)


def mounts(origin, folder, wrapping, seconds=2):
    return {
        '/wrap': {'upstream': wrapping, 'transport': 'tcp', **QUICK},
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


def use_api(proxy, chance):
    """Sends requests to the API. The kernel may end a connection while it lacks memory for TCP."""
    try:
        if chance.random() < 0.5:
            proxy.http('PATCH', '/v1/mounts' + chance.choice(('/cam', '/cache', '/pipe')),
                       chance.choice(({'priority': 3}, {'join': 'live'}, {'pipeline': None})))
            return
        for path in '/metrics', '/v1/graph', '/v1/readers', '/v1/mounts':
            proxy.get(path)
    except ConnectionResetError as error:
        print(f'# the API: {error!r}', flush=True)


def change(proxy, origin, folder, wrapping, chance):
    """Makes one random change. Returns the origin."""
    what = chance.randrange(4)
    if what < 2:
        use_api(proxy, chance)
    elif what == 2:
        proxy.hang_up(config(mounts(origin.url, folder, wrapping, chance.randrange(1, 9))))
    else:
        origin.kill()
        time.sleep(chance.random())
        origin = Origin(after=origin)
    return origin


def rest(proxy):
    """Waits until the proxy is idle. Returns the number of its open descriptors."""
    wait_until(lambda: all(mount['state'] == 'idle' for mount in proxy.get('/v1/mounts')['mounts'])
               and not proxy.get('/v1/readers')['readers'], 30, 'all is idle')
    return len(os.listdir(f'/proc/{proxy.pid}/fd'))


def touch_all(proxy):
    for path in PATHS:
        Read(proxy.url(path), duration=0.2).result(None)


def check_trend(samples):
    """Checks the trend of a long run. Prints it for every run."""
    memory, descriptors = samples.slope(1), samples.growth(2)
    print(f'# after the warm-up, memory at rest grew by {memory:.0f} KiB an hour, and descriptors by '
          f'{descriptors}; at the end {samples.rests[-1][1]} KiB and {samples.rests[-1][2]} descriptors',
          flush=True)
    if SECONDS >= TREND_SECONDS:
        assert memory < MEMORY_SLOPE_KIB, memory
        assert descriptors <= MORE_DESCRIPTORS, descriptors


def load(proxy, origin, folder, wrapping, seed):
    """Makes random load for a round. Returns the origin."""
    chance, stop = random.Random(seed), threading.Event()
    workers = [threading.Thread(target=work, args=(proxy, random.Random(seed + n), stop))
               for n in range(1, WORKERS + 1)]
    for worker in workers:
        worker.start()
    end = time.monotonic() + min(ROUND_SECONDS, SECONDS)
    try:
        while time.monotonic() < end and proxy.running():
            time.sleep(chance.random())
            origin = change(proxy, origin, folder, wrapping, chance)
    finally:  # this process would never end while a worker runs
        stop.set()
        for worker in workers:
            worker.join()
    return origin


@test(timeout=int(SECONDS) + 150)
def random_load_leaves_nothing_behind():
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}', flush=True)
    with tempfile.TemporaryDirectory() as folder, Server(wrap) as wrapping:
        shutil.copy(CLIP, os.path.join(folder, 'a.mp4'))
        origin = Origin()
        with Controlled(mounts(origin.url, folder, wrapping.url)) as proxy:
            touch_all(proxy)
            before = rest(proxy)
            samples, end = Samples(proxy, max(0.5, SECONDS / 1000)), time.monotonic() + SECONDS
            packets = wraps = 0
            while time.monotonic() < end - ROUND_SECONDS / 2:
                reader, seed = Wrapping(proxy), seed + WORKERS + 1
                origin = load(proxy, origin, folder, wrapping.url, seed)
                reader.over.set()
                reader.join(30)
                assert proxy.running(), 'the proxy has died'
                assert not reader.wrong, reader.wrong
                packets, wraps = packets + reader.packets, wraps + reader.wraps
                rest(proxy)
                samples.note_rest()
                print('# at rest after %.0f s: %d KiB, %d descriptors, %d threads' % samples.rests[-1],
                      flush=True)
                if OUT:
                    samples.write(OUT)
            samples.stop()
            print(f'# readers of counters that wrap got {packets} packets and {wraps} wraps',
                  flush=True)
            assert wraps, 'no counter wrapped'
            check_trend(samples)
            # Threads that GLib keeps for a while have a descriptor each.
            wait_until(lambda: rest(proxy) <= before + 8, 30, 'the descriptors are closed')
            touch_all(proxy)
            assert Read(proxy.url('/clip'), duration=2).result()['totals']['ok'] == 1
            assert proxy.stop() == 0
        origin.kill()


if __name__ == '__main__':
    run()
