# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers get the rendition of a mount that their line carries, and see one stream."""

import json
import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager

from networks import Wide, lines
from proc import Proc
from proxy import wait_until
from sanitized import stock_environment
from tap import SLOWER, run, test
from webrtcproxy import folder, program

# Noise takes all of the rate. The camera sends a keyframe each second, whoever asks.
CAMERA = ('launch: videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=320,height=180,framerate=25/1 ! '
          'svcenc spatial-layers=1 temporal-layers=1 simulcast=true layer-bitrates=2500000 gop-size=25 ! h264parse ! '
          'rtph264pay name=pay0 aggregate-mode=zero-latency')
LOWER = 'size=160x90&rate=300k&keys=1s'
MIDDLE = 'size=240x136&rate=900k&keys=1s'
MOUNT = {'choices': {'transcode': ['size', 'rate', 'keys']}, 'renditions': [MIDDLE, LOWER], 'linger': '500ms'}


def states(proxy):
    """What the API says of the readers' lines."""
    return [(each['layers'] or {}).get('line') or {} for each in proxy.readers()]


def state(proxy):
    """What it says of the only reader's line, or {}."""
    return (states(proxy) or [{}])[0]


def wait_for_estimate(proxy):
    wait_until(lambda: state(proxy).get('state') == 'clear', 30, 'an estimate of the line')


def encoders(proxy):
    """The forms of the mount that run, beside its own."""
    urls = [each['url'] for each in proxy.get('/v1/mounts/cam')['presentations'] if each['state'] != 'idle']
    return sorted(url.split('?')[1] for url in urls if '?' in url)


@contextmanager
def reading(client, proxy, *words, query=''):
    """Reads until the end of the block, and leaves the results in the list that it yields."""
    results = []
    with Proc(*client.words, program(), 'read', '--twcc', '--json', '--duration', '300', *words,
              f'http://{client.address}:{proxy.web_port}/cam/whep{query}') as pion:
        yield results
        os.kill(pion.pid, signal.SIGINT)
        pion.wait_for_line(r'^\[', 30)
    results += json.loads(next(each for each in pion.lines if each.startswith('[')))


def decode(path):
    """Returns how many pictures ffmpeg makes of a file, and what it complains of."""
    done = subprocess.run(['ffmpeg', '-v', 'warning', '-f', 'h264', '-i', path, '-f', 'framehash', '-fps_mode', 'passthrough', '-'],
                          check=True, timeout=60 * SLOWER, capture_output=True, text=True)
    return sum(line[0] != '#' for line in done.stdout.splitlines()), done.stderr


@test(timeout=180)
def a_reader_follows_its_line():
    """down to a rendition and up again: no number is missing, no timestamp goes back, and ffmpeg decodes all"""
    saved = os.path.join(folder().name, 'saved.264')
    with lines(1) as (client,), Wide(CAMERA, mount=MOUNT) as proxy:
        with reading(client, proxy, '--save', saved) as results:
            wait_for_estimate(proxy)
            assert state(proxy)['rendition'] is None and encoders(proxy) == [], (state(proxy), encoders(proxy))
            for _ in range(2):
                client.narrow(700e3, '20s')  # nothing is lost
                wait_until(lambda: state(proxy).get('rendition') == LOWER, 30, f'the lower rendition: {state(proxy)}')
                assert state(proxy)['gets'] in ('rendition', 'keyframes'), state(proxy)
                assert encoders(proxy) == [LOWER], encoders(proxy)
                assert proxy.readers()[0]['dropped'] > 0  # keyframes only, until the encoder had begun
                client.narrow(20e6, '20s')
                wait_until(lambda: state(proxy).get('gets') == 'layers' and not state(proxy)['rendition'], 60,
                           f'the own stream: {state(proxy)}')
                assert state(proxy)['reason'] == 'its line has carried more', state(proxy)
                wait_until(lambda: not encoders(proxy), 10, 'the encoders end')
    track = results[0]['tracks'][0]
    print(f'# {track}')
    assert track['lost'] == track['ts_backward'] == track['broken'] == 0, track
    pictures, complaints = decode(saved)
    assert pictures == track['pictures'] > 100 and not complaints, (pictures, complaints)


@test(timeout=180)
def a_reader_over_rtsp_follows_its_line():
    """one that gives feedback on each packet: GStreamer's, of which no packet is missing, and ffmpeg decodes all"""
    saved = os.path.join(folder().name, 'rtsp.264')
    with lines(1) as (client,), Wide(CAMERA, mount=MOUNT) as proxy:
        url = f'rtsp://{client.address}:{proxy.port}/cam?feedback=transport-cc'
        with Proc(*client.words, 'gst-launch-1.0', '-q', '-e', 'rtspsrc', f'location={url}', 'protocols=udp', 'latency=5000',
                  '!', 'rtph264depay', '!', 'video/x-h264,stream-format=byte-stream,alignment=au', '!', 'filesink',
                  f'location={saved}', env=stock_environment()) as player:
            wait_for_estimate(proxy)
            client.narrow(700e3, '20s')
            wait_until(lambda: state(proxy).get('rendition') == LOWER, 30, lambda: f'{state(proxy)}')
            assert encoders(proxy) == [LOWER], encoders(proxy)
            client.narrow(20e6, '20s')
            wait_until(lambda: state(proxy).get('gets') == 'layers' and not state(proxy)['rendition'], 60,
                       lambda: f'{state(proxy)}')
            wait_until(lambda: not encoders(proxy), 10, 'the encoders end')
            packets = proxy.readers()[0]['packets']
            wait_until(lambda: proxy.readers()[0]['packets'] > packets + 500, 20, 'more of the own stream')
            wait_until(lambda: proxy.readers()[0]['loss'], 20, 'a report')
            assert proxy.readers()[0]['loss']['packets'] == 0, proxy.readers()[0]
            player.signal(signal.SIGINT)
            player.wait(20)
    pictures, complaints = decode(saved)
    assert pictures > 100 and not complaints, (pictures, complaints)


@test(timeout=180)
def readers_of_many_lines_share_encoders():
    """each reader has what its own line carries, an encoder runs once for all of its readers, and nobody leaves"""
    rates = 20e6, 1.5e6, 1.5e6, 600e3, 600e3
    with lines(len(rates)) as clients, Wide(CAMERA, mount=MOUNT) as proxy, ExitStack() as stack:
        for client, rate in zip(clients, rates):
            client.narrow(rate)
            stack.enter_context(reading(client, proxy))
        wait_until(lambda: sorted(str(each.get('rendition')) for each in states(proxy))
                   == ['None', LOWER, LOWER, MIDDLE, MIDDLE], 60, lambda: f'{states(proxy)}')
        assert encoders(proxy) == [LOWER, MIDDLE], encoders(proxy)
        stack.close()
        wait_until(lambda: not encoders(proxy), 10, 'the encoders end')


@test(timeout=120)
def who_asks_for_a_certain_form_keeps_it():
    with lines(1) as (client,), Wide(CAMERA, mount=MOUNT) as proxy:
        client.narrow(400e3)
        with reading(client, proxy, query='?size=320x180&rate=1M'):
            wait_until(lambda: state(proxy).get('gets') == 'keyframes', 30, lambda: f'keyframes only: {state(proxy)}')
            assert encoders(proxy) == ['size=320x180&rate=1M'], encoders(proxy)


@test(timeout=120)
def a_rendition_that_cannot_run_is_left_out():
    """its readers get less of the mount's own stream, and the log says why"""
    with lines(1) as (client,), Wide(CAMERA, mount={**MOUNT, 'renditions': [LOWER], 'max-presentations': 1}) as proxy:
        client.narrow(700e3)
        with Proc(*client.words, program(), 'read', '--duration', '100', f'http://{client.address}:{proxy.web_port}/cam/whep?size=64x64'):
            wait_until(lambda: encoders(proxy) == ['size=64x64'], 20, 'another form runs')
            with reading(client, proxy):
                proxy.wait_for_line(r'mount /cam: readers do not get the rendition size=160x90\S*: .*max-presentations', 30)
                wait_until(lambda: any(each.get('gets') == 'keyframes' for each in states(proxy)), 30, lambda: f'{states(proxy)}')
                assert not any(each.get('rendition') for each in states(proxy)), states(proxy)


@test(timeout=120)
def renditions_change_under_readers():
    """a reader of a rendition that is no longer one gets the own stream, or another"""
    with lines(1) as (client,), Wide(CAMERA, mount=MOUNT) as proxy:
        with reading(client, proxy) as results:
            wait_for_estimate(proxy)
            client.narrow(700e3, '20s')
            wait_until(lambda: state(proxy).get('rendition') == LOWER, 30, lambda: f'{state(proxy)}')
            other = 'size=128x72&rate=200k&keys=1s'
            done = proxy.http('PATCH', '/v1/mounts/cam', {'renditions': [other]}, {'Content-Type': 'application/json'})
            assert done[0] == 200, done
            wait_until(lambda: state(proxy).get('rendition') == other, 60, lambda: f'{state(proxy)}')
            wait_until(lambda: encoders(proxy) == [other], 10, lambda: f'{encoders(proxy)}')
        track = results[0]['tracks'][0]
        assert track['lost'] == track['ts_backward'] == 0, track


if __name__ == '__main__':
    run()
