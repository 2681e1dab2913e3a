# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishers over WebRTC who send their pictures in several sizes at once (simulcast)."""

import json
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby

from chromium import Chromium
from hlsweb import attributes
from proxy import wait_until
from sent import frames
from tap import SLOWER, run, test
from webrtcproxy import program
from whipproxy import Whip, clip, pion, told

SIZES = {'h': '640x360', 'm': '320x180', 'l': '160x90'}
RATES = {'h': '800k', 'm': '300k', 'l': '100k'}
JOIN = 30  # pictures; those that a reader begins with may be from the past, and their times closer to each other
LIVE = {'choices': {'pull': ['simulcast']}, 'renditions': ['simulcast=2', 'simulcast=3']}


def layer(name):
    """The files of a layer."""
    return clip(f'testsrc2=size={SIZES[name]}:rate=25', rate=RATES[name])


def simulcast(proxy, *words, others=('m', 'l')):
    return pion(proxy, *words, *(word for name in others for word in ('--layer', f'{name}={layer(name)[0]}')),
                files=layer('h'))


def variants_of(proxy):
    lines = proxy.fetch('/hls/live/index.m3u8')[2].decode().splitlines()
    return [attributes(line) for line in lines if line.startswith('#EXT-X-STREAM-INF')]


@lru_cache
def known():
    """Returns {hash of a picture: (layer, its number)}."""
    return {digest: (name, n) for name in SIZES for n, (_, digest) in enumerate(frames(layer(name)[0], seconds=10)['video'])}


def check(times):
    """Checks that what a reader got has no broken picture, and that each one comes when it is due, whatever its layer.
    Returns the layers, as they follow on each other."""
    shown = [(time, *known().get(digest, (None, 0))) for time, digest in times]
    runs = [(name, len(list(group))) for name, group in groupby(name for _, name, _ in shown)]
    print(f'# {runs}')
    assert None not in dict(runs), shown
    # A clip has 5 s, so a picture's number says when it is due but for that.
    first, _, begin = shown[0]
    late = [(float(time - first) - (n - begin) / 25 + 2.5) % 5 - 2.5 for time, _, n in shown[JOIN:]]
    odd = [(n, one, other) for n, (one, other) in enumerate(zip(late, late[1:])) if abs(other - one) > 0.01]
    assert max(late) - min(late) < 0.1, odd
    return [name for name, _ in runs]


def watch(proxy, path, seconds=3):
    """Returns the layers that a reader over RTSP gets."""
    got = frames(proxy.url(path), '-rtsp_transport', 'tcp', seconds=seconds)
    assert len(got['audio']) > 40 * seconds, len(got['audio'])
    return check(got['video'])


def check_layers(proxy):
    for path, name in ('/live', 'h'), ('/live?simulcast=2', 'm'), ('/live?simulcast=3', 'l'):
        assert watch(proxy, path) == [name], path


def wait_for_layer(proxy, name, seconds=20):
    wait_until(lambda: (proxy.publisher() or {}).get('layer') == name, seconds, f'layer {name}')


@test(timeout=120)
def each_layer_is_a_stream():
    with Whip(LIVE) as proxy, simulcast(proxy):
        wait_for_layer(proxy, 'h')
        check_layers(proxy)


@test(timeout=120)
def the_largest_layer_is_the_mount_in_whatever_order_they_are():
    with Whip(LIVE) as proxy, pion(proxy, '--layer', f'z={layer("h")[0]}', '--layer', f'a={layer("m")[0]}', files=layer('l')):
        wait_for_layer(proxy, 'z')
        check_layers(proxy)


@test(timeout=120)
def readers_go_on_while_layers_come_and_go():
    with Whip(LIVE) as proxy, simulcast(proxy, '--silent', 'm=0-3', '--silent', 'h=0-6', '--silent', 'h=9-13'):
        wait_for_layer(proxy, 'l')
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(watch, proxy, path, 16) for path in ('/live', '/live?simulcast=2')]
            assert both[0].result() == ['l', 'm', 'h', 'm', 'h'], proxy.lines
            assert both[1].result() == ['l', 'm']
        for name in 'mh':
            assert proxy.wait_for_line(rf' publisher \S+: /live has layer {name} now')


@test(timeout=120)
def what_is_lost_of_a_layer_comes_again():
    with Whip(LIVE) as proxy, simulcast(proxy, '--lose', '50') as publisher:
        wait_for_layer(proxy, 'h')
        check_layers(proxy)
        publisher.stop()
        assert told(publisher, 'dropped') > 5 and told(publisher, 'nacked') > 2


@test(timeout=120)
def hls_lists_all_layers_with_sound():
    with Whip(LIVE) as proxy, simulcast(proxy):
        wait_for_layer(proxy, 'h')
        wait_until(lambda: len(variants_of(proxy)) == 3, 20, 'three variants')
        found = variants_of(proxy)
        print(f'# {found}')
        assert {each['RESOLUTION'] for each in found} == set(SIZES.values()), found
        assert all('opus' in each['CODECS'].lower() for each in found), found


@test(timeout=120)
def a_reader_over_webrtc_gets_the_layer_that_it_names():
    with Whip(LIVE) as proxy, simulcast(proxy):
        wait_for_layer(proxy, 'h')
        rates = []
        for query in '', '?simulcast=2', '?simulcast=3':
            done = subprocess.run([program(), 'read', '--json', '--duration', '3', f'{proxy.web}/live/whep{query}'],
                                  check=True, timeout=60 * SLOWER, capture_output=True, text=True)
            result, = json.loads(done.stdout)
            tracks = {track['kind']: track for track in result['tracks']}
            assert tracks['video']['units'] > 40 and tracks['audio']['units'] > 100, result
            assert not any(track['lost'] or track['ts_backward'] for track in tracks.values()), result
            rates.append(tracks['video']['bytes'])
        assert rates[0] > 1.5 * rates[1] and rates[1] > 1.5 * rates[2], rates


@test(timeout=120)
def the_requests_of_readers_reach_the_layer_that_they_read():
    with Whip(LIVE) as proxy, simulcast(proxy) as publisher:  # with a keyframe each second: the proxy asks for none by itself
        wait_for_layer(proxy, 'h')
        asked = []
        for words in [], ['--pli', '500']:
            before = len(publisher.lines)
            subprocess.run([program(), 'read', '--duration', '4', *words, f'{proxy.web}/live/whep?simulcast=2'], check=True,
                           timeout=60 * SLOWER, stdout=subprocess.DEVNULL)
            asked.append(Counter(line.split()[-1] for line in publisher.lines[before:] if line.startswith('KEY ')))
        print(f'# {asked}')
        assert asked[1]['m'] > asked[0]['m'] and asked[1]['h'] == asked[1]['l'] == 0, asked


@test(timeout=120)
def another_publisher_takes_all_layers_over():
    with Whip({**LIVE, 'takeover': 'yes'}) as proxy, simulcast(proxy):
        wait_for_layer(proxy, 'h')
        with simulcast(proxy):
            proxy.wait_for_line(r' publisher \S+ out: /live: another publisher has taken the mount over')
            wait_for_layer(proxy, 'h')
            check_layers(proxy)
            with pion(proxy, files=layer('m')):
                wait_until(lambda: 'layer' not in (proxy.publisher() or {'layer': 0}), 20, 'the third publisher')
                assert watch(proxy, '/live') == ['m']


@test(timeout=60)
def a_mount_without_the_choice_takes_one_layer():
    """a mount without the choice takes one layer, also of a client that sends all of them"""
    with Whip() as proxy, simulcast(proxy):
        proxy.wait_for_publisher()
        assert 'layer' not in proxy.publisher()
        assert watch(proxy, '/live') == ['h']


@test(timeout=120)
def hls_goes_on_with_another_size():
    with Whip({'choices': LIVE['choices']}) as proxy, simulcast(proxy, '--silent', 'h=0-8', '--silent', 'm=0-4'):
        wait_for_layer(proxy, 'l')
        got = frames(f'{proxy.web}/hls/live/index.m3u8', seconds=14)
        assert len(got['audio']) > 500, len(got['audio'])
        assert check(got['video']) == ['l', 'm', 'h']


PUBLISH = """(async () => {
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 960, height: 540 }, audio: true });
    window.peer = new RTCPeerConnection();
    const layers = [{ rid: 'h' }, { rid: 'm', scaleResolutionDownBy: 2 }, { rid: 'l', scaleResolutionDownBy: 4 }];
    for (const track of stream.getTracks())
      peer.addTransceiver(track, { direction: 'sendonly', streams: [stream], sendEncodings: track.kind === 'video' ? layers : [{}] });
    await peer.setLocalDescription();
    const answer = await fetch('/live/whip', { method: 'POST', body: peer.localDescription.sdp,
                                               headers: { 'Content-Type': 'application/sdp' } });
    await peer.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
    return answer.status;
  })()"""
# The layers that are sent, with their pictures a second.
SENT = """(async () => [...(await peer.getStats()).values()].filter((each) => each.type === 'outbound-rtp' && each.kind === 'video')
    .map((each) => [each.rid, each.frameHeight, each.framesPerSecond || 0, each.nackCount, each.pliCount]))()"""
# Lets the browser send the layers whose names are in a list.
ACTIVATE = """(async () => {
    const sender = peer.getSenders().find((each) => each.track.kind === 'video');
    const parameters = sender.getParameters();
    for (const each of parameters.encodings)
      each.active = NAMES.includes(each.rid);
    await sender.setParameters(parameters);
    return 1;
  })()"""


def widths(proxy, path, seconds):
    """Returns [(time in s, width)] of the pictures that a reader over RTSP gets. FFmpeg knows no time of the first one."""
    done = subprocess.run(['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-select_streams', 'v', '-read_intervals', f'%+{seconds}',
                           '-show_entries', 'frame=best_effort_timestamp_time,width', '-of', 'csv=p=0', proxy.url(path)],
                          capture_output=True, text=True, timeout=60 * SLOWER, check=True)
    assert not done.stderr, done.stderr
    lines = [line.split(',') for line in done.stdout.split()]
    return [(float(time) if time != 'N/A' else 0, int(width)) for time, width, *_ in lines]


@contextmanager
def chromium(proxy):
    """A browser that publishes three layers."""
    with Chromium('--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream') as browser:
        browser.open(f'{proxy.web}/')
        browser.wait('location.port && document.readyState === "complete"', 30, 'the page')
        assert browser.run(PUBLISH) == 201
        try:
            wait_for_layer(proxy, 'h', 40)
            yield browser
        finally:
            print(f'# {browser.run(SENT)}')


@test(timeout=180)
def three_layers_of_chromium_are_three_streams():
    with Whip(LIVE) as proxy, chromium(proxy):
        for path, wanted in ('/live', 960), ('/live?simulcast=2', 480), ('/live?simulcast=3', 240):
            got = widths(proxy, path, 3)
            assert len(got) > 30 and {width for _, width in got} == {wanted}, (path, got)


@test(timeout=180)
def a_layer_that_chromium_stops_breaks_no_reader():
    with Whip(LIVE) as proxy, chromium(proxy) as browser, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(widths, proxy, '/live', 14)
        proxy.wait_for_line(r' reader \S+ in: /live over TCP')
        for names, name in (['l', 'm'], 'm'), (['l'], 'l'), (['l', 'm', 'h'], 'h'):
            assert browser.run(ACTIVATE.replace('NAMES', json.dumps(names)))
            wait_for_layer(proxy, name)
        got = reading.result()
        runs = [width for width, _ in groupby(width for _, width in got)]
        gaps = [b - a for (a, _), (b, _) in zip(got, got[1:])]
        print(f'# {runs} {len(got)} {max(gaps)}')
        assert runs in ([960, 480, 240, 960], [960, 480, 240, 480, 960]), runs
        assert min(gaps[1:]) > 0 and max(gaps) < 2 * SLOWER, (min(gaps), max(gaps))


run()
