# SPDX-License-Identifier: LGPL-2.1-or-later
"""The titles of a block store over RTSP, beside the same files in a folder: seeks, pauses, ranges,
scales and speeds do what they do there, picture by picture.

The cases share one proxy, which serves the folder as /films and the store as /store.
"""

import os
import random
import shutil
import subprocess
import tempfile
from functools import lru_cache

from films import (FPS, SECONDS, Player, check_pictures, film_pictures, folder, path_of,
                   pictures, seek_with_the_go_reader)
from proxy import Proxy
from sanitized import environment
from tap import SLOWER, Skip, run, test

SEED = 11
TITLES = 'film.mp4', 'film.mkv', 'film.ts'


def run_tool(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=50 * SLOWER, check=False,
                          env=environment())
    assert done.returncode == 0, (words, done.stdout, done.stderr)


@lru_cache
def store():
    """Returns a store of four disks with the films. An element has stored film.h264."""
    tool = os.environ.get('WEIR_STORE_PROGRAM')
    if not tool:
        raise Skip('weir-store is not built')
    directory = tempfile.TemporaryDirectory()
    disks = [os.path.join(directory.name, f'disk{n}') for n in range(4)]
    for disk in disks:
        os.mkdir(disk)
    path = os.path.join(directory.name, 'store')
    run_tool(tool, 'init', path, '--disks', ','.join(disks), '--policy', 'rda', '--slice', '1s')
    run_tool(tool, 'add', path, *(path_of(name) for name in TITLES))
    if not shutil.which('gst-launch-1.0'):
        raise Skip('gst-launch-1.0 is not on the PATH')
    run_tool('gst-launch-1.0', '-q', 'filesrc', f'location={path_of("film.h264")}', '!',
             'h264parse', '!', 'video/x-h264,stream-format=byte-stream,alignment=au', '!',
             'blockstoresink', f'location={path}', 'title=film.h264')
    return directory, path


@lru_cache
def serving():
    """Returns the proxy that all cases share."""
    return Proxy({'/films': {'upstream': f'file://{folder()[1]}/', 'max-titles': 100},
                  '/store': {'upstream': f'store://{store()[1]}/', 'max-titles': 100}})


def both(name):
    """Returns a player of the file and one of the title."""
    return Player(serving(), name), Player(serving(), name, '/store')


def seen(player, n, **headers):
    """Plays. Returns where playback begins, and the first n pictures."""
    start = player.play(**headers)
    player.read(n)
    return start, player.pictures()[:n]


@test
def a_title_is_described_like_the_file():
    for name in (*TITLES, 'film.h264'):
        file, title = both(name)
        with file, title:
            described = [[line for line in player.sdp.splitlines()
                          if line.startswith(('m=', 'a=range', 'a=rtpmap', 'a=fmtp'))]
                         for player in (file, title)]
            assert described[0] == described[1] and described[0], (name, described)


@test
def seeks_begin_with_the_same_pictures():
    draw = random.Random(SEED)
    for name in 'film.mp4', 'film.mkv':
        file, title = both(name)
        with file, title:
            for _ in range(6):
                position = f'npt={draw.uniform(0, SECONDS - 1):.3f}-'
                of_file, of_title = seen(file, 8, Range=position), seen(title, 8, Range=position)
                assert of_file == of_title, (name, position, of_file, of_title)
                file.pause()
                title.pause()


def is_near(start, position):
    """Reports whether a seek in a transport stream may begin there: where it does depends on the
    clock references that the demuxer has read so far."""
    return position - 5 < start <= position + 1


@test
def seeks_in_a_transport_stream_are_as_near():
    for position in 12, 6:
        for player in both('film.ts'):
            with player:
                seen(player, 2)
                player.pause()
                start, got = seen(player, 3 * FPS, Range=f'npt={position}-')
                first = film_pictures().index(got[0])
                assert is_near(start, position), (player.url, position, start)
                assert first % FPS == 0 and got == film_pictures()[first:first + len(got)], first


@test
def a_paused_title_resumes_without_a_gap():
    with Player(serving(), 'film.mp4', '/store') as player:
        start, got = seen(player, 40, Range='npt=3-')
        check_pictures(got, start)
        for _ in range(3):
            player.pause()
            shown = round(start * FPS) + len(player.pictures())
            start = player.play()
            assert 0 <= shown - start * FPS < FPS + 2, (shown, start)
            player.read(33)
            check_pictures(player.pictures(), start)


@test
def the_end_is_signalled_and_a_reader_can_go_back():
    with Player(serving(), 'film.mp4', '/store') as player:
        start = player.play(Range='npt=18-')
        player.read_to_end()
        got = player.pictures()
        check_pictures(got, start)
        assert len(got) == (SECONDS - 18) * FPS, len(got)
        start, got = seen(player, 10, Range='npt=2-')
        check_pictures(got, start)


@test
def an_elementary_stream_plays_like_its_file():
    file, title = both('film.h264')
    with file, title:
        for player in file, title:
            assert seen(player, 60)[1] == film_pictures()[:60]
            player.pause()
            assert player.rtsp.request('PLAY', player.url, {'Range': 'npt=5-'})[0] == 457
            assert seen(player, 10, Range='npt=0-')[1] == film_pictures()[:10]


WORDS = [{'Scale': value} for value in
         ('1', '2', '4', '0.5', '-1', '0', '100', 'x', 'nan', '0.001')]
WORDS += [{'Speed': value} for value in ('1', '2.0', '0.5', '0', '-2', '1000', 'x')]
WORDS += [{'Range': value} for value in
          ('npt=20-', 'npt=99999-', 'npt=5-3', 'npt=1e400-', 'npt=-5', 'npt=now-', 'npt=nan-',
           'npt=3-nan', 'smpte=0:00:05-', 'clock=20260101T000000Z-', 'npt=2-4', 'npt=10-',
           'npt=1-30')]
WORDS += [{'Scale': '2', 'Range': 'npt=4-'}, {'Speed': '2', 'Range': 'npt=4-8'}]


def answer(player, words):
    """Returns the status of a PLAY and what it grants. Where playback of a transport stream begins
    is not compared: it depends on the clock references that the demuxer has read so far."""
    status, headers, _ = player.rtsp.request('PLAY', player.url, {'Range': 'npt=1-', **words})
    span = headers['range'] if status == 200 else None
    if span and player.url.endswith('.ts'):
        span = span.split('-')[1]
    return status, headers.get('scale'), headers.get('speed'), span


@test
def scales_speeds_and_ranges_get_the_same_answers():
    for name in 'film.mp4', 'film.ts':
        file, title = both(name)
        with file, title:
            for player in file, title:
                player.play()
            for words in WORDS:
                of_file, of_title = answer(file, words), answer(title, words)
                assert of_file == of_title, (name, words, of_file, of_title)
            statuses = {player.rtsp.request('PLAY', player.url, {'Range': 'npt=4-'})[0]
                        for player in (file, title)}
            assert statuses == {200}, statuses


@test
def a_play_after_a_refused_one_begins_where_its_answer_says():
    for player in both('film.mkv'):
        with player:
            expected = {at: seen(player, 2, Range=f'npt={at}-') for at in (1, 10)}
            for n in range(25):
                assert player.rtsp.request('PLAY', player.url, {'Scale': 'nan'})[0] == 451
                at = (1, 10)[n % 2]
                got = seen(player, 2, Range=f'npt={at}-')
                assert got == expected[at], (player.url, n, at, got, expected[at])


@test
def ffmpeg_seeks_over_udp_and_tcp():
    draw = random.Random(SEED + 2)
    for transport in 'udp', 'tcp':
        for name in 'film.mp4', 'film.ts':
            position = draw.randrange(6, SECONDS - 3)
            got = [pictures(['-rtsp_transport', transport, '-ss', str(position), '-i',
                             serving().url(f'{mount}/{name}'), '-frames:v', '15'])
                   for mount in ('/films', '/store')]
            first = [film_pictures().index(one[0]) for one in got]
            assert got == [film_pictures()[at:at + 15] for at in first], (transport, name, first)
            if name.endswith('.ts'):
                # FFmpeg drops what is before the position by the times of the reports that it has got.
                assert all(is_near(at / FPS, position) for at in first), (transport, position, first)
            else:
                assert first[0] == first[1], (transport, name, first)


@test
def a_go_reader_seeks_over_udp_and_tcp():
    for transport in 'udp', 'tcp':
        seek_with_the_go_reader(serving(), transport, 5, SEED + 3, '/store/film.mp4')


@test
def many_quick_seeks_work():
    with Player(serving(), 'film.mp4', '/store') as other:
        other.play()
        for name in TITLES:
            with Player(serving(), name, '/store') as player:
                draw = random.Random(SEED + 5)
                for _ in range(30):
                    player.play(Range=f'npt={draw.uniform(0, SECONDS - 1):.3f}-')
                assert seen(player, 5, Range='npt=0-')[1] == film_pictures()[:5], name
                # Leaves in the middle of a seek.
                player.rtsp.send(f'PLAY {player.url} RTSP/1.0\r\nCSeq: 99\r\nRange: npt=0-\r\n'
                                 f'Session: {player.rtsp.session}\r\n\r\n'.encode())
                player.teardown()
        other.read(25)
        check_pictures(other.pictures(), 0)
        serving().check_alive()


if __name__ == '__main__':
    run()
