# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stages in worker processes: a crash of one ends neither the proxy nor the other mounts."""

import contextlib
import itertools
import os
import signal
import struct
import tempfile
import threading

from control import CLIP_URI, Controlled, Watch, config
from leftovers import check_kills
from proxy import matches, wait_until
from tap import run, test
from tspackets import STREAMS

ON = {'on-demand': 'no'}
# For each stage: its launch text. All take and give RTP of H.264.
STAGES = {
    # tsdemux aborts at the packets of the file.
    'aborting': 'rtph264depay ! fakesink filesrc location=FILE ! tsdemux ! h264parse ! rtph264pay',
    'slow': 'rtph264depay ! rtph264pay ! identity sleep-time=200000',
}
# Each frame is a keyframe, so a stage that starts needs not wait for one.
LIVE = ('launch:videotestsrc is-live=true ! '
        'video/x-raw,format=I420,width=64,height=64,framerate=25/1 ! jpegenc ! rtpjpegpay name=pay0')
CHOICES = {'choices': {'transcode': ['size', 'rate']}}
CLIP, SMALL = {'upstream': CLIP_URI, **CHOICES}, {'upstream': LIVE, **CHOICES}
HEADER = '---\nsummary: for a test\nmedia: video\ntakes: rtp\ngives: rtp\ncodec: H264\n---\n'


@contextlib.contextmanager
def stages(path='/dev/null'):
    """Yields a folder with the stages."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STAGES.items():
            with open(os.path.join(folder, f'{name}.launch'), 'w', encoding='utf-8') as file:
                file.write(f'{HEADER}{text.replace("FILE", path)}\n')
        yield folder


def workers_of(proxy, label):
    """Returns the workers of the running stages with this label."""
    return {int(node['params']['worker']) for node in proxy.get('/v1/graph')['nodes']
            if node['kind'] == 'stage' and node['label'] == label and 'worker' in node['params']}


class Counted(Watch):
    """A reader in a thread, which counts the packets that are missing in the sequence numbers."""

    def __init__(self, proxy, path):
        super().__init__(proxy, path)
        self.last, self.lost, self.received = {}, 0, 0
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, EOFError, AssertionError):
            while True:
                channel, packet = self.frame()
                if channel % 2 == 0:
                    number = struct.unpack('!H', packet[2:4])[0]
                    self.lost += (number - self.last.get(channel, number - 1) - 1) % 65536
                    self.last[channel] = number
                    self.received += 1

    def check(self):
        """Checks that media flows, and that nothing was lost."""
        seen = self.received
        wait_until(lambda: self.received > seen + 20, 10, 'packets arrive')
        assert self.lost == 0, self.lost


@test(timeout=120)
def a_crash_ends_the_worker_s_stages_only():
    mounts = {'/cam': {'upstream': CLIP_URI, **ON}, '/other': CLIP, '/small': SMALL}
    with Controlled(mounts) as proxy, Counted(proxy, '/cam') as plain, \
            Counted(proxy, '/other?size=64x64') as other:
        untouched = workers_of(proxy, 'transcode')
        with Watch(proxy, '/small?size=128x96') as reader, \
                Watch(proxy, '/small?size=160x120') as second:
            for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL:
                decoding = workers_of(proxy, 'decode') - untouched
                assert decoding == workers_of(proxy, 'transcode') - untouched, decoding
                victim, = decoding
                seen = len(proxy.lines)
                os.kill(victim, number)
                # ASan handles SIGSEGV itself.
                ended = rf'worker {victim} ended (by {number.name}|with status 1)'
                proxy.wait_for_line(f' {ended}; it ran 3 jobs$', start=seen)
                for size in '128x96', '160x120':
                    down = rf' mount /small\?size={size} down: stage (decode|transcode): {ended}'
                    proxy.wait_for_line(down, start=seen)
                    proxy.wait_for_line(rf' mount /small\?size={size} up', 20, start=seen)
                reader.take() # with a lost upstream, readers stay
                second.take()
                assert workers_of(proxy, 'transcode') > untouched
        other.check()
        plain.check()
        assert not matches(proxy, r' mount /(cam|other\S*) down')


@test(timeout=60)
def an_assertion_of_an_element_ends_its_worker_only():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b''.join(STREAMS['no time'] * 20))
        file.flush()
        mounts = {'/cam': {'upstream': CLIP_URI, **ON},
                  '/bad': {'upstream': CLIP_URI, 'pipeline': ['pull', 'aborting'], **ON}}
        with stages(file.name) as folder, Controlled(mounts, stages=folder) as proxy, \
                Counted(proxy, '/cam') as reader:
            for _ in range(2):
                proxy.wait_for_line(
                    r' mount /bad down: stage aborting: worker \d+ ended by SIG(ABRT|TRAP)', 20,
                    start=len(proxy.lines))
            reader.check()


@test(timeout=60)
def a_stage_that_hangs_is_killed():
    mounts = {'/cam': {'upstream': CLIP_URI, **ON}, '/small': SMALL}
    with Controlled(mounts) as proxy, Counted(proxy, '/cam') as other, \
            Watch(proxy, '/small?size=128x96') as reader:
        victim, = workers_of(proxy, 'decode')
        seen = len(proxy.lines)
        os.kill(victim, signal.SIGSTOP)
        proxy.wait_for_line(rf' worker {victim} was killed: it did not answer for 5 s', 20)
        proxy.wait_for_line(r' mount /small\S* up', 20, start=seen)
        reader.take()
        other.check()


@test(timeout=90)
def a_stage_that_does_not_keep_up_loses_packets_that_are_counted():
    mounts = {'/cam': {'upstream': CLIP_URI, **ON},
              '/slow': {'upstream': CLIP_URI, 'pipeline': ['pull', 'slow'], **ON}}
    with stages() as folder, Controlled(mounts, stages=folder) as proxy, \
            Counted(proxy, '/cam') as other:
        dropped = proxy.wait_for_line(
            r' stage slow does not keep up: (\d+) packets or frames were dropped', 60)[1]
        counted = proxy.metric('ingest_overflow_packets_total{mount="/slow"}')
        assert 0 < int(dropped) <= counted, (dropped, counted)
        other.check()
        assert not matches(proxy, 'was killed')


@test(timeout=60)
def isolate_says_which_stages_run_in_workers():
    mount = {'upstream': CLIP_URI, 'pipeline': ['pull', 'restamp', {'transcode': {'size': '64x64'}}]}
    for isolate, inside in ('no', 3), ('auto', 1), ('yes', 0):
        with Controlled({'/cam': mount}, isolate=isolate) as proxy, Watch(proxy, '/cam') as reader:
            reader.take()
            stage_nodes = [node for node in proxy.get('/v1/graph')['nodes']
                           if node['kind'] == 'stage' and node['label'] != 'pull']
            assert len(stage_nodes) == 3
            assert sum('worker' not in node['params'] for node in stage_nodes) == inside, isolate


@test(timeout=60)
def stages_get_no_network():
    with Controlled({'/small': SMALL}) as proxy, Watch(proxy, '/small?size=64x64') as reader:
        reader.take()
        victim, = workers_of(proxy, 'decode')
        with open(f'/proc/{victim}/cmdline', encoding='ascii') as file:
            assert file.read().split('\0')[:2] == ['rtsp-proxy-worker', 'stage']


@test(timeout=900)
def killed_workers_of_stages_leave_nothing_in_the_proxy():
    numbers = itertools.count(8)
    with Controlled({'/cam': {'upstream': CLIP_URI}}, workers=6) as proxy:
        def kill():
            # New mounts, as stages that were killed wait ever longer until they start again.
            paths = [f'/{next(numbers)}' for _ in range(6)]
            seen = len(proxy.lines)
            told = proxy.hang_up(config({path: {**SMALL, 'upstream': LIVE.replace(
                '=64', f'={16 * int(path[1:]) % 800 + 64}', 1)} for path in paths}, workers=6))
            assert told.startswith('reloaded'), told
            with contextlib.ExitStack() as stack:
                for path in paths:
                    stack.enter_context(Watch(proxy, f'{path}?size=128x96'))
                victims = workers_of(proxy, 'transcode')
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)
                for path in paths:
                    proxy.wait_for_line(rf' mount {path}\?\S+ down: .* by SIGKILL', start=seen)
            wait_until(lambda: not workers_of(proxy, 'transcode'), 10, 'the stages have ended')
            return len(victims)

        check_kills(proxy.pid, kill)


if __name__ == '__main__':
    run(at_once=4)
