# SPDX-License-Identifier: LGPL-2.1-or-later
"""The light of places of a stream's pictures."""

import re
import subprocess

from tap import SLOWER


def white_picture(path):
    """Makes a white picture of 64x64, PNG or JPEG by the end of its name. Returns the path."""
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'color=white:s=64x64', '-frames:v', '1', path],
                   check=True, timeout=30 * SLOWER)
    return path


def course(url, place, seconds=2):
    """Returns [(time in s, mean light from 0 to 255)] of a place (a crop filter) of each picture."""
    done = subprocess.run(
        ['ffmpeg', '-v', 'info', '-nostats', '-rtsp_transport', 'tcp', '-i', url, '-t', str(seconds), '-an', '-vf',
         f'crop={place},signalstats,metadata=print:key=lavfi.signalstats.YAVG', '-f', 'null', '-'],
        capture_output=True, text=True, timeout=SLOWER * (60 + seconds), check=True)
    return [(float(time), float(light)) for time, light in
            re.findall(r'metadata[^\n]*pts_time:(\S+)\n[^\n]*YAVG=(\S+)', done.stderr)]


def light(url, *places):
    """Returns the mean light of places of the pictures: for each, the greatest of 2 s."""
    return [max(each for _, each in course(url, place)) for place in places]
