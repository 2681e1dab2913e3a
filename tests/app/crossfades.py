# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount that goes from one of two mounts to the other at a time that the API names."""

import math
import tempfile
import time
from contextlib import contextmanager

from brightness import course
from control import Controlled, wait_for_packets
from lipsync import decode, flashes, lateness
from livets import CLIPS, clip
from loads import Load
from proc import free_port
from proxy import said
from tap import run, test

FRAMES = 25  # a second
VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', str(FRAMES), '-r', str(FRAMES),
         '-pix_fmt', 'yuv420p']
# Dark with a loud tone of 500 Hz; bright, and narrower, with one of 2 kHz.
CLIPS['dark.mp4'] = ['-t', '60', '-s', '320x180', '-vf', 'lutyuv=y=50:u=128:v=128', '-filter_complex',
                     'sine=500:sample_rate=48000', *VIDEO, '-c:a', 'aac']
CLIPS['bright.mp4'] = ['-t', '60', '-s', '240x180', '-vf', 'lutyuv=y=200:u=128:v=128', '-filter_complex',
                       'sine=2000:sample_rate=48000', *VIDEO, '-c:a', 'aac']
DARK, BRIGHT = 50, 200
FADE = 2  # s
SIZE = {'size': '320x180', 'fps': FRAMES}
QUICK = {'transport': 'tcp', 'linger': '500ms', 'start-timeout': '20s'}


def fading(**values):
    """The stages, with these parameters of both fades."""
    return ['pull', {'cross-fade': {**SIZE, **values}}, {'cross-fade-sound': values}, {'transcode': {'size': '320x180'}}, 'aac']


@contextmanager
def desk(one, two, **top):
    """Runs the server of two cameras, and a proxy that fades between them."""
    port = free_port()
    mounts = {
        '/one': {'upstream': f'rtsp://127.0.0.1:{port}/{one}', **QUICK},
        '/two': {'upstream': f'rtsp://127.0.0.1:{port}/{two}', **QUICK},
        '/desk': {'inputs': ['/one', '/two'], 'pipeline': fading(to='first'), 'linger': '500ms', 'start-timeout': '30s',
                  'switch-timeout': '30s'}}
    with Controlled({f'/{name}': {'upstream': f'file://{clip(name)}'} for name in {one, two}}, listen=f'127.0.0.1:{port}',
                    api='off'), Controlled(mounts, **top) as proxy:
        yield proxy


def fade(proxy, to, after):
    """Asks for a fade in `after` s, and waits until the chain that does it has taken over."""
    at = time.time() + after
    text = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at)) + f'.{int(at % 1 * 1000):03}Z'
    proxy.switch('/desk', fading(to=to, at=text, time=f'{FADE}s'))


def levels(samples, frequency, step=4800):
    """Returns the level of a tone in each tenth of a second of 48 kHz: 1 is the loudest that can be."""
    found = []
    for n in range(0, len(samples) - step, step):
        turn = 2 * math.pi * frequency / 48000
        found.append(2 / step / 32768 * abs(complex(
            sum(samples[n + i] * math.cos(turn * i) for i in range(step)), sum(samples[n + i] * math.sin(turn * i) for i in range(step)))))
    return found


def read(url, seconds):
    """Returns the light of the middle of each picture and the levels of both tones, each with times from the first picture."""
    lights, ((begin, _), *_), samples = decode(url, seconds, 'crop=100:100:110:40')
    tones = [[(begin + (n + 0.5) / 10, level) for n, level in enumerate(levels(samples, tone))] for tone in (500, 2000)]
    return lights, *tones


def share(falling, rising):
    """The share of the tone that rises, at each time that has sound: a busy machine may leave some out."""
    return [(at, up / (up + down)) for (at, down), (_, up) in zip(falling, rising) if up + down > 0.1]


def quarters(points):
    """Returns when points that go from 0 to 1 pass each quarter."""
    return [next(at for at, value in points if value > part) for part in (0.25, 0.5, 0.75)]


@test(timeout=180)
def pictures_and_sound_fade():
    """the API fades from one mount to the other and back: light and tones change evenly, together, and no packet is lost"""
    for isolate in 'no', 'yes':
        with desk('dark.mp4', 'bright.mp4', isolate=isolate) as proxy:
            with Load('--transport', 'tcp', '--duration', 600, proxy.url('/desk')) as load:
                wait_for_packets(proxy, 2 * FRAMES, '/desk')
                for to, low, high in ('second', DARK, BRIGHT), ('first', BRIGHT, DARK):
                    fade(proxy, to, 6)
                    lights, dark, bright = read(proxy.url('/desk'), 10)
                    assert abs(lights[0][1] - low) < 6 and abs(lights[-1][1] - high) < 6, (lights[0], lights[-1])
                    tones = share(*((dark, bright) if to == 'second' else (bright, dark)))
                    assert len(tones) > 70 and tones[0][1] < 0.05 and tones[-1][1] > 0.95, (dark, bright)
                    picture = quarters([(at, (light - low) / (high - low)) for at, light in lights])
                    sound = quarters(tones)
                    for each in picture, sound:
                        assert abs(each[2] - each[0] - FADE / 2) < 0.25, (picture, sound)
                    assert abs(sound[1] - picture[1]) < 0.25, (picture, sound, tones)
                    steps = [abs(b[1] - a[1]) for a, b in zip(lights, lights[1:])]
                    assert max(steps) < 3 * (BRIGHT - DARK) / FADE / FRAMES + 4, max(steps)
                result = load.finish()
        assert not any(result[key] for key in ('lost', 'reordered', 'duplicates')), result


@test(timeout=120)
def faded_sound_stays_with_the_picture():
    """after a fade, the sound of the first mount is within 5 ms of its picture"""
    name = flashes('flash.mp4', '-c:a', 'aac')
    with desk(name, 'dark.mp4') as proxy:
        before = lateness(proxy.url('/desk'))
        with Load('--transport', 'tcp', '--duration', 600, proxy.url('/desk')) as load:
            wait_for_packets(proxy, FRAMES, '/desk')
            fade(proxy, 'first', 1)
            after = lateness(proxy.url('/desk'))
            load.finish()
    assert abs(before) < 5 and abs(after) < 5, (before, after)


@test(timeout=60)
def a_fade_of_the_past_is_over():
    """without a time, or with one that has passed, the stage shows its mount from the start"""
    for at in {}, {'at': '2020-02-02T20:00:00+01:00'}:
        with desk('dark.mp4', 'bright.mp4') as proxy:
            status, _, answer = proxy.http('PATCH', '/v1/mounts/desk', {'pipeline': fading(to='second', time='10s', **at)})
            assert status == 200, answer
            lights = course(proxy.url('/desk'), '100:100:110:40')
            assert all(abs(light - BRIGHT) < 6 for _, light in lights), lights


CAMERAS = 'mounts:\n  /one: {upstream: rtsp://192.0.2.1/a}\n  /two: {upstream: rtsp://192.0.2.2/a}\n'
STAGE = '''---
summary: fades
media: video
takes: raw
gives: raw
inputs: 2
parameters: {{at: {{type: time}}, time: {{type: duration, default: 1s}}}}
fade: {}
---
input0. ! c. input1. ! c. compositor name=c
'''


@test
def wrong_fades_are_refused_at_their_place():
    """a time that is none, and a stage whose fade has no such property, are refused at their place"""
    for pipeline, fade_text, words in (
            ("{cross-fade: {at: tomorrow}}", '{}', 'FILE:6:40: pipeline: at: "tomorrow" is not a time; write it as 2026-12-24T20:00:00Z'),
            ('pair', '{c.sink_0::alhpa: 1 0}', 'stage pair: fade: there is no c.sink_0::alhpa'),
            ('pair', '{d.sink_0::alpha: 1 0}', 'stage pair: fade: there is no d.sink_0::alpha'),
            ('pair', '{c.sink_0::alpha: 1}', 'pair.launch:8:8: fade: expected a property with its value before and after'),
            ('pair', '{c.sink_0::alpha: 1 x}', 'pair.launch:8:8: fade: expected a property'),
            ('pair', 'alpha', 'pair.launch:8:7: fade: expected {ELEMENT.PROPERTY: BEFORE AFTER}')):
        with tempfile.TemporaryDirectory() as folder:
            with open(f'{folder}/pair.launch', 'w', encoding='ascii') as stage:
                stage.write(STAGE.format(fade_text))
            text = f'{CAMERAS}  /desk:\n    inputs: [/one, /two]\n    pipeline: [pull, {pipeline}, transcode]\n'
            out, status = said(text, '--check-config', '--stages', folder)
        assert status == 2 and words in out, (pipeline, fade_text, out)


if __name__ == '__main__':
    run()
