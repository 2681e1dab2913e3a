# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGHUP applies changes in the file and touches nothing else."""

import os
import re
import tempfile

from control import CLIP_URI, Controlled, Watch, config, cpu_seconds, rss_kib
from proc import Rtsp
from proxy import matches, wait_until
from tap import Skip, run, test

MANY = 1000
SANITIZED = bool(os.environ.get('WEIR_SANITIZER_RUNTIME'))


def clip(**keys):
    return {'upstream': CLIP_URI, **keys}


@test
def a_reload_touches_only_changed_mounts():
    mounts = {'/same': clip(), '/gone': clip(), '/other': clip()}
    with Controlled(mounts) as proxy, Watch(proxy, '/same') as same, \
            Watch(proxy, '/gone') as gone, Watch(proxy, '/other') as other:
        new = {'/same': clip(), '/other': clip(linger='3s'), '/new': clip()}
        assert proxy.hang_up(config(new)) == 'reloaded: 3 changed, 1 unchanged'
        proxy.wait_for_line(r' mount /other changed$')
        proxy.wait_for_line(r' mount /new added$')
        proxy.wait_for_line(r' reader \S+ out: /gone: the mount is no longer in the configuration$')
        assert gone.closed()
        same.take()
        other.take()
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url('/gone'))[0] == 404
        with Watch(proxy, '/new'):
            pass
        assert len(matches(proxy, r' mount /same up:')) == 1
        assert not matches(proxy, r' mount /same (changed|down|removed)')


@test
def a_new_upstream_takes_over_and_readers_stay():
    with Controlled({'/cam': clip()}) as proxy, Watch(proxy) as reader:
        mounts = {'/cam': clip(**{'read-timeout': '9s'})}
        assert proxy.hang_up(config(mounts)) == 'reloaded: 1 changed, 0 unchanged'
        wait_until(lambda: len(matches(proxy, r' mount /cam up:')) == 2, 10, 'it is up again')
        reader.take(200)


STAGE = """---
summary: of this test
media: any
takes: rtp
gives: rtp
---
"""


@test
def a_changed_stage_file_takes_effect_and_readers_stay():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'mine.launch')

        def write(text):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(STAGE + text)

        mounts = {'/cam': clip(pipeline=['pull', 'mine']), '/other': clip()}
        write('identity')
        with Controlled(mounts, stages=folder) as proxy, Watch(proxy) as reader:
            assert proxy.hang_up(config(mounts, stages=folder)) == \
                'reloaded: 0 changed, 2 unchanged'
            write('identity ! identity')
            assert proxy.hang_up(config(mounts, stages=folder)) == \
                'reloaded: 1 changed, 1 unchanged'
            proxy.wait_for_line(r' mount /cam switched to its new pipeline$')
            reader.take(200)
            write('no-such-element')
            assert proxy.hang_up(config(mounts, stages=folder)).startswith('not reloaded')
            reader.take(200)


@test
def each_stage_that_a_mount_can_have_is_watched():
    """a changed stage file takes effect if only a choice names it, or another stage needs it"""
    with tempfile.TemporaryDirectory() as folder:
        def write(name, text):
            with open(os.path.join(folder, f'{name}.launch'), 'w', encoding='utf-8') as file:
                file.write(text)

        def chosen(text):
            write('mine', STAGE.replace('---\n', '---\nparameters: {n: {type: integer, default: 1}}\n',
                                        1) + text)

        def decode(text):
            write('decode', '---\nsummary: of this test\nmedia: video\ntakes: rtp\ngives: raw\n'
                  f'---\nrtph264depay ! h264parse ! openh264dec {text}\n')

        mounts = {'/chosen': clip(choices={'mine': ['n']}),
                  '/decoded': clip(pipeline=['pull', 'transcode']), '/other': clip()}
        chosen('identity datarate={n}')
        decode('')
        with Controlled(mounts, stages=folder) as proxy, Watch(proxy, '/chosen?n=2') as reader:
            text = config(mounts, stages=folder)
            assert proxy.hang_up(text) == 'reloaded: 0 changed, 3 unchanged'
            chosen('identity ! identity datarate={n}')
            assert proxy.hang_up(text) == 'reloaded: 1 changed, 2 unchanged'
            proxy.wait_for_line(r' mount /chosen\?n=2 switched to its new pipeline$')
            reader.take(200)
            decode('! identity')
            assert proxy.hang_up(text) == 'reloaded: 1 changed, 2 unchanged'
            proxy.wait_for_line(r' mount /decoded changed$')


@test
def a_wrong_file_changes_nothing():
    with Controlled({'/cam': clip()}) as proxy, Watch(proxy) as reader:
        good = config({'/cam': clip(), '/b': clip()})
        half = good[:len(good) // 2]
        for text, wrong in [
                (half, r'proxy\.yaml:\d+:\d+: '),
                (good.replace('"/b"', '"b"'), r'proxy\.yaml:\d+:\d+: b: "b" is not a valid path; write it like /cam'),
                ('', r'proxy\.yaml: no mounts; add at least one /PATH under mounts')]:
            line = proxy.hang_up(text)
            assert line.startswith('not reloaded, nothing has changed: '), line
            proxy.wait_for_line(wrong)
        two = config({'/cam': clip(linger=1), '/b': clip(priority=9)})
        assert re.match(r'not reloaded, nothing .*proxy\.yaml:\d+:\d+: linger: "1"', proxy.hang_up(two))
        proxy.wait_for_line(r' not reloaded: \S*proxy\.yaml:\d+:\d+: priority: "9"')
        reader.take()
        assert not matches(proxy, r' mount /\S+ (added|changed|removed)')
        assert proxy.hang_up(good) == 'reloaded: 1 changed, 1 unchanged'


@test
def keys_that_need_a_restart_are_named():
    with Controlled({'/cam': clip()}) as proxy:
        text = config({'/cam': clip()}, listen='127.0.0.1:1', api='off',
                      **{'receive-tick': '5ms'})
        assert proxy.hang_up(text) == 'reloaded: 0 changed, 1 unchanged'
        for key in ('listen', 'api', 'receive-tick'):
            proxy.wait_for_line(rf' reload: {key} has changed; this takes effect at the next start$')


@test
def a_thousand_mounts_need_little_time_and_memory():
    mounts = {f'/cam{n}': {'upstream': f'rtsp://192.0.2.7/{n}'} for n in range(MANY)}
    with Controlled(mounts) as proxy:
        started, rss = cpu_seconds(proxy), rss_kib(proxy)
        mounts['/cam500'] = {'upstream': 'rtsp://192.0.2.8/'}
        line = proxy.hang_up(config(mounts))
        reloaded = cpu_seconds(proxy) - started
        assert line == f'reloaded: 1 changed, {MANY - 1} unchanged', line
        assert len(matches(proxy, r' mount \S+ (added|changed|removed)')) == 1
        print(f'# {MANY} mounts: started with {started:.2f} s of CPU, {rss / 1024:.0f} MiB; '
              f'one of them changed with {reloaded:.2f} s')
        if SANITIZED:
            raise Skip('a sanitized program needs more')
        assert started < 2 and reloaded < 0.2 and rss < 100 * 1024


if __name__ == '__main__':
    run()
