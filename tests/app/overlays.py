# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stages that lay a picture of a file, a text or the time over the stream's picture."""

import subprocess
import tempfile
from contextlib import ExitStack

from brightness import light, white_picture
from control import Controlled, wait_for_packets
from livets import CLIPS, clip
from loads import Load
from proxy import said
from sanitized import stock_environment
from tap import SLOWER, Skip, run, test

FRAMES = 25  # a second
CLIPS['black.mp4'] = ['-t', '20', '-s', '640x360', '-vf', 'lutyuv=y=16:u=128:v=128', '-c:v', 'libx264', '-preset', 'ultrafast',
                      '-tune', 'zerolatency', '-g', str(FRAMES), '-pix_fmt', 'yuv420p', '-an']
SMALL = {'transcode': {'size': '640x360'}}
UPPER_LEFT, LOWER_RIGHT = '56:56:20:20', '56:56:564:284'


def black(*stages):
    return {'upstream': f'file://{clip("black.mp4")}', 'pipeline': ['pull', *stages], 'start-timeout': '30s',
            'switch-timeout': '30s', 'transport': 'tcp'}


@test(timeout=120)
def a_picture_comes_moves_and_goes():
    """the API lays a picture over a stream, moves it and removes it; a reader loses nothing, whatever process runs the stages"""
    with tempfile.TemporaryDirectory() as folder:
        for isolate, name in ('yes', 'logo.png'), ('no', 'a "b" {left} é.jpg'):
            logo = white_picture(f'{folder}/{name}')
            with Controlled({'/cam': black(SMALL)}, isolate=isolate, **{'file-roots': [folder]}) as proxy:
                with Load('--transport', 'tcp', '--duration', 600, proxy.url()) as load:
                    wait_for_packets(proxy, FRAMES)
                    proxy.switch('/cam', ['pull', {'overlay': {'file': logo}}, SMALL])
                    here, there = light(proxy.url(), UPPER_LEFT, LOWER_RIGHT)
                    assert here > 220 and there < 30, (here, there)
                    moved = {'file': logo, 'left': '-16', 'top': '-16', 'opacity': '0.5'}
                    proxy.switch('/cam', ['pull', {'overlay': moved}, SMALL])
                    before, here = light(proxy.url(), UPPER_LEFT, LOWER_RIGHT)
                    assert before < 30 and 100 < here < 160, (before, here)
                    proxy.switch('/cam', ['pull', SMALL])
                    assert light(proxy.url(), LOWER_RIGHT)[0] < 30
                    result = load.finish()
            assert not any(result[key] for key in ('lost', 'reordered', 'duplicates')), result


@test(timeout=60)
def a_picture_is_scaled():
    """the picture of a file is given another size, as the file says from the start"""
    with tempfile.TemporaryDirectory() as folder:
        logo = {'file': white_picture(f'{folder}/logo.png'), 'width': 320, 'height': '180', 'left': 0, 'top': 0}
        with Controlled({'/cam': black({'overlay': logo}, SMALL)}) as proxy:
            inside, outside = light(proxy.url(), '300:160:10:10', '300:160:330:190')
            assert inside > 220 and outside < 30, (inside, outside)


@test(timeout=60)
def a_source_stage_reads_its_picture():
    """a worker process that runs source stages may read their files, also where the upstream runs for another mount already"""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        logos = [{'overlay': {'file': white_picture(f'{folder}/{name}'), 'left': left}}
                 for name, left in (('a.png', 16), ('b.png', -16))]
        mounts = {f'/{n}': {**black(), 'source-stages': [logo, SMALL]} for n, logo in enumerate(logos)}
        proxy = stack.enter_context(Controlled(mounts, isolate='yes'))
        for n in range(2):
            places = [UPPER_LEFT, '56:56:564:24']
            inside, outside = light(proxy.url(f'/{n}'), places[n], places[1 - n])
            assert inside > 220 and outside < 30, (n, inside, outside)
            stack.enter_context(Load('--transport', 'tcp', '--duration', 600, proxy.url(f'/{n}')))


def check(stages, *more):
    """Returns what --check-config says of a mount with these stages, and its status."""
    text = f'mounts:\n  /cam:\n    upstream: rtsp://192.0.2.1/a\n    pipeline: [pull, {stages}, transcode]\n' + '\n'.join(more)
    return said(text, '--check-config')


@test
def wrong_files_are_refused_at_their_place():
    """a file that is missing, not there, relative, of a URL, or outside of file-roots is refused"""
    for stages, more, words in (
            ('overlay', [], 'FILE:2:3: pipeline: stage overlay: file is missing: the absolute path of the picture, PNG or JPEG'),
            ('{overlay: {file: /no/logo.png}}', [], 'FILE:4:39: pipeline: file: no such file: /no/logo.png'),
            ('{overlay: {file: logo.png}}', [], 'FILE:4:39: pipeline: file: "logo.png" is not the absolute path of a file'),
            ('{overlay: {file: /etc/hostname}}', ['    choices: {overlay: [file]}'],
             'choices: a URL cannot set file of stage overlay')):
        out, status = check(stages, *more)
        assert status == 2 and words in out, (stages, out)
    with tempfile.TemporaryDirectory() as folder, Controlled({'/cam': black(SMALL)}) as proxy:
        logo = white_picture(f'{folder}/logo.png')
        status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', {'pipeline': ['pull', {'overlay': {'file': logo}}, SMALL]})
        assert status == 400 and 'file-roots' in str(answer), answer


@test(timeout=60)
def a_mount_waits_for_its_picture():
    """a mount whose picture is not there is down, and others are served; a reload finds the picture"""
    with tempfile.TemporaryDirectory() as folder:
        mounts = {'/cam': black({'overlay': {'file': f'{folder}/logo.png'}}, SMALL), '/other': black()}
        with Controlled(mounts) as proxy:
            assert 'no such file' in str(proxy.get('/v1/mounts/cam')), proxy.get('/v1/mounts/cam')
            assert light(proxy.url('/other'), UPPER_LEFT)[0] < 30
            white_picture(f'{folder}/logo.png')
            with open(proxy.file, encoding='utf-8') as file:
                proxy.hang_up(file.read())
            assert light(proxy.url(), UPPER_LEFT)[0] > 220


def has_text():
    return subprocess.run(['gst-inspect-1.0', '--exists', 'clockoverlay'], check=False, timeout=60 * SLOWER,
                          env=stock_environment()).returncode == 0


@test(timeout=120)
def texts_and_the_time_are_written():
    """a text with letters of any kind, and the time, are written at their place"""
    if not has_text():
        out, status = check('caption')
        assert status == 2 and 'on Debian install gstreamer1.0-x' in out, out
        raise Skip('the element clockoverlay is missing')
    upper, lower = '640:60:0:0', '640:60:0:300'
    mounts = {'/text': {'text': '"Tom" & {size} <b> \\ \' é\n!', 'place': 'top', 'size': 20}, '/time': {'time': '%H:%M:%S'},
              '/none': {}}
    for isolate in 'yes', 'no':
        with Controlled({path: black({'caption': words}, SMALL) for path, words in mounts.items()}, isolate=isolate) as proxy:
            dark = light(proxy.url('/none'), upper, lower)
            assert max(dark) < 20, dark
            written = light(proxy.url('/text'), upper, lower)
            assert written[0] > 20 and written[1] < 17, written
            written = light(proxy.url('/time'), upper, lower)
            assert written[0] < 17 and written[1] > 18, written


if __name__ == '__main__':
    run()
