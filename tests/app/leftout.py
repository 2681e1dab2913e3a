# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles with tracks that RTP cannot carry: the others play, and it is said what is left out."""

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled, Watch, wait_for_readers_of
from films import Player, ffmpeg
from proxy import matches, wait_until
from tap import run, test
from title_proxy import TitleProxy, pictures

SECONDS, FPS = 4, 25
VIDEO = 'libx264', '-preset', 'ultrafast', '-bf', '0', '-x264-params', 'slices=1', '-g', str(FPS)
AUDIO = 'RTP here has no form for audio/x-'
# The streams of a file, as FFmpeg's encoders; the tracks that are served; what is left out.
FILES = {
    'ac3.mp4': (('video', 'ac3'), 'video', f'track 1: {AUDIO}ac3'),
    'ac3.ts': (('video', 'ac3'), 'video', f'track 1: {AUDIO}ac3'),
    'ac3.mkv': (('video', 'ac3'), 'video', f'track 1: {AUDIO}ac3'),
    'pcm.mov': (('video', 'pcm_s16le'), 'video', f'track 1: {AUDIO}raw'),
    'flac.mkv': (('video', 'flac'), 'video', f'track 1: {AUDIO}flac'),
    'vorbis.mkv': (('video', 'libvorbis'), 'video', f'track 1: {AUDIO}vorbis'),
    'vorbis-first.mkv': (('libvorbis', 'video', 'libopus'), 'video audio', f'track 0: {AUDIO}vorbis'),
    'two.mp4': (('video', 'aac', 'ac3'), 'video audio', f'track 2: {AUDIO}ac3'),
    'aac-ac3.mp4': (('aac', 'ac3'), 'audio', f'track 1: {AUDIO}ac3'),
    'mpeg4.mp4': (('mpeg4', 'aac'), 'audio', 'track 0: RTP here has no form for video/mpeg'),
    'text.mp4': (('video', 'aac', 'mov_text'), 'video audio', 'track 2: RTP here has no form for text/x-raw'),
    'srt.mkv': (('video', 'aac', 'srt'), 'video audio', 'track 2: RTP here has no form for text/x-raw'),
    'ass.mkv': (('video', 'aac', 'ass'), 'video audio', 'track 2: RTP here has no form for application/x-ass'),
}


@lru_cache
def folder():
    made = tempfile.TemporaryDirectory()
    text = os.path.join(made.name, '.text.srt')
    with open(text, 'w', encoding='ascii') as file:
        file.write('1\n00:00:00,500 --> 00:00:01,000\none\n\n2\n00:00:02,000 --> 00:00:03,000\ntwo\n')
    for name, (streams, _, _) in (*FILES.items(), ('none.mkv', (('mpeg4', 'flac'), '', ''))):
        words = []
        for i, stream in enumerate(streams):
            kind = 'v' if stream in ('video', 'mpeg4') else 's' if stream in ('mov_text', 'srt', 'ass') else 'a'
            words += ['-map', {'v': '0', 'a': '1', 's': '2'}[kind], f'-c:{i}', *(
                VIDEO if stream == 'video' else [stream])]
        ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=160x120:r={FPS}', '-f', 'lavfi', '-i', 'sine=440:r=48000', '-i', text,
               *words, '-pix_fmt', 'yuv420p', '-t', str(SECONDS), os.path.join(made.name, name))
    return made


def check_plays(proxy, name):
    """Checks that a title plays to its end, with the tracks that RTP can carry."""
    streams, served, _ = FILES[name]
    with Player(proxy, name) as player:
        assert player.status == 200, (name, player.status)
        kinds = [line[2:7] for line in player.sdp.splitlines() if line.startswith('m=')]
        assert sorted(kinds) == sorted(served.split()), (name, kinds)
        player.play()
        player.read_to_end()
        if streams[0] == 'video':
            got, expected = player.pictures(), pictures(os.path.join(folder().name, name), '-r', str(FPS))
            assert got == expected[-len(got):] and len(got) >= SECONDS * FPS - 3, (name, len(got), len(expected))
            player.bye.clear()
            assert abs(player.play(Range='npt=2-') - 2) < 1.5, name
            player.read_to_end()
            again = player.pictures()
            assert again == expected[-len(again):] and len(again) > FPS, (name, len(again))


def check_all(isolate):
    with TitleProxy({'upstream': f'file://{folder().name}/'}, isolate=isolate) as proxy, \
            ThreadPoolExecutor(len(FILES)) as pool:
        for done in [pool.submit(check_plays, proxy, name) for name in FILES]:
            done.result()
        for name, (_, _, left_out) in FILES.items():
            proxy.wait_for_line(f' /films/{name}: left out: {left_out}$')


@test
def tracks_that_rtp_can_carry_play():
    """titles play to the end and from a position without the tracks that RTP cannot carry, which the log names"""
    check_all('auto')


@test
def they_play_without_workers():
    """so they do without worker processes"""
    check_all('no')


@test
def the_api_names_them():
    """the API says of a reader which tracks are left out, and why"""
    with TitleProxy({'upstream': f'file://{folder().name}/'}) as proxy:
        for name in 'ac3.mp4', 'text.mp4':
            with Watch(proxy, f'/films/{name}'):
                wait_for_readers_of(proxy, 1)
                said = [each['left-out'] for each in proxy.get('/v1/readers')['readers']]
                assert said == [FILES[name][2]], said
            wait_for_readers_of(proxy, 0)


@test
def of_many_tracks_the_first_are_named():
    """a title with many such tracks plays, and the line in the log has a limit"""
    with tempfile.TemporaryDirectory() as where, TitleProxy({'upstream': f'file://{where}/'}, isolate='no') as proxy:
        ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=160x120:r={FPS}', '-f', 'lavfi', '-i', 'sine=440:r=48000', '-map', '0', *(['-map', '1'] * 60),
               '-c:v', *VIDEO, '-c:a', 'flac', '-pix_fmt', 'yuv420p', '-t', '1', os.path.join(where, 'many.mkv'))
        with Player(proxy, 'many.mkv') as player:
            assert player.status == 200, player.status
            told = proxy.wait_for_line(r' /films/many\.mkv: left out: (.*)$')[1]
            assert told.startswith(f'track 1: {AUDIO}flac; track 2: ') and 1000 < len(told) < 1100, told


@test
def a_title_without_any_other_track_is_refused():
    """a title of which RTP can carry no track is refused with 415, and the log says why"""
    with TitleProxy({'upstream': f'file://{folder().name}/'}) as proxy, Player(proxy, 'none.mkv') as player:
        assert player.status == 415, player.status
        proxy.wait_for_line('refused: /films/none.mkv: cannot be played: the file has no track that can be served: '
                            f'track 0: RTP here has no form for video/mpeg; track 1: {AUDIO}flac$')


@test
def a_clip_without_any_other_track_is_read_once():
    """a mount whose clip has no track that RTP can carry says so at once, and reads the clip again when it changes"""
    with tempfile.TemporaryDirectory() as made:
        clip, new = f'{made}/clip.mkv', f'{made}/new'
        shutil.copy(f'{folder().name}/none.mkv', clip)

        with Controlled({'/cam': {'upstream': f'file://{clip}', 'on-demand': False}}) as proxy:
            def count(what):
                return len(matches(proxy, what))

            failure = ' mount /cam down: .*: the file has no track that can be relayed; next try in'
            read = ' a track is left out: .* video/mpeg'
            wait_until(lambda: count(failure) >= 3, 20, 'three failures')
            assert count(read) == 1, proxy.output()
            os.utime(clip)
            wait_until(lambda: count(read) == 2, 20, 'another look')
            shutil.copy(f'{folder().name}/ac3.mkv', new)
            os.rename(new, clip)
            proxy.wait_for_line(' mount /cam up: ', 30)


if __name__ == '__main__':
    run()
