# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles of each format: FFmpeg gets the pictures and the sound that are in the file."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from films import Player, ffmpeg, hashes
from tap import run, test
from title_proxy import TitleProxy

SECONDS, FPS = 4, 25
H264 = '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', str(FPS)
MPEG1 = '-c:v', 'mpeg1video', '-b:v', '2M', '-bf', '2', '-g', '12'
MPEG2 = '-c:v', 'mpeg2video', '-b:v', '3M', '-bf', '2', '-g', '12'
VIDEO = {
    'h264.3gp': (*H264, '-c:a', 'aac'),
    'h264.flv': (*H264, '-c:a', 'aac'),
    'h264.avi': (*H264, '-c:a', 'libmp3lame'),
    'silent.flv': (*H264, '-an'),
    'fragments.mp4': (*H264, '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov'),
    '2.ts': (*MPEG2, '-c:a', 'mp2'),
    '2.mkv': (*MPEG2, '-c:a', 'mp2'),
    '1.mpg': (*MPEG1, '-c:a', 'mp2', '-f', 'mpeg'),
    '2.mpg': (*MPEG2, '-c:a', 'mp2', '-f', 'vob'),
    'silent.mpg': (*MPEG2, '-an', '-f', 'vob'),
}
AUDIO = {
    'aac.m4a': ('-c:a', 'aac'),
    'adts.aac': ('-c:a', 'aac'),
    'opus.mka': ('-c:a', 'libopus'),
    'opus.webm': ('-c:a', 'libopus'),
    'opus.ogg': ('-c:a', 'libopus'),
    'tags.mp3': ('-c:a', 'libmp3lame', '-metadata', 'title=tone'),
    'bare.mp3': ('-c:a', 'libmp3lame', '-id3v2_version', '0', '-write_xing', '0'),
}


@lru_cache
def folder():
    made = tempfile.TemporaryDirectory()
    picture, sound = (('-f', 'lavfi', '-i', each) for each in (f'testsrc2=s=320x240:r={FPS}', 'sine=440:r=48000'))
    for name, words in VIDEO.items():
        ffmpeg(*picture, *sound, '-t', str(SECONDS), '-pix_fmt', 'yuv420p', *words, os.path.join(made.name, name))
    for name, words in AUDIO.items():
        ffmpeg(*sound, '-t', str(SECONDS), *words, os.path.join(made.name, name))
    return made


def check_video(proxy, name):
    got, source = hashes(proxy.url(f'/films/{name}'), '-rtsp_transport', 'tcp'), hashes(f'{folder().name}/{name}')
    assert len(source) >= SECONDS * FPS - 1, (name, len(source))
    assert got == source[:len(got)] and len(got) >= len(source) - 3, (name, len(got), len(source))
    with Player(proxy, name) as player:
        assert abs(player.play(Range='npt=2-') - 2) < 2.6, name
        player.read_to_end()


def check_audio(proxy, name):
    got = hashes(proxy.url(f'/films/{name}'), '-rtsp_transport', 'tcp', kind='a')
    source = hashes(f'{folder().name}/{name}', kind='a')
    assert len(got) >= len(source) - 4, (name, len(got), len(source))


def check_all(isolate):
    with TitleProxy({'upstream': f'file://{folder().name}/'}, isolate=isolate) as proxy, \
            ThreadPoolExecutor(6) as pool:
        for done in [*(pool.submit(check_video, proxy, name) for name in VIDEO),
                     *(pool.submit(check_audio, proxy, name) for name in AUDIO)]:
            done.result()


@test
def each_format_plays():
    """each format plays with all its pictures and its sound, and from a position"""
    check_all('auto')


@test
def each_format_plays_without_workers():
    """so it does without worker processes"""
    check_all('no')


@test
def sound_without_a_form_is_refused():
    """files whose sound has no form in RTP are refused, and the log says why"""
    form = 'the file has no track that can be served: track 0: RTP here has no form for audio/x-'
    files = {'vorbis.ogg': ('libvorbis', f'{form}vorbis'), 'flac.ogg': ('flac', f'{form}flac'),
             'flac.flac': ('flac', 'unsupported file type audio/x-flac'), 'pcm.wav': ('pcm_s16le', 'unsupported file type audio/x-wav')}
    with tempfile.TemporaryDirectory() as where, TitleProxy({'upstream': f'file://{where}/'}) as proxy:
        for name, (codec, why) in files.items():
            ffmpeg('-f', 'lavfi', '-i', 'sine=440:r=48000', '-t', '1', '-c:a', codec, f'{where}/{name}')
            with Player(proxy, name) as player:
                assert player.status == 415, (name, player.status)
            proxy.wait_for_line(f' refused: /films/{name}: cannot be played: {why}$')


@test
def tags_behind_tags_are_refused():
    """a file of tags behind tags is refused, not searched for its media"""
    with tempfile.TemporaryDirectory() as where, TitleProxy({'upstream': f'file://{where}/'}) as proxy:
        with open(f'{folder().name}/tags.mp3', 'rb') as file:
            media = file.read()
        size = 10 + sum((byte & 127) << 7 * (3 - i) for i, byte in enumerate(media[6:10]))
        with open(f'{where}/tags.mp3', 'wb') as file:
            file.write(media[:size] * 1000 + media[size:])
        with Player(proxy, 'tags.mp3') as player:
            assert player.status in (200, 415), player.status
        with open(f'{where}/other.mp3', 'wb') as file:
            file.write(media[:size] + b'\0' * 65536)
        with Player(proxy, 'other.mp3') as player:
            assert player.status == 415, player.status


if __name__ == '__main__':
    run()
