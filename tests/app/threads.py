# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `ps -L` and `top -H` show of a proxy: each thread has a name that tells what it is for."""

import glob
import os
import re
from contextlib import ExitStack

from control import CLIP_URI, Controlled, Watch
from proxy import wait_until
from tap import run, test

FOLDER, TITLE = CLIP_URI.rsplit('/', 1)
CLIP = {'upstream': CLIP_URI}
READERS = 80 # more than the thread of a stream serves itself
# A name's form, and the one thing that it means.
MEANINGS = {
    r'rtsp-clients': 'what RTSP clients ask for',
    r'rtsp-media': 'messages of what readers are served with',
    r'title-worker': 'opening and starting of titles',
    r'media-opener': 'opening of what readers are served with',
    r'pull:\w+': 'an element of what gives media',
    r'stage:\w+': 'an element of a stage',
    r'serve:\w+': 'an element that readers are served with',
    r'title:\w+': 'an element of a title',
    r'feed': 'the beginning of a track that readers are served with',
    r'weir-conn': 'what TCP readers send',
    r'weir-closed': 'telling of closed connections',
    r'weir-worker': 'sending to many readers',
    r'weir-stand-in': 'sending while a worker waits',
    # Of the libraries.
    r'gmain': "GLib's own work",
    r'pool-rtsp-proxy': "GLib's pool, between two works",
    r'dconf worker|gdbus': 'settings of the desktop',
    r'timer': 'jitter buffers',
    r'rtpsession-rtcp': 'RTCP of a session',
}


def threads(proxy):
    """Name by id, of all threads but the first."""
    found = {}
    for path in glob.glob(f'/proc/{proxy.pid}/task/*/comm'):
        tid = int(path.split('/')[4])
        try:
            with open(path, encoding='utf-8') as file:
                found[tid] = file.read().rstrip('\n')
        except FileNotFoundError:
            pass # it has just ended
    assert found.pop(proxy.pid) == 'rtsp-proxy', found
    return found


def unnamed(proxy):
    return {name for name in threads(proxy).values()
            if not any(re.fullmatch(form, name) for form in MEANINGS)}


@test(timeout=120)
def each_thread_tells_what_it_is_for():
    with ExitStack() as stack:
        camera = stack.enter_context(Controlled({'/cam': CLIP}))
        always = {'upstream': camera.url('/cam'), 'on-demand': False}
        proxy = stack.enter_context(Controlled({
            '/udp': always, '/tcp': {**always, 'transport': 'tcp'},
            '/stage': {**CLIP, 'pipeline': ['pull', 'restamp'], 'on-demand': False},
            '/titles': {'upstream': f'{FOLDER}/'}}))
        # None of them reads, and that is borne for ten seconds.
        for _ in range(READERS):
            stack.enter_context(Watch(proxy, '/udp'))
        stack.enter_context(Watch(proxy, f'/titles/{TITLE}'))
        wanted = {'rtsp-clients', 'rtsp-media', 'weir-worker', 'weir-conn', 'pull', 'stage',
                  'serve', 'title'}
        def missing():
            return wanted - {name.split(':')[0] for name in threads(proxy).values()}

        # A thread that begins has the name of the one that began it, for a moment.
        try:
            wait_until(lambda: not missing() and not unnamed(proxy), 20, 'all have names')
        except AssertionError as error:
            raise AssertionError(f'without a name: {unnamed(proxy)}; missing: {missing()}') from error


if __name__ == '__main__':
    run()
