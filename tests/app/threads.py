# SPDX-License-Identifier: LGPL-2.1-or-later
"""`ps -L` and `top -H` show the purpose of each of the proxy's threads by its name."""

import re
import time
from contextlib import ExitStack

from control import CLIP_URI, Controlled, Watch
from proc import thread_names
from proxy import wait_until
from tap import run, test

FOLDER, TITLE = CLIP_URI.rsplit('/', 1)
CLIP = {'upstream': CLIP_URI}
READERS = 80 # more than a stream's own thread serves
# Patterns of names, and their meanings.
MEANINGS = {
    r'rtsp-clients': 'requests of RTSP clients',
    r'weir-media': 'messages of live media',
    r'weir-rtcp': 'RTCP of the readers of live media',
    r'rtsp-media': 'messages of a title',
    r'title-worker': 'opening and starting titles',
    r'media-opener': 'opening the media that readers get',
    r'pull:\w+': 'an element of an upstream pipeline',
    r'rtsp-pull': 'connections to RTSP upstreams',
    r'weir-ingest': 'media of upstreams over UDP',
    r'stage:\w+': 'an element of a stage',
    r'title:\w+': 'an element of a title',
    r'title-control': 'messages from the worker process of a title',
    r'feed': 'the start of a track that readers get',
    r'weir-conn': 'data from TCP readers',
    r'weir-closed': 'reports of closed connections',
    r'weir-worker': 'sending to many readers',
    r'weir-stand-in': 'sending while a worker is blocked',
    # The libraries' threads.
    r'gmain|pool-spawner': "GLib's own work",
    r'pool-rtsp-proxy': "GLib's pool, between two jobs",
    r'dconf worker|gdbus': 'settings of the desktop',
    r'timer': 'jitter buffers',
    r'rtpsession-rtcp': 'RTCP of a session',
}


def threads(proxy):
    """Returns {id: name} of all threads but the first."""
    found = thread_names(proxy.pid)
    assert found.pop(proxy.pid) == 'rtsp-proxy', found
    return found


def unnamed(proxy):
    return {name for name in threads(proxy).values()
            if not any(re.fullmatch(form, name) for form in MEANINGS)}


@test(timeout=120)
def each_threads_name_shows_its_purpose():
    with ExitStack() as stack:
        camera = stack.enter_context(Controlled({'/cam': CLIP}))
        always = {'upstream': camera.url('/cam'), 'on-demand': False}
        proxy = stack.enter_context(Controlled({
            '/udp': always, '/tcp': {**always, 'transport': 'tcp'},
            '/stage': {**CLIP, 'pipeline': ['pull', 'restamp'], 'on-demand': False},
            '/titles': {'upstream': f'{FOLDER}/'}}))
        # None of these readers reads; the proxy tolerates that for ten seconds.
        for _ in range(READERS):
            stack.enter_context(Watch(proxy, '/udp'))
        stack.enter_context(Watch(proxy, f'/titles/{TITLE}'))
        wanted = {'rtsp-clients', 'rtsp-media', 'weir-media', 'weir-worker', 'weir-conn', 'pull',
                  'stage', 'title'}
        def missing():
            return wanted - {name.split(':')[0] for name in threads(proxy).values()}

        # A new thread has its creator's name for a moment.
        try:
            wait_until(lambda: not missing() and not unnamed(proxy), 20, 'all threads have names')
        except AssertionError as error:
            raise AssertionError(f'without a name: {unnamed(proxy)}; missing: {missing()}') from error


def waits(proxy, name):
    """Returns how often the thread of this name has waited for something."""
    tid = next(tid for tid, its in threads(proxy).items() if its == name)
    with open(f'/proc/{proxy.pid}/task/{tid}/status', encoding='utf-8') as file:
        return int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', file.read())[1])


@test(timeout=60)
def threads_that_receive_wait_for_their_tick():
    # The clip has more than 60 packets a second. A thread that has no tick waits for each of them.
    with Controlled({'/cam': CLIP}) as camera:
        mounts = {f'/{how}': {'upstream': camera.url('/cam'), 'client': 'light', 'transport': how}
                  for how in ('udp', 'tcp')}
        for tick in '100ms', '0ms':
            with Controlled(mounts, **{'receive-tick': tick}) as proxy:
                for mount, name in ('/udp', 'weir-ingest'), ('/tcp', 'rtsp-pull'):
                    with Watch(proxy, mount) as reader:
                        before, start = waits(proxy, name), time.monotonic()
                        while time.monotonic() - start < 2:
                            reader.take(1)
                        rate = (waits(proxy, name) - before) / (time.monotonic() - start)
                    # At most twice in a tick, and 10 times a second for the timers.
                    assert rate < 40 or tick != '100ms', (mount, rate)


if __name__ == '__main__':
    run()
