# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mounts with inputs: one stream of the pictures and the sound of several mounts, which come and go."""

import subprocess
import tempfile
from contextlib import contextmanager

from brightness import light, white_picture
from control import Controlled, wait_for_packets
from lipsync import flashes, lateness
from livets import VP8, CLIPS, clip
from loads import Load
from proc import free_port
from proxy import said
from tap import SLOWER, run, test

CLIPS['small.webm'] = ['-t', '20', '-r', '15', '-s', '160x120', *VP8, '-an']
PIP = {'picture-in-picture': {'fps': 25, 'size': '640x360', 'inset': '160x120'}}
SMALL = {'transcode': {'size': '640x360'}}
QUICK = {'transport': 'tcp', 'linger': '500ms', 'start-timeout': '20s'}
FRAMES = 25  # a second


class Cameras(Controlled):
    """A camera with sound, at 25 frames a second, and one of another size, rate and codec without."""

    def __init__(self, port):
        flash = flashes('flash.mp4', '-c:a', 'aac') if 'flash.mp4' not in CLIPS else 'flash.mp4'
        super().__init__({'/flash': {'upstream': f'file://{clip(flash)}'}, '/small': {'upstream': f'file://{clip("small.webm")}'}},
                         listen=f'127.0.0.1:{port}', api='off')


def cameras(one, two):
    """Returns the mounts of two cameras, at the ports of their servers."""
    return {'/one': {'upstream': f'rtsp://127.0.0.1:{one}/flash', **QUICK},
            '/two': {'upstream': f'rtsp://127.0.0.1:{two}/small', **QUICK}}


def joined(*inputs, pipeline):
    return {'inputs': list(inputs), 'pipeline': ['pull', *pipeline], 'linger': '500ms', 'start-timeout': '30s',
            'switch-timeout': '30s'}


def streams(url):
    done = subprocess.run(
        ['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0', url],
        capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    return sorted(done.stdout.split()), done.stderr


def loses_nothing(result):
    total = result
    for key in ('lost', 'reordered', 'duplicates'):
        assert total[key] == 0, (key, total)


def killed(which):
    """Kills the server of a camera for 5 s of the output, while readers watch both pictures."""
    ports = free_port(), free_port()
    mounts = {**cameras(*ports), '/wall': joined('/one', '/two', pipeline=[PIP, SMALL])}
    servers = [Cameras(port) for port in ports]
    try:
        with Controlled(mounts) as proxy:
            with Load('--transport', 'tcp', '--duration', 600, proxy.url('/wall')) as load:
                wait_for_packets(proxy, 4 * FRAMES, '/wall')
                servers[which].kill()
                proxy.wait_for_line(rf' mount {("/one", "/two")[which]} down: ')
                wait_for_packets(proxy, 5 * FRAMES, '/wall')
                seen = len(proxy.lines)
                servers[which] = Cameras(ports[which])
                proxy.wait_for_line(rf' mount {("/one", "/two")[which]} up: ', 30, start=seen)
                late = lateness(proxy.url('/wall'))
                shown = light(proxy.url('/wall'), '150:110:36:36', '200:200:400:100')
                loses_nothing(load.finish())
            assert abs(late) < 5, late
            assert shown[0] > 60 and shown[1] > 150, shown
            assert not [line for line in proxy.lines if 'out: /wall: ' in line and 'TEARDOWN' not in line], proxy.output()
    finally:
        for server in servers:
            server.kill()


@test(timeout=180)
def a_picture_goes_on_when_the_first_mount_fails():
    """the first of two mounts fails for 5 s: the output loses nothing, and sound is within 5 ms of the picture after"""
    killed(0)


@test(timeout=180)
def a_picture_goes_on_when_the_second_mount_fails():
    """the second of two mounts fails for 5 s: the output loses nothing, and sound is within 5 ms of the picture after"""
    killed(1)


@contextmanager
def alone(mounts, **top):
    """Runs the cameras, and a proxy with mounts of them."""
    port = free_port()
    with Cameras(port), Controlled({**cameras(port, port), **mounts}, **top) as proxy:
        yield proxy


@test(timeout=120)
def an_input_may_lack_sound_or_never_come():
    """sound of a mount with the picture of another; and both, while the first mount never comes"""
    dead = {'upstream': f'rtsp://127.0.0.1:{free_port()}/none', 'linger': '500ms'}
    mounts = {'/dead': dead, '/dub': joined('/two', '/one', pipeline=['mix', 'opus']),
              '/left': joined('/dead', '/one', pipeline=[PIP, 'mix', SMALL, 'aac'])}
    with alone(mounts) as proxy:
        assert streams(proxy.url('/dub')) == (['opus', 'vp8'], '')
        with Load('--transport', 'tcp', '--duration', 600, proxy.url('/left')) as load:
            wait_for_packets(proxy, 2 * FRAMES, '/left')
            assert streams(proxy.url('/left')) == (['aac', 'h264'], '')
            loses_nothing(load.finish())


@test(timeout=90)
def mixed_sound_stays_with_the_picture():
    """sound that is mixed stays within 5 ms of the picture of the first mount, in whatever order the stages are"""
    orders = {'/before': ['mix', PIP, SMALL, 'aac'], '/between': [PIP, 'mix', SMALL, 'aac'], '/after': [PIP, SMALL, 'mix', 'aac']}
    with alone({path: joined('/one', '/two', pipeline=order) for path, order in orders.items()}) as proxy:
        late = {path: lateness(proxy.url(path)) for path in orders}
    assert all(abs(each) < 5 for each in late.values()), late


@test(timeout=120)
def parameters_change_under_readers():
    """other parameters of a stage with several inputs take over at a keyframe, and readers lose nothing"""
    with alone({'/wall': joined('/one', '/two', pipeline=[PIP, SMALL])}) as proxy:
        with Load('--transport', 'tcp', '--duration', 600, proxy.url('/wall')) as load:
            wait_for_packets(proxy, 2 * FRAMES, '/wall')
            moved = {'picture-in-picture': {**PIP['picture-in-picture'], 'left': '400', 'top': '200'}}
            proxy.switch('/wall', ['pull', moved, SMALL])
            here, before = light(proxy.url('/wall'), '150:110:404:204', '20:20:34:34')
            assert here > 60 and (before > 150 or before < 30), (here, before)
            loses_nothing(load.finish())


@test(timeout=120)
def mounts_with_inputs_share_what_they_decode():
    """in the graph, two mounts share the decoders of their inputs; in worker processes, each has its own"""
    other = {'picture-in-picture': {**PIP['picture-in-picture'], 'left': '400'}}
    mounts = {'/wall': joined('/one', '/two', pipeline=[PIP, SMALL]), '/other': joined('/one', '/two', pipeline=[other, SMALL])}
    for isolate, decoders in ('no', 2), ('yes', 4):
        with alone(mounts, isolate=isolate) as proxy, Load('--transport', 'tcp', '--duration', 600, proxy.url('/wall')), \
                Load('--transport', 'tcp', '--duration', 600, proxy.url('/other')):
            for path in mounts:
                wait_for_packets(proxy, FRAMES, path)
            nodes = {node['id']: node for node in proxy.get('/v1/graph')['nodes']}
            named = [node for node in nodes.values() if node['kind'] == 'stage']
            assert sum(node['label'] == 'decode' for node in named) == decoders, named
            walls = [node for node in named if node['label'] == 'picture-in-picture']
            assert len(walls) == 2, named
            for wall in walls:
                inputs = [nodes[each] for each in wall['from']]
                assert [each['label'] for each in inputs] == ['pull', 'decode', 'decode'], inputs
                assert len({each['params'].get('worker') for each in [wall, *inputs[1:]]}) == 1, (wall, inputs)


@test(timeout=60)
def the_api_adds_and_removes_mounts_with_inputs():
    """the API adds a mount with inputs; it removes an input only after that mount"""
    with alone({}) as proxy:
        wall = {'inputs': ['/one', '/two'], 'pipeline': ['pull', PIP, SMALL]}
        status, _, answer = proxy.http('PUT', '/v1/mounts/wall', wall)
        assert status == 201 and answer['config']['inputs'] == ['/one', '/two'], answer
        status, _, answer = proxy.http('PUT', '/v1/mounts/wall', answer['config'])
        assert status == 200 and 'inputs' not in answer['change']['keys'], answer
        status, _, answer = proxy.http('DELETE', '/v1/mounts/two')
        assert status == 409 and 'the mount is an input of /wall' in str(answer), answer
        status, _, answer = proxy.http('PUT', '/v1/mounts/two', {'inputs': ['/wall', '/one'], 'pipeline': ['pull', PIP, SMALL]})
        assert status == 400 and 'the mount reads from itself: /two, /wall, /two' in str(answer), answer
        status, _, answer = proxy.http('PATCH', '/v1/mounts/wall', {'inputs': ['/one', '/three']})
        assert status == 400 and 'there is no mount /three' in str(answer), answer
        with Load('--transport', 'tcp', '--duration', 600, proxy.url('/wall')):
            wait_for_packets(proxy, FRAMES, '/wall')
        assert proxy.http('DELETE', '/v1/mounts/wall')[0] == 200
        assert proxy.http('DELETE', '/v1/mounts/two')[0] == 200


LOGO = """---
summary: a picture on the video
media: video
takes: raw
gives: raw
parameters:
  left: {{type: integer, default: 16, min: 0, max: 3840}}
---
videoconvert ! gdkpixbufoverlay location={} offset-x={{left}} offset-y=16
"""


@test(timeout=60)
def a_picture_of_a_file_lies_on_the_video():
    """a stage of one's own puts a picture of a file on the video, also in a worker process"""
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/logo.launch', 'w', encoding='ascii') as file:
            file.write(LOGO.format(white_picture(f'{folder}/logo.png')))
        logo = {'upstream': f'file://{clip("small.webm")}', 'pipeline': ['pull', {'logo': {'left': '80'}}, SMALL],
                'start-timeout': '30s'}
        with Controlled({'/logo': logo}, stages=folder, isolate='yes') as proxy:
            # 160x120, scaled to 640x360.
            assert light(proxy.url('/logo'), '200:150:340:60')[0] > 220


CAMERAS = 'mounts:\n  /one: {upstream: rtsp://192.0.2.1/a}\n  /two: {upstream: rtsp://192.0.2.2/a}\n'
STAGE = '---\nsummary: two pictures\nmedia: video\ntakes: raw\ngives: raw\ninputs: 2\n---\n'


@test
def wrong_inputs_are_refused_at_their_place():
    """--check-config names the line and the column of inputs that cannot be"""
    for mount, place, text in (
            ('inputs: [/one, /three]\n    pipeline: [pull, mix]', '4:3', 'inputs: there is no mount /three'),
            ('inputs: [/one, /wall]\n    pipeline: [pull, mix]', '4:3', 'the mount reads from itself: /wall, /wall'),
            ('inputs: [/one, /two]', '4:3', 'no stage of the pipeline takes several mounts'),
            ('inputs: [/one]\n    pipeline: [pull, mix]', '4:3', 'stage mix: takes the media of 2 or more mounts'),
            ('upstream: rtsp://192.0.2.3/a\n    pipeline: [pull, mix]', '4:3', 'set inputs: [/CAM1, /CAM2]'),
            ('inputs: [/one, two]\n    pipeline: [pull, mix]', '5:20', '"two" is not a valid path'),
            ('inputs: [/one, /two]\n    upstream: rtsp://192.0.2.3/a', '5:13', 'set upstream or inputs, not both'),
            ('inputs: [/one, /two, /one]\n    pipeline: [pull, picture-in-picture, transcode]', '4:3',
             'stage picture-in-picture takes at most 2, but the mount has 3'),
            ('inputs: [/one, /two]\n    pipeline: [pull, picture-in-picture]', '4:3',
             'stage picture-in-picture: gives raw video')):
        out, status = said(f'{CAMERAS}  /wall:\n    {mount}\n', '--check-config')
        assert status == 2 and f'FILE:{place}: ' in out and text in out, (mount, out)
    out, status = said(f'{CAMERAS}  /wall:\n    inputs: [/one, /two]\n    pipeline: [pull, mix, opus]\n', '--explain', '/wall')
    assert status == 0 and '# Of the stages, input0 is /one, input1 is /two; each is decoded.' in out, out


@test
def wrong_references_to_inputs_are_refused_at_their_place():
    """a stage that refers to an input it has not got, leaves one out, or has two outputs is refused"""
    wall = f'{CAMERAS}  /wall:\n    inputs: [/one, /two]\n    pipeline: [pull, pair, transcode]\n'
    for text, words in (
            ('input0. ! c.\n  input2. ! c.\nfunnel name=c', 'pair.launch:9:3: there is no input2'),
            ('input0. ! identity', 'pair.launch:8:1: the stage does not use input1'),
            ('input0. ! c. input1. ! identity name=lost funnel name=c', 'FILE:4:3: pipeline: stage pair: the stage has two outputs: '
             'that of lost goes nowhere'),
            ('input0. ! c. input1. ! c. input1. ! c. funnel name=c', 'FILE:4:3: ')):
        with tempfile.TemporaryDirectory() as folder:
            with open(f'{folder}/pair.launch', 'w', encoding='ascii') as file:
                file.write(STAGE + text + '\n')
            out, status = said(wall, '--check-config', '--stages', folder)
        assert status == 2 and words in out, (text, out)


if __name__ == '__main__':
    run()
