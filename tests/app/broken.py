# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles that give no media: their readers time out, and other readers are not affected."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from proc import Rtsp
from proxy import CLIP, Proxy, matches, wait_until
from tap import SLOWER, Skip, run, test

READERS = 8
# A reader that had to wait for one seek would wait for PATIENCE; on a busy machine, others wait a
# while too.
PATIENCE = 6  # start-timeout, in seconds
AT_ONCE = 4


def seekless():
    """Returns the clip with its pictures' times moved by days, so that a seek finds no data."""
    with open(CLIP, 'rb') as file:
        film = bytearray(file.read())
    media_time = film.index(b'elst') + 16
    film[media_time:media_time + 4] = bytes([0x0c, 0, 0, 0])
    return bytes(film)


def transport_stream():
    program = shutil.which('ffmpeg')
    if not program:
        raise Skip('ffmpeg is not on the PATH')
    return subprocess.run(
        [program, '-nostdin', '-loglevel', 'error', '-i', CLIP, '-c', 'copy', '-f', 'mpegts', '-'],
        capture_output=True, timeout=50 * SLOWER, check=True).stdout


def pictureless():
    """Returns MPEG-TS with a video track that has no valid pictures."""
    stream = bytearray(transport_stream())
    for at in range(0, len(stream), 188):
        packet = stream[at:at + 188]
        if (packet[1] & 31) << 8 | packet[2] == 0x100:
            keep = 40 if packet[1] & 0x40 else 12
            stream[at + keep:at + 188] = bytes(188 - keep)
    return bytes(stream)


def serve(films, patience=PATIENCE, **titles):
    shutil.copy(CLIP, os.path.join(films, 'clip.mp4'))
    for name, data in titles.items():
        with open(os.path.join(films, name.replace('_', '.')), 'wb') as file:
            file.write(data)
    return Proxy({'/films': {'upstream': f'file://{films}/', 'start-timeout': f'{patience}s'}})


class Reader:
    """A reader that records its answers as (method, status, seconds)."""

    def __init__(self, proxy, name):
        self.rtsp = Rtsp(proxy.port, timeout=30)
        self.url = proxy.url(f'/films/{name}')
        self.answers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rtsp.socket.close()

    def ask(self, method, track='', **headers):
        start = time.monotonic()
        answer = self.rtsp.request(method, self.url + track, headers)
        self.answers.append((method, answer[0], time.monotonic() - start))
        return answer

    def set_up(self):
        status, _, sdp = self.ask('DESCRIBE')
        for number in range(sdp.count(b'\nm=')):
            self.ask('SETUP', f'/stream={number}', Transport='RTP/AVP/TCP;unicast;interleaved='
                                                            f'{2 * number}-{2 * number + 1}')
        return status

    def seek(self):
        """Seeks until a seek times out."""
        for position in 5, 20, 0, 45, 10, 30, 2:
            if self.ask('PLAY', Range=f'npt={position}-')[0] == 503:
                break
        self.ask('TEARDOWN')


def run_beside_others(proxy, work):
    """Runs `work` for READERS readers of a broken title at once. Returns the longest wait of other
    readers in seconds, and the answers to the READERS readers."""
    readers, threads, worst = [Reader(proxy, 'bad.mp4') for _ in range(READERS)], [], 0

    def go(reader):
        with reader:
            work(reader)

    # One after the other: the start of many workers would be slow on a busy machine.
    for reader in readers:
        assert reader.set_up() == 200
        threads.append(threading.Thread(target=go, args=[reader], daemon=True))
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        worst = max(worst, proxy.ask('OPTIONS', '/films/clip.mp4')[1])
        with Reader(proxy, 'clip.mp4') as other:
            assert other.set_up() == 200
            assert other.ask('PLAY', Range='npt=3-')[0] == 200
            worst = max(worst, *(seconds for *_, seconds in other.answers))
    return worst, [answer for reader in readers for answer in reader.answers]


@test
def seeks_that_time_out_delay_no_other_reader():
    with tempfile.TemporaryDirectory() as films, serve(films, bad_mp4=seekless()) as proxy:
        worst, answers = run_beside_others(proxy, Reader.seek)
        assert worst < AT_ONCE, worst
        assert max(seconds for *_, seconds in answers) < PATIENCE + AT_ONCE, answers
        assert len(matches(proxy, '/films/bad.mp4: opening or seeking took longer than')) > READERS // 2, proxy.output()
        assert [status for method, status, _ in answers if method == 'TEARDOWN'] == READERS * [200]
        assert not matches(proxy, 'CRITICAL')


def memory(proxy):
    """Returns the proxy's current and its largest memory, in KB."""
    with open(f'/proc/{proxy.pid}/status', encoding='ascii') as file:
        fields = dict(line.split(':', 1) for line in file)
    return [int(fields[name].split()[0]) for name in ('VmRSS', 'VmHWM')]


def play(reader):
    assert reader.set_up() == 200
    for position in 3, 1, 4:
        assert reader.ask('PLAY', Range=f'npt={position}-')[0] == 200


@test
def titles_return_their_memory():
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a sanitizer does not return freed memory')
    if os.environ.get('WEIR_ISOLATE') != 'no':
        raise Skip('the memory of titles is in worker processes')
    with tempfile.TemporaryDirectory() as films, serve(films) as proxy:
        def go(_):
            with Reader(proxy, 'clip.mp4') as reader:
                play(reader)

        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(go, range(READERS)))
            wait_until(lambda: memory(proxy)[0] < memory(proxy)[1] * 9 // 10, 10, 'memory has shrunk')
            first = memory(proxy)[0]
            list(pool.map(go, range(160)))
        # More titles after each other need no more memory. Threads of the C library keep a part.
        wait_until(lambda: memory(proxy)[0] < first * 3 // 2, 10, 'memory has shrunk again')


@test
def readers_that_leave_during_a_seek_leave_nothing_behind():
    def seek_and_leave(number, proxy):
        with Reader(proxy, ('bad.mp4', 'clip.mp4')[number % 2]) as reader:
            reader.set_up()
            if number % 3:
                reader.ask('PLAY', Range='npt=0-')
            for cseq in range(1, 2 + number % 15):
                reader.rtsp.send(f'PLAY {reader.url} RTSP/1.0\r\nCSeq: {cseq}\r\nSession: '
                                 f'{reader.rtsp.session}\r\nRange: npt={cseq % 5}-\r\n\r\n'
                                 .encode())

    with tempfile.TemporaryDirectory() as films, \
            serve(films, patience=2, bad_mp4=seekless()) as proxy:
        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(lambda number: seek_and_leave(number, proxy), range(400)))
        # Up to 16 workers stay for a while; each has a socket and a descriptor of its process.
        wait_until(lambda: len(os.listdir(f'/proc/{proxy.pid}/fd')) < 40 + 2 * 16, 10,
                   'no file stays open')
        assert proxy.ask('DESCRIBE', '/films/clip.mp4')[0] == 200
        assert not matches(proxy, 'CRITICAL')


@test
def a_title_without_media_is_refused():
    with tempfile.TemporaryDirectory() as films, serve(films, bad_ts=pictureless()) as proxy:
        with Reader(proxy, 'bad.ts') as reader:
            assert reader.ask('DESCRIBE')[0] == 415
            took = reader.answers[0][2]
            # A worker reads further ahead, so its parser may give up first.
            assert took >= PATIENCE or os.environ.get('WEIR_ISOLATE') != 'no', took
            assert took < PATIENCE + AT_ONCE, took
        proxy.wait_for_line('refused: /films/bad.ts: cannot be played: ' + (
            'opening took longer than' if took >= PATIENCE else 'Error parsing'))


@test
def a_range_may_end_before_the_next_keyframe():
    with tempfile.TemporaryDirectory() as films, \
            serve(films, clip_ts=transport_stream()) as proxy:
        for tenths in range(0, 50, 2):
            with Reader(proxy, 'clip.ts') as reader:
                assert reader.set_up() == 200
                answer = reader.ask('PLAY', Range=f'npt={tenths / 10}-{tenths / 10 + 0.1}')
                # The times of this stream begin at 0.7 s.
                assert answer[0] == (457 if tenths <= 6 else 200), (tenths, answer)
        assert not matches(proxy, 'CRITICAL'), proxy.output()


if __name__ == '__main__':
    run()
