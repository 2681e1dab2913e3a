# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stages opus and aac: sound in another codec, over RTSP to ffmpeg, beside untouched video."""

import subprocess

from livets import Served
from tap import run, test

TONE = 440


def crossings(samples):
    return sum(1 for a, b in zip(samples, samples[1:]) if a < 0 <= b)


def check(clip, stage, codec, video):
    with Served(clip, mount={'pipeline': ['pull', stage]}) as proxy:
        shown = subprocess.run(
            ['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-show_entries', 'stream=codec_name', '-of',
             'csv=p=0', proxy.url()], capture_output=True, text=True, timeout=40, check=True)
        assert sorted(shown.stdout.split()) == sorted([codec, video]), shown.stdout
        heard = subprocess.run(
            ['ffmpeg', '-v', 'error', '-rtsp_transport', 'tcp', '-i', proxy.url(), '-t', '2', '-vn', '-ac', '1',
             '-ar', '48000', '-f', 's16le', '-'], capture_output=True, timeout=40, check=True).stdout
        samples = memoryview(heard).cast('h')[24000:72000]  # one second
        assert len(samples) == 48000, len(samples)
        assert abs(crossings(samples) - TONE) <= 2, crossings(samples)


@test
def aac_becomes_opus():
    check('b.mp4', 'opus', 'opus', 'h264')


@test
def opus_becomes_aac():
    check('vp8.webm', 'aac', 'aac', 'vp8')


if __name__ == '__main__':
    run()
