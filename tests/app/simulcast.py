# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishers over WebRTC who send their pictures in several sizes at once (simulcast)."""

import json
import os
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
from webrtcproxy import folder, program
from whipproxy import Whip, clip, pion, told

SIZES = {'h': '640x360', 'm': '320x180', 'l': '160x90'}
RATES = {'h': '800k', 'm': '300k', 'l': '100k'}
JOIN = 30  # pictures; those that a reader begins with may be from the past, and their times closer to each other
LIVE = {'choices': {'pull': ['simulcast']}, 'renditions': ['simulcast=2', 'simulcast=3']}


@lru_cache
def layer(name, codec='h264'):
    """The files of a layer."""
    picture, sound = clip(f'testsrc2=size={SIZES[name]}:rate=25', rate=RATES[name])
    if codec == 'vp8':
        picture, source = os.path.join(folder().name, f'{name}.ivf'), picture
        subprocess.run(['ffmpeg', '-v', 'error', '-r', '25', '-i', source, '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8',
                        '-auto-alt-ref', '0', '-g', '25', '-b:v', RATES[name], picture], check=True, stdin=subprocess.DEVNULL,
                       timeout=60 * SLOWER)
    return picture, sound


def simulcast(proxy, *words, others=('m', 'l'), codec='h264'):
    return pion(proxy, *words, *(word for name in others for word in ('--layer', f'{name}={layer(name, codec)[0]}')),
                files=layer('h', codec))


def variants_of(proxy):
    lines = proxy.fetch('/hls/live/index.m3u8')[2].decode().splitlines()
    return [attributes(line) for line in lines if line.startswith('#EXT-X-STREAM-INF')]


@lru_cache
def known(codec):
    """Returns {hash of a picture: (layer, its number)}."""
    return {digest: (name, n) for name in SIZES
            for n, (_, digest) in enumerate(frames(layer(name, codec)[0], seconds=10)['video'])}


def check(times, codec='h264'):
    """Checks that what a reader got has no broken picture, and that each one comes when it is due, whatever its layer.
    Returns the layers, as they follow on each other."""
    shown = [(time, *known(codec).get(digest, (None, 0))) for time, digest in times]
    runs = [(name, len(list(group))) for name, group in groupby(name for _, name, _ in shown)]
    print(f'# {runs}')
    assert None not in dict(runs), shown
    # A clip has 5 s, so a picture's number says when it is due but for that.
    first, _, begin = shown[0]
    late = [(float(time - first) - (n - begin) / 25 + 2.5) % 5 - 2.5 for time, _, n in shown[JOIN:]]
    odd = [(n, one, other) for n, (one, other) in enumerate(zip(late, late[1:])) if abs(other - one) > 0.01]
    assert max(late) - min(late) < 0.1, odd
    return [name for name, _ in runs]


def watch(proxy, path, seconds=3, codec='h264'):
    """Returns the layers that a reader over RTSP gets."""
    got = frames(proxy.url(path), '-rtsp_transport', 'tcp', seconds=seconds)
    assert len(got['audio']) > 40 * seconds, len(got['audio'])
    return check(got['video'], codec)


def watch_over_webrtc(proxy, path, codec, seconds=3):
    """Checks that a reader over WebRTC gets all that is sent to it. Returns the bytes of its pictures."""
    done = subprocess.run([program(), 'read', '--json', '--duration', str(seconds), '--codecs', f'{codec},opus', proxy.web + path],
                          check=True, timeout=60 * SLOWER, capture_output=True, text=True)
    result, = json.loads(done.stdout)
    tracks = {track['kind']: track for track in result['tracks']}
    print(f'# {tracks["video"]}')
    assert tracks['video']['codec'].lower() == f'video/{codec}', result
    assert tracks['video']['units'] > 20 * (seconds - 1) and tracks['audio']['units'] > 40 * (seconds - 1), result
    assert not any(track['lost'] or track['ts_backward'] or track['broken'] for track in tracks.values()), result
    return tracks['video']['bytes']


def check_layers(proxy, codec='h264'):
    for path, name in ('/live', 'h'), ('/live?simulcast=2', 'm'), ('/live?simulcast=3', 'l'):
        assert watch(proxy, path, codec=codec) == [name], path


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


def check_coming_and_going(codec):
    with Whip(LIVE) as proxy, simulcast(proxy, '--silent', 'm=0-3', '--silent', 'h=0-6', '--silent', 'h=9-13', codec=codec):
        wait_for_layer(proxy, 'l')
        with ThreadPoolExecutor(3) as pool:
            over_webrtc = pool.submit(watch_over_webrtc, proxy, '/live/whep', codec, 16)
            both = [pool.submit(watch, proxy, path, 16, codec) for path in ('/live', '/live?simulcast=2')]
            assert both[0].result() == ['l', 'm', 'h', 'm', 'h'], proxy.lines
            assert both[1].result() == ['l', 'm']
            over_webrtc.result()
        for name in 'mh':
            assert proxy.wait_for_line(rf' publisher \S+: /live has layer {name} now')


@test(timeout=120)
def readers_go_on_while_layers_come_and_go():
    check_coming_and_going('h264')


@test(timeout=120)
def readers_go_on_while_layers_of_vp8_come_and_go():
    check_coming_and_going('vp8')


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


def check_layers_over_webrtc(proxy, codec):
    rates = [watch_over_webrtc(proxy, f'/live/whep{query}', codec) for query in ('', '?simulcast=2', '?simulcast=3')]
    assert rates[0] > 1.5 * rates[1] and rates[1] > 1.5 * rates[2], rates


def check_requests(proxy, publisher, codec, name='m'):
    """Checks that requests of readers of the second layer reach that one, whose name this is, and no other one."""
    asked = []
    for words in [], ['--pli', '500']:
        before = len(publisher.lines)
        subprocess.run([program(), 'read', '--duration', '4', '--codecs', f'{codec},opus', *words,
                        f'{proxy.web}/live/whep?simulcast=2'], check=True, timeout=60 * SLOWER, stdout=subprocess.DEVNULL)
        asked.append(Counter(line.split()[-1] for line in publisher.lines[before:] if line.startswith('KEY ')))
    print(f'# {asked}')
    assert asked[1][name] > asked[0][name] and list(asked[1]) == [name], asked


@test(timeout=120)
def a_reader_over_webrtc_gets_the_layer_that_it_names():
    with Whip(LIVE) as proxy, simulcast(proxy):
        wait_for_layer(proxy, 'h')
        check_layers_over_webrtc(proxy, 'h264')


@test(timeout=120)
def the_requests_of_readers_reach_the_layer_that_they_read():
    with Whip(LIVE) as proxy, simulcast(proxy) as publisher:  # with a keyframe each second: the proxy asks for none by itself
        wait_for_layer(proxy, 'h')
        check_requests(proxy, publisher, 'h264')


@test(timeout=180)
def layers_of_vp8_are_streams_too():
    high, middle, low = (layer(name, 'vp8') for name in 'hml')
    with Whip(LIVE) as proxy, pion(proxy, '--layer', f'z={high[0]}', '--layer', f'a={middle[0]}', files=low) as publisher:
        wait_for_layer(proxy, 'z')
        check_layers(proxy, 'vp8')
        check_layers_over_webrtc(proxy, 'vp8')
        check_requests(proxy, publisher, 'vp8', 'a')


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
    for (const track of stream.getTracks()) {
      const line = peer.addTransceiver(track, { direction: 'sendonly', streams: [stream],
                                                sendEncodings: track.kind === 'video' ? layers : [{}] });
      if (track.kind === 'video')
        line.setCodecPreferences(RTCRtpSender.getCapabilities('video').codecs.filter((each) =>
            ['video/CODEC', 'video/rtx'].includes(each.mimeType)));
    }
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
def chromium(proxy, codec='H264'):
    """A browser that publishes three layers."""
    with Chromium('--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream') as browser:
        browser.open(f'{proxy.web}/')
        browser.wait('location.port && document.readyState === "complete"', 30, 'the page')
        assert browser.run(PUBLISH.replace('CODEC', codec)) == 201
        try:
            wait_for_layer(proxy, 'h', 40)
            yield browser
        finally:
            print(f'# {browser.run(SENT)}')


def check_three_streams(codec):
    with Whip(LIVE) as proxy, chromium(proxy, codec) as browser:
        assert f' {codec}/90000' in browser.run('peer.remoteDescription.sdp')
        for path, wanted in ('/live', 960), ('/live?simulcast=2', 480), ('/live?simulcast=3', 240):
            got = widths(proxy, path, 3)
            assert len(got) > 30 and {width for _, width in got} == {wanted}, (path, got)


def check_layers_that_stop(codec):
    with Whip(LIVE) as proxy, chromium(proxy, codec) as browser, ThreadPoolExecutor(1) as pool:
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


@test(timeout=180)
def three_layers_of_chromium_are_three_streams():
    check_three_streams('H264')


@test(timeout=180)
def three_layers_of_vp8_of_chromium_are_three_streams():
    check_three_streams('VP8')


@test(timeout=180)
def a_layer_that_chromium_stops_breaks_no_reader():
    check_layers_that_stop('H264')


@test(timeout=180)
def a_layer_of_vp8_that_chromium_stops_breaks_no_reader():
    check_layers_that_stop('VP8')


run()
