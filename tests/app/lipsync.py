# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clips with a white picture and a click each second, and how far these are apart in a stream."""

import array
import os
import re
import subprocess

from livets import CLIPS, clips
from tap import SLOWER

# Each second a white picture, and a click whose middle is at the beginning of that picture.
FLASH = 'color=black:s=160x120:r=25,drawbox=c=white:t=fill:enable=not(mod(n\\,25))'
CLICK = 'aevalsrc=0.8*sin(2*PI*2000*t)*exp(-pow((mod(t+0.5\\,1)-0.5)/0.003\\,2)):s=48000'


def flashes(name, *words):
    """Makes a clip of 30 s. Returns its name for clip()."""
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', FLASH, '-f', 'lavfi', '-i', CLICK, '-t', '30',
                    '-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '25', '-pix_fmt',
                    'yuv420p', *words, os.path.join(clips().name, name)], check=True, stdin=subprocess.DEVNULL)
    CLIPS[name] = []
    return name


def clicks(samples, times):
    """Returns the time of the middle of each click, for `times` [(time of a frame, its samples)]."""
    at = [time + n / 48000 for time, count in times for n in range(count)]
    found, n = [], 0
    while n < len(samples):
        if abs(samples[n]) < 6000:
            n += 1
            continue
        loud = range(max(0, n - 960), min(len(samples), n + 1440))
        energy = sum(samples[i] ** 2 for i in loud)
        found.append(at[round(sum(i * samples[i] ** 2 for i in loud) / energy)])
        n += 9600
    return found


def decode(url, seconds, *filters):
    """Returns [(time in s, mean light from 0 to 255)] of the pictures after these filters, [(time in s, number of samples)]
    of the frames of sound, and the samples of one channel."""
    done = subprocess.run(
        ['ffmpeg', '-v', 'info', '-nostats', '-copyts', '-rtsp_transport', 'tcp', '-t', str(seconds), '-i', url, '-map', '0:v',
         '-vf', ','.join((*filters, 'signalstats', 'metadata=print:key=lavfi.signalstats.YAVG')), '-f', 'null', '-', '-map', '0:a',
         '-af', 'ashowinfo', '-ac', '1', '-f', 's16le', 'pipe:1'],
        capture_output=True, timeout=SLOWER * (seconds + 40), check=True)
    text = done.stderr.decode()
    pictures = re.findall(r'metadata[^\n]*pts_time:(\S+)\n[^\n]*YAVG=(\S+)', text)
    frames = re.findall(r'ashowinfo.*pts_time:(\S+).* nb_samples:(\d+)', text)
    return ([(float(time), float(light)) for time, light in pictures], [(float(time), int(n)) for time, n in frames],
            array.array('h', done.stdout))


def lateness(url, spread=1):
    """Returns how much later the clicks are than their white pictures, in ms. Two of them may differ by `spread`."""
    pictures, frames, samples = decode(url, 7)
    white = [time for time, light in pictures if light > 150]
    heard = clicks(samples, frames)
    assert len(heard) > 3 and len(white) > 3, (heard, white)
    # The last ones: ffmpeg knows the tracks' relation from the first sender reports on.
    late = [1000 * min((click - time for time in white), key=abs) for click in heard[-3:-1]]
    assert max(late) - min(late) < spread, late
    return late[0]
