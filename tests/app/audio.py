# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stages opus and aac: sound in another codec, over RTSP to ffmpeg, beside untouched video."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

from lipsync import flashes, lateness
from livets import CLIPS, ENCODED, Served, clip
from tap import SLOWER, run, test

TONE = 440


def crossings(samples):
    return sum(1 for a, b in zip(samples, samples[1:]) if a < 0 <= b)


def check(clip, stage, codec, video):
    with Served(clip, mount={'pipeline': ['pull', stage]}) as proxy:
        found, said = streams(proxy)
        assert found == sorted([codec, video]), (found, said)
        heard = subprocess.run(
            ['ffmpeg', '-v', 'error', '-rtsp_transport', 'tcp', '-i', proxy.url(), '-t', '2', '-vn', '-ac', '1',
             '-ar', '48000', '-f', 's16le', '-'], capture_output=True, timeout=40 * SLOWER, check=True).stdout
        samples = memoryview(heard).cast('h')[24000:72000]  # one second
        assert len(samples) == 48000, len(samples)
        assert abs(crossings(samples) - TONE) <= 2, crossings(samples)


@test
def aac_becomes_opus():
    check('b.mp4', 'opus', 'opus', 'h264')


@test
def opus_becomes_aac():
    check('vp8.webm', 'aac', 'aac', 'vp8')


OTHERS = {'vorbis.mkv': 'libvorbis', 'flac.mkv': 'flac', 'pcm.mov': 'pcm_s16be', 'alaw.mov': 'pcm_alaw'}
CLIPS.update({name: ['-t', '12', *ENCODED[:ENCODED.index('-c:a')], '-c:a', codec] for name, codec in OTHERS.items()})
CLIPS['none.mkv'] = ['-t', '12', '-vn', '-c:a', 'flac']


def streams(proxy):
    """Returns the codecs that FFmpeg finds, and what it says."""
    done = subprocess.run(['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0',
                           proxy.url()], capture_output=True, text=True, timeout=40 * SLOWER, check=False)
    return sorted(done.stdout.split()), done.stderr


@test
def sound_without_a_form_in_rtp_is_encoded_anew():
    """a stage encodes sound that RTP cannot carry, too"""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: check(name, 'aac' if 'flac' in name else 'opus', 'aac' if 'flac' in name else 'opus', 'h264'), OTHERS))


@test
def without_a_stage_it_is_left_out():
    """without a stage, such sound is left out, with a line that says which key carries it"""
    for name, kind in ('vorbis.mkv', 'vorbis'), ('flac.mkv', 'flac'), ('pcm.mov', 'raw'):
        with Served(name) as proxy:
            found, said = streams(proxy)
            assert found == ['h264'], (name, found, said)
            proxy.wait_for_line(rf'a track is left out: RTP here has no form for audio/x-{kind}; '
                                r'with pipeline: \[pull, opus\] or \[pull, aac\], the mount carries it$')
    with Served('none.mkv') as proxy:
        found, said = streams(proxy)
        assert not found and '415' in said, (found, said)
        proxy.wait_for_line(r'down: \S+none\.mkv: the file has no track that can be relayed')


@test
def sound_stays_in_sync():
    """sound that a stage encodes anew stays within 5 ms of the picture"""
    names = flashes('flash.mp4', '-c:a', 'aac'), flashes('flash.ts', '-c:a', 'mp2')
    mounts = {f'/{stage}-{name}': {'upstream': f'file://{clip(name)}', 'pipeline': ['pull', stage],
                                   'start-timeout': '20s'} for name in names for stage in ('opus', 'aac')}
    with Served(mounts=mounts) as proxy, ThreadPoolExecutor(len(mounts)) as pool:
        late = dict(zip(mounts, pool.map(lambda path: lateness(proxy.url(path)), mounts)))
    assert all(abs(each) < 5 for each in late.values()), late


if __name__ == '__main__':
    run()
