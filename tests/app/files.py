# SPDX-License-Identifier: LGPL-2.1-or-later
"""The titles of a folder: seeks, pauses, the end, several readers, and files that stay private.

The pictures that a reader gets are decoded and compared one by one with those of the file.
"""

import os
import random
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache

from control import Controlled, Watch, wait_for_readers_of
from films import (FPS, SECONDS, TS_START, Player, check_pictures, ffmpeg, film_pictures,
                   first_keyframe, folder, path_of, pictures, seek_with_the_go_reader, url_of)
from proc import Rtsp
from proxy import CLIP, Proxy, matches, program, wait_until, yaml
from tap import SLOWER, run, test

SEED = 7


def serve(**settings):
    return Proxy({'/films': {'upstream': url_of(folder()[1]), **settings}})


def check_seeks(player, number, seed):
    """Seeks at random; each position begins with the keyframe at or before it."""
    draw = random.Random(seed)
    player.play()
    for _ in range(number):
        player.read(2)
        player.pause()
        position = draw.uniform(0, SECONDS - 1)
        start = player.play(Range=f'npt={position:.3f}-')
        assert abs(start - int(position)) < 0.05, (position, start)
        player.read(8)
        check_pictures(player.pictures(), start)


@test
def a_session_with_20_random_seeks_is_exact_to_the_frame():
    with serve() as proxy, Player(proxy) as player:
        assert f'a=range:npt=0-{SECONDS}' in player.sdp, player.sdp
        check_seeks(player, 20, SEED)


@test
def a_go_reader_seeks_20_times_over_tcp():
    with serve() as proxy:
        seek_with_the_go_reader(proxy, 'tcp', 20, SEED + 3)


@test
def a_go_reader_seeks_over_udp():
    with serve() as proxy:
        seek_with_the_go_reader(proxy, 'udp', 6, SEED + 4)


@test
def matroska_seeks_are_exact():
    with serve() as proxy, Player(proxy, 'film.mkv') as player:
        check_seeks(player, 6, SEED + 1)


@test
def fragmented_mp4_seeks_are_exact():
    with tempfile.TemporaryDirectory() as films:
        ffmpeg('-i', path_of('film.mp4'), '-c', 'copy', '-movflags', '+frag_keyframe+empty_moov',
               os.path.join(films, 'film.mp4'))
        with Proxy({'/films': url_of(films)}) as proxy, Player(proxy) as player:
            check_seeks(player, 6, SEED + 1)


@test
def a_paused_title_resumes_without_a_gap():
    with serve() as proxy, Player(proxy) as player:
        check_pictures(played(player, player.play(Range='npt=3-'), 40), 3)
        for _ in range(3):
            player.pause()
            shown = round(player.start * FPS) + len(player.pictures())
            start = player.play()
            assert 0 <= shown - start * FPS < FPS + 2, (shown, start)
            check_pictures(played(player, start, 33), start)


def played(player, start, n):
    player.start = start
    player.read(n)
    return player.pictures()


@test
def play_may_seek_without_a_pause():
    with serve() as proxy, Player(proxy) as player:
        player.play()
        player.read(5)
        start = player.play(Range='npt=12-')
        assert abs(start - 12) < 0.05, start
        player.read(10)
        check_pictures(player.pictures(), start)


@test
def readers_of_one_title_have_their_own_positions():
    with serve() as proxy, Player(proxy) as one, Player(proxy) as two:
        one.play()
        start = two.play(Range='npt=10-')
        one.read(10)
        two.read(10)
        one.pause()
        two.read(30)
        check_pictures(one.pictures(), 0)
        check_pictures(two.pictures(), start)


@test
def the_end_is_signalled_and_a_reader_can_go_back():
    with serve() as proxy, Player(proxy) as player:
        start = player.play(Range='npt=18-')
        player.read_to_end()
        got = player.pictures()
        check_pictures(got, start)
        assert len(got) == (SECONDS - 18) * FPS, len(got)
        start = player.play(Range='npt=2-')
        player.read(10)
        check_pictures(player.pictures(), start)


@test
def sender_reports_put_all_packets_and_tracks_on_one_clock():
    with serve() as proxy, Player(proxy) as player:
        player.play()
        begins = [int(at) for at in re.findall(r'rtptime=(\d+)', player.answer['rtp-info'])]
        player.read(4 * FPS)
        # The first packet of the audio may be of a time before the beginning.
        zero = {track: [ntp - ((at - begins[track] + 2**31) % 2**32 - 2**31) / rate
                        for number, ntp, at in player.reports if number == track]
                for track, rate in ((0, 90000), (1, 48000))}
        assert all(len(times) >= 3 for times in zero.values()), zero
        everything = sum(zero.values(), [])
        assert max(everything) - min(everything) < 0.003, zero


@test
def every_container_is_served():
    for name in 'film.mkv', 'film.ts', 'film.h264', 'sub%20dir/film.mp4':
        with serve() as proxy, Player(proxy, name) as player:
            player.play()
            player.read(30)
            got = player.pictures()
            assert got == film_pictures()[:len(got)], name


@test
def transport_stream_seeks_follow_its_clock():
    with serve() as proxy, Player(proxy, 'film.ts') as player:
        assert re.search(r'a=range:npt=[\d.]+-[\d.]+', player.sdp), player.sdp
        player.play()
        for position in 12, 6:
            player.read(2)
            player.pause()
            start = player.play(Range=f'npt={position}-')
            assert position - 5 < start <= position + 1, start
            player.read(3 * FPS)
            got = player.pictures()
            first = film_pictures().index(got[0])
            assert first % FPS == 0 and got == film_pictures()[first:first + len(got)], first
            # The answer's start position is true, and so is the picture's.
            told = start + player.after_start(first_keyframe(player.packets))
            assert abs(told - (TS_START + first / FPS)) < 0.01, (told, first)


@test
def a_transport_stream_plays_across_clock_jumps():
    with tempfile.TemporaryDirectory() as films:
        part, later = os.path.join(films, 'part.ts'), os.path.join(films, 'later.ts')
        ffmpeg('-i', path_of('film.mp4'), '-t', '2', '-c', 'copy', part)
        ffmpeg('-i', path_of('film.mp4'), '-t', '2', '-c', 'copy', '-output_ts_offset', '50000',
               later)
        with open(os.path.join(films, 'film.ts'), 'wb') as film:
            for name in part, later, part:
                with open(name, 'rb') as file:
                    shutil.copyfileobj(file, film)
        with Proxy({'/films': url_of(films)}) as proxy, Player(proxy, 'film.ts') as player:
            player.play()
            player.read_to_end()
            assert player.pictures() == 3 * film_pictures()[:2 * FPS]
            times = [packet[1] for packet in player.packets]
            assert all((b - a) % 2**32 < 2**31 for a, b in zip(times, times[1:]))
            assert (times[-1] - times[0]) % 2**32 < 8 * 90000


@test
def a_raw_stream_can_seek_back():
    with serve() as proxy, Player(proxy, 'film.h264') as player:
        player.play()
        player.read(10)
        player.pause()
        assert player.rtsp.request('PLAY', player.url, {'Range': 'npt=5-'})[0] == 457
        player.play(Range='npt=0-')
        player.read(10)
        check_pictures(player.pictures(), 0)


@test
def ffmpeg_seeks_over_udp_and_tcp():
    draw = random.Random(SEED + 2)
    with serve() as proxy:
        for transport in 'udp', 'tcp', 'udp', 'tcp':
            position = draw.randrange(1, SECONDS - 2)
            got = pictures(['-rtsp_transport', transport, '-ss', str(position), '-i',
                            proxy.url('/films/film.mp4'), '-frames:v', '15'])
            assert len(got) == 15, (transport, position, got)
            check_pictures(got, position)


@test
def speed_is_granted_and_invalid_scales_are_refused():
    with serve() as proxy, Player(proxy) as player:
        player.play(Speed='2.0', Range='npt=1-')
        assert float(player.answer['speed']) == 2, player.answer
        player.read(10)
        player.pause()
        for refused in '-1', '0', '100', 'x', 'nan', '0.001':
            status = player.rtsp.request('PLAY', player.url, {'Scale': refused})[0]
            assert status in (400, 451), (refused, status)
        start = player.play(Range='npt=4-')
        player.read(10)
        check_pictures(player.pictures(), start)


@test
def ranges_outside_the_title_are_refused():
    with serve() as proxy, Player(proxy) as player:
        for wrong, wanted in (('npt=20-', 457), ('npt=99999-', 457), ('npt=5-3', 457),
                              ('npt=1e400-', None), ('npt=-5', 457), ('npt=now-', 457),
                              ('npt=nan-', 457), ('npt=3-nan', 457), ('smpte=0:00:05-', 457),
                              ('clock=20260101T000000Z-', 457)):
            status = player.rtsp.request('PLAY', player.url, {'Range': wrong})[0]
            assert status == wanted if wanted else status in (400, 457), (wrong, status)
        player.play(Range='npt=7-')
        player.read(5)
        check_pictures(player.pictures(), 7)


@test
def the_end_of_a_range_applies_to_one_play():
    for name in 'film.mp4', 'film.mkv', 'film.ts':
        with serve() as proxy, Player(proxy, name) as player:
            for asked, end in (('2-4', 4), ('10-', SECONDS), ('3-5', 5), ('4-', SECONDS),
                               ('1-30', SECONDS), ('1-99999999999', SECONDS)):
                player.play(Range=f'npt={asked}', **{'Seek-Style': 'Next'})
                said = float(player.answer['range'].split('-')[1])
                assert abs(said - end) < 0.1, (name, asked, player.answer)
            player.play(Range='npt=17-18')
            player.read_to_end()
            assert len(player.pictures()) <= 6 * FPS, name


def with_a_late_track(films, late, container):
    """Writes a film in which one track begins 15 s after the other."""
    path = os.path.join(films, f'late.{container}')
    film, at = path_of('film.mp4'), ['-itsoffset', '15']
    first, second = ([], at) if late == 'audio' else (at, [])
    ffmpeg(*first, '-i', film, *second, '-i', film, '-map', '0:v', '-map', '1:a', '-c', 'copy',
           '-t', str(SECONDS), '-y', path)


@test
def a_late_track_delays_nothing():
    for late, container in ('audio', 'mp4'), ('audio', 'mkv'), ('video', 'mp4'):
        with tempfile.TemporaryDirectory() as films:
            with_a_late_track(films, late, container)
            with Proxy({'/films': url_of(films)}) as proxy, \
                    Player(proxy, f'late.{container}') as player:
                player.rtsp.socket.settimeout(15)  # the library gives up after 20 s
                player.play()
                for position in 2, 6, 13, 4:
                    assert player.play(Range=f'npt={position}-') <= position + 0.1, (late, container)
                player.read_frame()
                player.pause()
                player.play()
                player.play(Range='npt=16-')
                player.read(10)


@test
def a_title_with_an_unknown_track_is_refused():
    with tempfile.TemporaryDirectory() as films:
        with_a_late_track(films, 'audio', 'ts')
        with Proxy({'/films': url_of(films)}) as proxy:
            assert Player(proxy, 'late.ts').status == 415
            proxy.wait_for_line('refused: /films/late.ts: .* a track has no data near the start')


@test
def many_quick_seeks_work():
    with serve() as proxy, Player(proxy) as other:
        other.play()
        for name in 'film.mp4', 'film.mkv', 'film.ts', 'film.h264':
            with Player(proxy, name) as player:
                draw = random.Random(SEED + 5)
                for number in range(50):
                    position = 0 if name == 'film.h264' else draw.uniform(0, SECONDS - 1)
                    player.play(Range=f'npt={position:.3f}-')
                    if number % 10 == 0:
                        player.read(1)
                start = player.play(Range='npt=0-')
                player.read(5)
                assert player.pictures() == film_pictures()[:len(player.pictures())], (name, start)
                # Leaves in the middle of a seek.
                player.rtsp.send(f'PLAY {player.url} RTSP/1.0\r\nCSeq: 99\r\nRange: npt=0-\r\n'
                                 f'Session: {player.rtsp.session}\r\n\r\n'.encode())
                player.teardown()
        other.read(25)
        check_pictures(other.pictures(), 0)
        proxy.check_alive()


@test
def a_raw_stream_opens_each_time():
    with serve() as proxy:
        for _ in range(60):
            with Player(proxy, 'film.h264') as player:
                assert player.status == 200
                player.play()


@test
def max_titles_limits_open_titles():
    with serve(**{'max-titles': 2}) as proxy:
        with Player(proxy) as one, Player(proxy, 'film.mkv') as two:
            one.play()
            two.play()
            assert Player(proxy).status == 503
            proxy.wait_for_line('max-titles: [0-9]+ titles are open already')
            one.teardown()
            wait_until(lambda: Player(proxy).status == 200, 10, 'another title may be opened')
            two.read(20)
            assert len(two.pictures()) >= 20


def hostile(films, outside):
    """Makes files that must not be served. Returns their names."""
    os.mkfifo(os.path.join(films, 'fifo.mp4'))
    os.symlink(outside, os.path.join(films, 'absolute.mp4'))
    os.symlink('../secret.mp4', os.path.join(films, 'relative.mp4'))
    os.symlink(os.path.dirname(films), os.path.join(films, 'up'))
    os.symlink('..', os.path.join(films, 'up2'))
    os.symlink('/proc/self/root', os.path.join(films, 'root'))
    os.symlink('/dev/zero', os.path.join(films, 'zero.mp4'))
    os.symlink('loop.mp4', os.path.join(films, 'loop.mp4'))
    shutil.copy(outside, os.path.join(films, '.hidden.mp4'))
    return ['fifo.mp4', 'absolute.mp4', 'relative.mp4', 'up/secret.mp4', 'up2/secret.mp4',
            f'root{outside}', 'zero.mp4', 'loop.mp4', '.hidden.mp4', 'sub%20dir']


SPELLINGS = [
    '../secret.mp4', '%2e%2e/secret.mp4', '%2E%2E%2Fsecret.mp4', '..%2fsecret.mp4',
    '%252e%252e/secret.mp4', '%252e%252e%252fsecret.mp4', '..%5csecret.mp4', '..\\secret.mp4',
    'sub%20dir/../../secret.mp4', 'sub%20dir/%2e%2e/%2e%2e/secret.mp4', './film.mp4',
    '/etc/passwd', '%2fetc%2fpasswd', 'film.mp4%00.txt',
    'film.mp4%0a', '%01film.mp4', '%7f', 'film.mp4%0d%0aX:%20y', '%c0%ae%c0%ae/secret.mp4',
    '%ff%fe.mp4', '..;/secret.mp4', '.../secret.mp4', '%', '%2', '%zz', '=title1', '=title2', '...',
    'a' * 256 + '.mp4', 'a/' * 600 + 'film.mp4', 'FILM.MP4.', 'film.mp4/film.mp4',
]


@test
def nothing_outside_the_folder_is_reachable():
    with tempfile.TemporaryDirectory() as directory:
        films = os.path.join(directory, 'films')
        shutil.copytree(folder()[1], films)
        secret = shutil.copy(path_of('film.mp4'), os.path.join(directory, 'secret.mp4'))
        names = hostile(films, secret)
        os.symlink('../film.mp4', os.path.join(films, 'sub dir', 'back.mp4'))
        os.symlink('sub dir/film.mp4', os.path.join(films, 'inside.mp4'))
        with Proxy({'/films': url_of(films)}) as proxy, Player(proxy) as player:
            player.play()
            # A link leads to what is in or below its own folder.
            assert Player(proxy, 'sub%20dir/back.mp4').status == 404
            proxy.wait_for_line(r'title refused: sub dir/back.mp4 in \S+: a link leads out of the folder in which')
            assert Player(proxy, 'inside.mp4').status == 200
            for name in names + SPELLINGS:
                status = Player(proxy, name).status
                assert status in (400, 404), (name, status)
                status = proxy.ask('SETUP', f'/films/{name}/stream=0', headers={
                    'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})[0]
                assert status in (400, 404), (name, status)
            assert proxy.ask('DESCRIBE', '/films')[0] == 404
            assert proxy.ask('DESCRIBE', '/films/')[0] == 404
            player.read(25)
            check_pictures(player.pictures(), 0)
            proxy.check_alive()


@test
def files_without_media_are_refused_and_cut_files_play():
    with tempfile.TemporaryDirectory() as films:
        with open(path_of('film.mp4'), 'rb') as file:
            film = file.read()
        with open(path_of('film.ts'), 'rb') as file:
            stream = file.read()
        wrong = {'cut.mp4': film[:len(film) // 2], 'empty.mp4': b'', 'text.mp4': b'hello\n',
                 'noise.mp4': random.Random(SEED).randbytes(100000), 'page.mp4': b'<html></html>',
                 'head.mkv': b'\x1a\x45\xdf\xa3' + bytes(100)}
        for name, data in {**wrong, 'film.mp4': film, 'half.ts': stream[:len(stream) // 2]}.items():
            with open(os.path.join(films, name), 'wb') as file:
                file.write(data)
        with Proxy({'/films': url_of(films)}) as proxy, Player(proxy) as player:
            player.play()
            for name in wrong:
                assert Player(proxy, name).status == 415, name
                proxy.wait_for_line(f'refused: /films/{name}: cannot be played: ')
            with Player(proxy, 'half.ts') as half:
                half.play(Range='npt=8-')
                half.read_to_end()
                assert len(half.pictures()) >= FPS // 2
            player.read(25)
            check_pictures(player.pictures(), 0)


@lru_cache
def front_first():
    """Returns the film as MP4 with its header before the pictures, so that a cut leaves the
    header."""
    with tempfile.TemporaryDirectory() as directory:
        film = os.path.join(directory, 'film.mp4')
        ffmpeg('-i', path_of('film.mp4'), '-c', 'copy', '-movflags', '+faststart', film)
        with open(film, 'rb') as file:
            return file.read()


@test
def a_file_cut_after_its_header_is_refused_at_once():
    film = front_first()
    cut = {'cut.mp4': film[:film.index(b'mdat') + 100]}
    for name, size in ('film.mkv', 700), ('film.mkv', 6000), ('film.ts', 7500):
        with open(path_of(name), 'rb') as file:
            cut[f'{size}-{name}'] = file.read(size)
    with tempfile.TemporaryDirectory() as films:
        for name, data in cut.items():
            with open(os.path.join(films, name), 'wb') as file:
                file.write(data)
        with Proxy({'/films': url_of(films)}) as proxy:
            for name in cut:
                assert Player(proxy, name).status == 415, name
                proxy.wait_for_line(f'refused: /films/{name}: cannot be played: '
                                    'the file ends before the first data of a track')


@test
def a_seek_beyond_the_cut_is_refused():
    film = front_first()
    with tempfile.TemporaryDirectory() as films:
        for name, size in ('film.mp4', len(film)), ('half.mp4', len(film) // 2):
            with open(os.path.join(films, name), 'wb') as file:
                file.write(film[:size])
        with Proxy({'/films': url_of(films)}) as proxy, Player(proxy) as other, \
                Player(proxy, 'half.mp4') as player:
            other.play()
            beyond = {'Range': f'npt={SECONDS - 3}-'}
            assert player.rtsp.request('PLAY', player.url, beyond)[0] == 457
            proxy.wait_for_line('/films/half.mp4: no data at the position that the reader requested')
            player.play(Range='npt=2-')
            player.read(10)
            # The reader continues at its old position.
            assert player.rtsp.request('PLAY', player.url, beyond)[0] == 457
            shown = len(player.packets)
            player.read(30)
            assert len(player.packets) > shown
            player.pause()
            assert player.rtsp.request('PLAY', player.url, beyond)[0] == 457
            assert 2 <= player.play() < 5
            player.read(5)
            start = player.play(Range='npt=1-')
            player.read(10)
            check_pictures(player.pictures(), start)
            player.read_to_end()
            other.read(25)
            check_pictures(other.pictures(), 0)


@test
def a_large_folder_serves_a_title_added_later():
    with tempfile.TemporaryDirectory() as films:
        for number in range(3000):
            os.symlink('film.mp4', os.path.join(films, f'{number}.mp4'))
        with Proxy({'/films': url_of(films)}) as proxy:
            assert Player(proxy, 'film.mp4').status == 404
            shutil.copy(path_of('film.mp4'), films)
            assert Player(proxy, 'film.mp4').status == 200


@test
def invalid_store_configurations_are_refused():
    films = url_of(folder()[1])
    for settings, said in (
            ({'upstream': 'file:///nowhere/to/be/found/'}, 'no such folder'),
            ({'upstreams': [films, f'file://{CLIP}']}, 'is a folder'),
            ({'upstream': films, 'slate': CLIP}, 'is a folder'),
            ({'upstream': films, 'on-demand': 'no'}, 'is a folder')):
        with tempfile.NamedTemporaryFile('w') as file:
            file.write(yaml({'/films': settings}))
            file.flush()
            done = subprocess.run([program(), '--check-config', '--config', file.name],
                                  capture_output=True, text=True, timeout=20 * SLOWER, check=False)
        assert done.returncode == 2 and said in done.stderr, (settings, done.stderr)


@test
def the_api_lists_readers_of_titles_and_closes_them_with_the_mount():
    mount = {'upstream': url_of(folder()[1])}
    with Controlled({'/films': mount}) as proxy, Watch(proxy, '/films/film.mp4') as reader:
        wait_for_readers_of(proxy, 1)
        known, = proxy.get('/v1/readers')['readers']
        assert known['mount'] == '/films', known
        channels = [reader.frame()[0] for _ in range(50)]
        taken = sum(channel % 2 == 0 for channel in channels)  # without reports
        assert taken > 0
        # A packet is counted after it was sent.
        wait_until(lambda: proxy.metric('sent_packets_total{mount="/films"}') >= taken, 10, 'all are counted')
        assert proxy.http('DELETE', '/v1/mounts/films')[0] == 200
        assert reader.closed()
        assert Player(proxy).status == 404


@test
def titles_and_streams_mix_on_one_connection():
    with Proxy({'/cam': f'file://{CLIP}', '/films': url_of(folder()[1])}) as proxy:
        for first, second in (('/cam', '/films/film.mp4'), ('/films/film.mp4', '/cam'),
                              ('/cam', '/films/nothing'), ('/films/film.mp4', '/films/film.mkv')):
            with Rtsp(proxy.port, timeout=20) as rtsp:
                url = proxy.url(first)
                assert rtsp.request('DESCRIBE', url)[0] == 200
                assert rtsp.request('SETUP', f'{url}/stream=0', {
                    'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})[0] == 200
                assert rtsp.request('PLAY', url)[0] == 200
                rtsp.request('DESCRIBE', proxy.url(second))
                for headers in {}, {'Range': 'npt=3-'}, {'Scale': '2'}:
                    for method in 'PAUSE', 'PLAY', 'PLAY':
                        assert rtsp.request(method, url, headers)[0] < 500
                rtsp.request('TEARDOWN', url)
                proxy.check_alive()


@test
def readers_are_closed_with_their_titles():
    with serve() as proxy:
        for _ in range(20):
            with Player(proxy) as player:
                player.play()
                player.read(1)
        wait_until(lambda: len(matches(proxy, ' out: /films/film.mp4: ')) == 20, 10, 'all are gone')
        wait_until(lambda: len(os.listdir(f'/proc/{proxy.pid}/fd')) < 40, 10, 'no file stays open')


if __name__ == '__main__':
    run(at_once=4, shared=[film_pictures])
