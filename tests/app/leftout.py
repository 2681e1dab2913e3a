# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles with tracks that RTP cannot carry: the others play, and it is said what is left out."""

import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled, Watch, wait_for_readers_of
from films import Player, ffmpeg
from hlsweb import Web
from proxy import matches, wait_until
from tap import run, test
from title_proxy import TitleProxy, pictures

SECONDS, FPS = 4, 25
VIDEO = 'libx264', '-preset', 'ultrafast', '-bf', '0', '-x264-params', 'slices=1', '-g', str(FPS)
AUDIO = 'RTP here has no form for audio/x-'
NONE = f'track 0: RTP here has no form for video/mpeg; track 1: {AUDIO}flac'
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
                            f'{NONE}$')


@test
def a_clip_without_any_other_track_is_read_once():
    """a mount whose clip has no track that RTP can carry says so at once, and reads the clip again when it changes"""
    with tempfile.TemporaryDirectory() as made:
        clip, new = f'{made}/clip.mkv', f'{made}/new'
        shutil.copy(f'{folder().name}/none.mkv', clip)

        with Controlled({'/cam': {'upstream': f'file://{clip}', 'on-demand': False}}) as proxy:
            def count(what):
                return len(matches(proxy, what))

            failure = f' mount /cam down: .*: the file has no track that can be relayed: {NONE}; next try in'
            read = ' a track is left out: .* video/mpeg'
            wait_until(lambda: count(failure) >= 3, 20, 'three failures')
            assert count(read) == 1, proxy.output()
            os.utime(clip)
            wait_until(lambda: count(read) == 2, 20, 'another look')
            shutil.copy(f'{folder().name}/ac3.mkv', new)
            os.rename(new, clip)
            proxy.wait_for_line(' mount /cam up: ', 30)


def broken(where):
    """Makes clips that cannot be played. Returns what is said of each."""
    shutil.copy(f'{folder().name}/none.mkv', where)
    with open(f'{folder().name}/ac3.mp4', 'rb') as file:
        whole = file.read()
    for name, data in ('empty.mp4', b''), ('noise.mp4', bytes(range(7, 256, 3)) * 999), ('cut.mp4', whole[:len(whole) // 2]):
        with open(f'{where}/{name}', 'wb') as file:
            file.write(data)
    return {'none.mkv': f'the file has no track that can be relayed: {NONE}', 'empty.mp4': '', 'noise.mp4': '', 'cut.mp4': ''}


def statuses(proxy, mount):
    """Requests a mount on each outlet. Returns the statuses, and what the answers over HTTP say."""
    with Player(proxy, mount[1:], '') as player:
        answers = [proxy.fetch(path) for path in (f'/hls{mount}/index.m3u8', f'/ts{mount}')]
        return [player.status, *(each[0] for each in answers)], {each[2].decode().strip().removeprefix('Unsupported Media Type: ') for each in answers}


@test
def a_clip_that_cannot_be_played_is_refused():
    """a clip that cannot be played is refused with 415 on each outlet, with the reason, and plays once it is another"""
    for isolate in 'auto', 'no':
        with tempfile.TemporaryDirectory() as where:
            told = broken(where)
            mounts = {f'/{name}': {'upstream': f'file://{where}/{name}', 'linger': '20s'} for name in told}
            # The last one is all that a mount with several has.
            mounts['/both'] = {'upstreams': [f'file://{where}/cut.mp4', f'file://{where}/none.mkv']}
            mounts['/staged'] = {'upstream': f'file://{where}/none.mkv', 'source-stages': ['restamp']}
            with Web(mounts=mounts, hls={}, isolate=isolate) as proxy:
                for name, reason in {**told, **dict.fromkeys(('both', 'staged'), told['none.mkv'])}.items():
                    for _ in range(3):
                        got, said = statuses(proxy, f'/{name}')
                        assert got == [415] * 3, (name, got, said)
                        text = said.pop()
                        assert not said and text.startswith(f'/{name}: {reason}') and len(text) > len(name) + 10, (name, said, text)
                        assert where not in text, text
                    proxy.wait_for_line(f'refused: {re.escape(text)}$')
                    upstreams = proxy.get(f'/v1/mounts/{name}')['upstreams']
                    assert upstreams[-1]['reason'].endswith(text.split(': ', 1)[1]), upstreams
                shutil.copy(f'{folder().name}/ac3.mp4', f'{where}/new')
                os.rename(f'{where}/new', f'{where}/cut.mp4')
                wait_until(lambda: proxy.fetch('/hls/cut.mp4/index.m3u8')[0] == 200, 40, 'it plays')
                assert proxy.fetch('/ts/cut.mp4', method='HEAD')[0] == 200
                with Player(proxy, 'cut.mp4', '') as player:
                    assert player.status == 200, player.status


@test
def who_joins_does_not_wait_for_the_next_try():
    """a mount that joins the failing upstream of another is refused before the next try, also behind source stages"""
    for more in {}, {'source-stages': ['restamp']}:
        cam = {'upstream': f'file://{folder().name}/none.mkv', 'start-timeout': '3s', **more}
        with Web(mounts={'/first': {**cam, 'on-demand': False}, '/second': cam}, hls={}) as proxy:
            proxy.wait_for_line(r' mount /first down: .*; next try in ([4-9]|\d\d)\.\d s$', 60)
            assert proxy.fetch('/ts/second')[0] == 415, more


@test
def a_broken_clip_is_refused_at_once():
    """a broken clip is refused when its demultiplexer finds that, also while parsebin still starts it"""
    with tempfile.TemporaryDirectory() as where:
        broken(where)
        mounts = {f'/{n}': {'upstream': f'file://{where}/cut.mp4', 'connect-timeout': '60s', 'start-timeout': '90s'} for n in range(20)}
        with Web(mounts=mounts, hls={}) as proxy:
            for mount in mounts:
                assert proxy.fetch(f'/ts{mount}')[0] == 415, mount


@test
def what_may_pass_is_not_refused():
    """a file that is not there, and a camera that does not answer beside a broken clip, get 503"""
    with tempfile.TemporaryDirectory() as where:
        broken(where)
        mounts = {'/gone': {'upstream': f'file://{where}/none.mkv'},
                  '/down': {'upstreams': ['rtsp://127.0.0.1:1/x', f'file://{where}/cut.mp4'], 'start-timeout': '2s'},
                  '/slate': {'upstream': 'rtsp://127.0.0.1:1/x', 'slate': f'{where}/empty.mp4', 'start-timeout': '2s'}}
        with Web(mounts=mounts, hls={}) as proxy:
            os.remove(f'{where}/none.mkv')
            for mount in mounts:
                got, said = statuses(proxy, mount)
                assert got == [503] * 3, (mount, got, said)


if __name__ == '__main__':
    run()
