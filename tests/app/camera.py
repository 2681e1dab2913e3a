# SPDX-License-Identifier: LGPL-2.1-or-later
"""A scripted camera that sends real H.264 pictures in a loop, and what readers see of it."""

import functools
import re
import shutil
import subprocess

from scripted import SSRC, VIDEO, rtp
from tap import SLOWER, Skip

RATE, GOP, FRAME = 25, 25, 3600  # pictures a second, pictures from a keyframe on, ticks
PAYLOAD_MAX = 1200


def ffmpeg(*words, data=None, timeout=60):
    program = shutil.which('ffmpeg')
    if not program:
        raise Skip('ffmpeg is not on the PATH')
    done = subprocess.run([program, '-nostdin', '-loglevel', 'error', *words], input=data,
                          capture_output=True, timeout=SLOWER * timeout, check=False)
    return done


@functools.lru_cache(None)
def film(size='320x240', seconds=2):
    """Returns the pictures of a film, each as a list of NAL units, and their hashes when they are
    decoded. The film may be sent in a loop."""
    made = ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s={size}:r={RATE}', '-t', str(seconds), '-c:v',
                  'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-x264-params',
                  f'keyint={GOP}:min-keyint={GOP}:scenecut=0:slices=1:sliced-threads=0:aud=1',
                  '-pix_fmt', 'yuv420p', '-f', 'h264', '-')
    assert made.returncode == 0, made.stderr
    pictures = []
    for unit in re.split(rb'\x00\x00\x00?\x01', made.stdout)[1:]:
        kind = unit[0] & 31
        if kind == 9:
            pictures.append([])
        elif kind != 6:
            pictures[-1].append(unit)
    assert len(pictures) == seconds * RATE, len(pictures)
    return pictures, hashes('-f', 'h264', '-i', '-', data=made.stdout)


def hashes(*words, data=None, timeout=60):
    """Returns the hashes of the pictures that ffmpeg decodes."""
    done = ffmpeg(*words, '-map', '0:v', '-f', 'framemd5', '-', data=data, timeout=timeout)
    return [line.split(b',')[-1].strip().decode() for line in done.stdout.splitlines()
            if not line.startswith(b'#')]


def payloads(picture, most=PAYLOAD_MAX):
    """Returns the payloads of a picture's packets (RFC 6184, FU-A)."""
    found = []
    for unit in picture:
        if len(unit) <= most:
            found.append(unit)
            continue
        pieces = [unit[at:at + most] for at in range(1, len(unit), most)]
        for number, piece in enumerate(pieces):
            flags = (0x80 if number == 0 else 0) | (0x40 if number == len(pieces) - 1 else 0)
            found.append(bytes([unit[0] & 0xe0 | 28, flags | unit[0] & 31]) + piece)
    return found


def send_film(session, change=None, most=PAYLOAD_MAX, size='320x240', pause=1 / RATE, stop=None):
    """Sends the film until the session ends, with the numbers that `change(number of the packet,
    of the picture)` replaces: a dictionary with `seq`, `timestamp`, `ssrc` or `pt`."""
    pictures, _ = film(size)
    seq = 0
    try:
        for number in range(stop or 1000000):
            parts = payloads(pictures[number % len(pictures)], most)
            for part, payload in enumerate(parts):
                numbers = {'seq': seq, 'timestamp': number * FRAME, 'ssrc': SSRC, 'pt': 96,
                           **(change(seq, number) if change else {})}
                packet = bytearray(rtp(numbers['seq'], numbers['timestamp'], payload,
                                       ssrc=numbers['ssrc']))
                packet[1] = numbers['pt'] | (0x80 if part == len(parts) - 1 else 0)
                session.send(VIDEO, bytes(packet))
                seq += 1
            if session.left.wait(pause):
                return
    except OSError:
        pass


def check_film(url, number=60, transport='tcp', size='320x240'):
    """Checks that ffmpeg decodes this number of pictures, which are the film's, one after another
    from a keyframe on."""
    _, expected = film(size)
    got = hashes('-rtsp_transport', transport, '-i', url, '-frames:v', str(number),
                 '-fps_mode', 'passthrough')
    assert len(got) == number, (len(got), number)
    start = expected.index(got[0])
    assert start % GOP == 0, start
    wrong = [n for n, each in enumerate(got) if each != expected[(start + n) % len(expected)]]
    assert not wrong, wrong
