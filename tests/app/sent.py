# SPDX-License-Identifier: LGPL-2.1-or-later
"""A film that FFmpeg sends to the proxy, and the comparison of what readers get with its frames."""

import os
import re
import subprocess
import tempfile
from fractions import Fraction
from functools import lru_cache

from clips import clip, ffmpeg
from proc import Proc
from proxy import matches
from tap import SLOWER

ROUND = 5.12 # s: 128 pictures at 25 a second, 240 AAC frames at 48 kHz


@lru_cache
def media():
    """Returns a clip with a keyframe every second, and a film of twelve rounds of that clip. Its
    video and its audio are equally long, so that they are in sync in each round."""
    directory = tempfile.TemporaryDirectory()
    short, film = clip(1, ROUND, size='640x360'), os.path.join(directory.name, 'film.mp4')
    subprocess.run([ffmpeg(), '-nostdin', '-loglevel', 'error', '-stream_loop', '11', '-i', short,
                    '-c', 'copy', film], check=True, timeout=30 * SLOWER)
    return directory, short, film


class Sender(Proc):
    """Sends the film in real time. `outputs` are words of FFmpeg."""

    def __init__(self, *outputs):
        super().__init__(ffmpeg(), '-nostdin', '-loglevel', 'error', '-re', '-i', media()[2],
                         *outputs)


def frames(source, *options, seconds=3):
    """Returns {stream: [(time in s, hash)]}: of each decoded picture, in its own size, and of each
    audio frame as received."""
    done = subprocess.run(
        [ffmpeg(), '-nostdin', '-loglevel', 'error', *options, '-i', source, '-t', str(seconds),
         '-map', '0:v?', '-map', '0:a?', '-autoscale', '0', '-vsync', 'passthrough', '-enc_time_base:v', '-1', '-c:a', 'copy',
         '-copyinkf:a', '-f',
         'framehash', '-hash', 'sha256', '-'],
        capture_output=True, text=True, timeout=40 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    streams, kinds, bases = {}, {}, {}
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(',')]
        if line.startswith('#media_type'):
            number, kind = line.removeprefix('#media_type ').split(': ')
            kinds[number] = kind
        elif line.startswith('#tb'):
            number, base = line.removeprefix('#tb ').split(': ')
            bases[number] = Fraction(base)
        elif not line.startswith('#'):
            time = int(fields[2]) * bases[fields[0]]
            streams.setdefault(kinds[fields[0]], []).append((time, fields[5]))
    return streams


def hashes(source, *options, seconds=3):
    """Returns {stream: hashes} of frames()."""
    return {kind: [frame for _, frame in each]
            for kind, each in frames(source, *options, seconds=seconds).items()}


@lru_cache
def clip_hashes():
    return hashes(media()[1], seconds=10)


def read_frames(proxy, path='/cam', transport='tcp', seconds=3):
    """Returns frames() of a reader. One that the machine delays by a second gets fewer frames: then
    another one reads."""
    for _ in range(4):
        seen = len(proxy.lines)
        times = frames(proxy.url(path), '-rtsp_transport', transport, '-buffer_size', '4194304',
                       seconds=seconds)
        if not matches(proxy, rf' reader \S+ thinned: {re.escape(path)}:', seen):
            break
    return times


def read_hashes(proxy):
    """Returns {stream: hashes} of read_frames()."""
    return {kind: [frame for _, frame in each] for kind, each in read_frames(proxy).items()}


def check_frames(proxy, kinds, transport='tcp', path='/cam'):
    """Checks that a reader has the clip's frames in order, without a gap between first and last.
    Returns its frames()."""
    times = read_frames(proxy, path, transport)
    got = {kind: [frame for _, frame in each] for kind, each in times.items()}
    assert set(got) == set(kinds), set(got)
    for kind in kinds:
        whole, received = clip_hashes()[kind], got[kind]
        known = set(zip(whole, whole[1:] + whole[:1]))
        if kind == 'audio':
            received = received[1:]
        assert len(received) > 40, (kind, len(received))
        alien = [i for i, pair in enumerate(zip(received, received[1:])) if pair not in known]
        assert not alien, (kind, len(received), alien)
    return times


@lru_cache
def clip_frames():
    return frames(media()[1], seconds=10)


def sync(times, original=None):
    """Returns how much later the audio of frames() is to the video than in the original (default:
    the clip), in ms."""
    lags = {}
    for kind, each in times.items():
        known = {frame: time for time, frame in (original or clip_frames())[kind]}
        # The last ones, of about half a second: by then the player has had a sender report.
        lags[kind] = [(time, time - known[frame]) for time, frame in each if frame in known][-21:]
    # Each frame of audio beside the picture nearest to it, because tsdemux follows the sender's
    # clock, for both at once.
    apart = []
    for time, lag in lags['audio']:
        _, beside = min(lags['video'], key=lambda picture: abs(picture[0] - time))
        apart.append((lag - beside + ROUND / 2) % ROUND - ROUND / 2)
    return float(sorted(apart)[len(apart) // 2] * 1000)
