# SPDX-License-Identifier: LGPL-2.1-or-later
"""HLS of streams with layers: each variant has the frames of its layers, and says what they are. So has
each transport stream."""

import http.client
import os
import pathlib
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache

from hlsweb import FOLDER, Web, variants
from proxy import wait_until
from svcfile import GROUP, PICTURES, SIZES, SVC, pictures, reference, spatial_of, temporal_of, units
from tap import SLOWER, Skip, run, test

RATE = 60  # pictures a second, so that a group is a segment of a second
TIMES = 20  # the file in a clip
HEVC_GROUP, HEVC_SECONDS = 30, 40


def convert(*words):
    """Runs FFmpeg, which complains about the parameter sets of layers that it does not know. Reports whether it succeeds."""
    return subprocess.run(['ffmpeg', '-y', '-v', 'fatal', *words], check=False).returncode == 0


@lru_cache
def svc_clip():
    """Returns an MP4 with the layers of SVC, over and over. FFmpeg changes no NAL unit."""
    long, path = (os.path.join(FOLDER.name, f'svc.{suffix}') for suffix in ('264', 'mp4'))
    pathlib.Path(long).write_bytes(SVC.read_bytes() * TIMES)
    assert convert('-r', str(RATE), '-f', 'h264', '-i', long, '-c', 'copy', path)
    return path


@lru_cache
def svc_frames(spatial):
    """Returns the hashes of the pictures of one spatial layer of SVC."""
    with tempfile.TemporaryDirectory() as directory:
        return reference(pathlib.Path(directory), spatial)


@lru_cache
def hevc_clip():
    """Returns an MP4 of H.265 with two temporal layers, and its lower layer as a file of NAL units."""
    path, whole, base = (os.path.join(FOLDER.name, name) for name in ('hevc.mp4', 'hevc.265', 'base.265'))
    for layers in '1', '2':  # versions of x265 differ
        if not convert('-f', 'lavfi', '-i', f'testsrc2=size=160x90:rate=30:duration={HEVC_SECONDS}', '-c:v', 'libx265',
                       '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-tag:v', 'hvc1', '-x265-params',
                       f'keyint={HEVC_GROUP}:scenecut=0:bframes=3:b-adapt=0:open-gop=0:temporal-layers={layers}:'
                       'log-level=none', path):
            continue
        assert convert('-i', path, '-c', 'copy', whole)
        every = list(units(pathlib.Path(whole).read_bytes()))
        lower = [unit for unit in every if unit[1] & 7 == 1]
        if len(lower) < len(every):
            pathlib.Path(base).write_bytes(b''.join(b'\0\0\0\1' + unit for unit in lower))
            return path, base
    raise Skip('x265 makes no temporal layers')


def frames(url, *options):
    """Returns the hashes of the pictures that ffmpeg shows."""
    done = subprocess.run(['ffmpeg', '-v', 'error', '-i', url, *options, '-pix_fmt', 'yuv420p', '-fps_mode', 'passthrough',
                           '-f', 'framemd5', '-'], capture_output=True, text=True, timeout=120 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return [each.split(',')[5].strip() for each in done.stdout.splitlines() if not each.startswith('#')]


def check_frames(got, wanted, group):
    """Checks that these are pictures of a loop, all of them in their order, from the start of a group."""
    starts = [at for at in range(0, len(wanted), group) if wanted[at] == got[0]]
    assert len(starts) == 1, starts
    loop = [wanted[(starts[0] + n) % len(wanted)] for n in range(len(got))]
    assert got == loop, [n for n, (a, b) in enumerate(zip(got, loop)) if a != b]


def bits_of(spatial, temporal, group):
    """Returns the bits a second of one spatial layer and the temporal layers up to one, in a group of the file."""
    whole = pictures()[0][group * GROUP:][:GROUP]
    return 8 * sum(len(unit) for picture in whole if temporal_of(picture[0]) <= temporal for unit in picture
                   if spatial_of(unit) == spatial and unit[0] & 31 != 14)


def layered(*renditions, **mount):
    return Web(f'file://{svc_clip()}', {'renditions': list(renditions), **mount})


def sizes(listed):
    return [each['RESOLUTION'] for each, _ in listed]


def check_variant(proxy, variant, spatial, temporal, wanted):
    """Checks a variant of which the frames of all temporal layers are known."""
    said, uri = variant
    step = 1 << 2 - temporal
    assert said['RESOLUTION'] == '{}x{}'.format(*SIZES[spatial]), said
    assert said['FRAME-RATE'] == f'{RATE / step:.3f}', said
    # Baseline, at the level of the layer's parameter set.
    assert re.fullmatch(f'"avc1.42[ce]0{(13, 30, 31)[spatial]:02x}"', said['CODECS']), said
    rates = [bits_of(spatial, temporal, group) for group in range(PICTURES // GROUP)]
    assert min(rates) < int(said['AVERAGE-BANDWIDTH']) < 1.1 * max(rates) + 20000, (said, rates)
    got = frames(f'{proxy.web}/hls/cam/{uri}', '-frames:v', str(2 * GROUP // step))
    assert len(got) == 2 * GROUP // step, len(got)
    check_frames(got, wanted[::step], GROUP // step)


@test(timeout=120)
def variants_have_the_frames_of_their_layers():
    """H.264: each variant is whole, and its size, rate, codec and frame rate are those of its layers"""
    shown = [svc_frames(spatial) for spatial in range(3)]
    with layered('layers=1.0.*', 'layers=0.0.1', 'layers=*.*.0') as proxy:
        listed, layers = variants(proxy, 'plain.m3u8'), [(2, 2), (1, 2), (0, 1), (2, 0)]
        assert len(listed) == len(layers), listed
        with ThreadPoolExecutor() as pool:
            checks = [pool.submit(check_variant, proxy, variant, spatial, temporal, shown[spatial])
                      for variant, (spatial, temporal) in zip(listed, layers)]
            for each in checks:
                each.result()


@test(timeout=60)
def temporal_layers_of_h265_make_variants():
    path, base = hevc_clip()
    shown = [frames(path), frames(base)]
    with Web(f'file://{path}', {'renditions': ['layers=0.0.0']}) as proxy:
        listed = variants(proxy, 'plain.m3u8')
        assert sizes(listed) == ['160x90'] * 2, listed
        assert int(listed[1][0]['BANDWIDTH']) < int(listed[0][0]['BANDWIDTH']), listed
        for (said, uri), wanted in zip(listed, shown):
            group = len(wanted) // HEVC_SECONDS
            got = frames(f'{proxy.web}/hls/cam/{uri}', '-frames:v', str(2 * group))
            print(f'# {group} frames a second,', said['FRAME-RATE'])
            assert len(got) == 2 * group, len(got)
            check_frames(got, wanted, group)


@test(timeout=120)
def transport_streams_have_the_frames_of_their_layers():
    """over HTTP-TS, those of the URL, but not more than the mount allows"""
    shown = [svc_frames(spatial) for spatial in range(2)]
    with layered(layers='1.0.*') as proxy, ThreadPoolExecutor() as pool:
        asked = {'': (1, 1), '?layers=0.0.1': (0, 2), '?layers=2.0.0': (1, 4)}
        got = {query: pool.submit(frames, f'{proxy.web}/ts/cam{query}', '-frames:v', str(2 * GROUP // step))
               for query, (_, step) in asked.items()}
        for query, (spatial, step) in asked.items():
            assert len(got[query].result()) == 2 * GROUP // step, query
            check_frames(got[query].result(), shown[spatial][::step], GROUP // step)


@test(timeout=60)
def a_url_and_the_mount_choose_layers():
    with layered('layers=0.0.*', 'layers=2.0.1', layers='1.0.*') as proxy:
        assert sizes(variants(proxy)) == ['640x360', '320x180', '640x360']
        assert sizes(variants(proxy, 'index.m3u8?layers=0.0.1')) == ['320x180']
        assert sizes(variants(proxy, 'index.m3u8?layers=2.0.1')) == ['640x360']
        for query in 'layers=1', 'layers=8.0.0', 'layers=0.0.0&layers=0.0.0':
            assert proxy.fetch(f'/hls/cam/index.m3u8?{query}')[0] == 404, query


@test(timeout=60)
def readers_cannot_choose_layers_with_adapt_off():
    with layered('layers=0.0.*', adapt='off') as proxy:
        assert sizes(variants(proxy)) == ['1280x720', '320x180']
        assert proxy.fetch('/hls/cam/index.m3u8?layers=0.0.0')[0] == 404


@test(timeout=90)
def choices_of_layers_count_for_each_outlet():
    """each choice of layers over HTTP-TS and HLS counts in max-presentations"""
    full = 'max-presentations: 2 presentations with choices are running already'
    with layered(**{'max-presentations': 2}) as proxy, ExitStack() as stack:
        def ask(query):
            connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=30)
            stack.callback(connection.close)
            connection.request('GET', f'/ts/cam{query}')
            return connection, connection.getresponse()

        last, answers = None, []
        for layers in '0.0.0', '1.0.1':
            last, answer = ask(f'?layers={layers}')
            answers.append(answer)
            assert answer.status == 200, (layers, answer.status)
        assert ask('')[1].status == 200 # no choice
        _, refused = ask('?layers=0.0.1')
        body = refused.read().decode()
        assert refused.status == 503 and full in body, (refused.status, body)
        status, _, body = proxy.fetch('/hls/cam/index.m3u8?layers=0.0.1')
        assert status == 503 and full in body.decode(), (status, body)
        answers[-1].close()
        last.close()
        wait_until(lambda: proxy.fetch('/hls/cam/index.m3u8?layers=0.0.1')[0] == 200, 10,
                   'the choice of the reader that has left is free')
        assert ask('?layers=2.0.1')[1].status == 503


if __name__ == '__main__':
    run()
