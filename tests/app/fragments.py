# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles and clips of fragmented MP4, of each kind that writers make: their duration, and their last fragment."""

import glob
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled
from films import Player, ffmpeg, hashes
from tap import SLOWER, run, test
from title_proxy import TitleProxy, pictures

SECONDS, FPS = 6, 25
FLAGS = {
    'indexed.mp4': 'frag_keyframe+empty_moov',
    'based.mp4': 'frag_keyframe+empty_moov+default_base_moof',
    'headed.mp4': 'frag_keyframe',
    'bare.mp4': 'frag_keyframe+empty_moov+default_base_moof+skip_trailer',
    'dash.mp4': 'dash',
    'sidx.mp4': 'dash+global_sidx+skip_trailer',
    'cmaf.mp4': 'cmaf',
}
LONG = 'long.mp4', 'long-headed.mp4', 'long-bare.mp4' # one fragment of 4 s, and the rest
MADE = 'hls.mp4', 'many.mp4', 'untimed.mp4', 'cut.mp4', 'wrong.mp4'


def encode(path, *words, gop=FPS, frames=0):
    ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=160x120:r={FPS}', '-f', 'lavfi', '-i', 'sine=440:r=48000', '-t', str(SECONDS),
           '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', str(frames), '-g', str(gop), '-sc_threshold', '0', '-pix_fmt',
           'yuv420p', '-c:a', 'aac', *words, path)


def boxes(data, name):
    """Returns where the names of these boxes are."""
    return [found.start() for found in re.finditer(re.escape(name), data)]


def put(data, at, number):
    return data[:at] + number.to_bytes(4, 'big') + data[at + 4:]


def with_duration(data, movie):
    """Returns the file with a mehd, which says so many seconds, in its mvex."""
    moov, mvhd, mvex = (boxes(data, name)[0] - 4 for name in (b'moov', b'mvhd', b'mvex'))
    box = b'\0\0\0\x10mehd\0\0\0\0' + (movie * int.from_bytes(data[mvhd + 20:mvhd + 24], 'big')).to_bytes(4, 'big')
    for at in moov, mvex:
        data = put(data, at, int.from_bytes(data[at:at + 4], 'big') + len(box))
    return data[:mvex + 8] + box + data[mvex + 8:]


def make_others(folder):
    """Makes files that FFmpeg does not write, of those that it does."""
    path = lambda name: os.path.join(folder, name)
    encode(path('.hls.m3u8'), '-f', 'hls', '-hls_segment_type', 'fmp4', '-hls_time', '1', '-hls_list_size', '0', '-hls_fmp4_init_filename',
           '.init.mp4', '-hls_segment_filename', path('.%03d.m4s'))
    encode(path('many.mp4'), '-map', '0', '-map', '1', '-map', '1', '-map', '1', '-movflags', FLAGS['bare.mp4'], '-frag_interleave', '1')
    files = {}
    for name in [*FLAGS, '.init.mp4']:
        with open(path(name), 'rb') as file:
            files[name] = file.read()
    files['hls.mp4'] = files['.init.mp4']
    for segment in sorted(glob.glob(path('.0*.m4s'))):
        with open(segment, 'rb') as file:
            files['hls.mp4'] += file.read()
    files['untimed.mp4'] = files['indexed.mp4'].replace(b'tfdt', b'free')
    files['wrong.mp4'] = with_duration(files['bare.mp4'], 100)
    last = boxes(files['indexed.mp4'], b'moof')[-1]
    files['cut.mp4'] = files['indexed.mp4'][:last + 100]
    for name in MADE:
        if name in files:
            with open(path(name), 'wb') as file:
                file.write(files[name])


@lru_cache
def folder():
    made = tempfile.TemporaryDirectory()
    for name, flags in FLAGS.items():
        encode(os.path.join(made.name, name), '-movflags', flags)
    for name in LONG:
        encode(os.path.join(made.name, name), '-movflags', FLAGS[name.replace('long.', 'based.').replace('long-', '')],
               gop=4 * FPS, frames=2)
    make_others(made.name)
    return made


def file_of(name):
    return os.path.join(folder().name, name)


@lru_cache
def duration(name):
    if name == 'cut.mp4':
        return SECONDS - 1 # the last fragment is not whole
    found = subprocess.run(['ffprobe', '-v', 'error', '-show_entries', 'packet=pts_time,duration_time', '-of', 'csv=p=0', file_of(name)],
                           capture_output=True, text=True, timeout=50 * SLOWER, check=True).stdout.split()
    return max(sum(float(each) for each in line.split(',') if each[:1].isdigit()) for line in found)


def check_title(proxy, name):
    """Checks that the whole duration is told, and that the last fragment and the others can be sought."""
    whole = 'indexed.mp4' if name == 'cut.mp4' else name # FFmpeg refuses the one that is cut
    source = pictures(file_of(whole), '-r', str(FPS))[:round(duration(name) * FPS)]
    with Player(proxy, name) as player:
        assert player.status == 200, (name, player.status)
        told = re.search(r'a=range:npt=([\d.]+)-([\d.]+)', player.sdp)
        assert abs(float(told[1])) < 0.1 and abs(float(told[2]) - duration(name)) < 0.1, (name, told[0], duration(name))
        gop, delay = (4, 0.16) if name in LONG else (1, 0) # of reordered pictures
        for position in duration(name) - 0.3, 2.5, 0.5, 0:
            starts = player.play(Range=f'npt={position:.3f}-')
            assert -0.05 < starts - position // gop * gop < 0.05 + delay, (name, position, starts)
            player.bye.clear()
            player.read_to_end()
            got = player.pictures()
            assert got and got == source[-len(got):], (name, position, len(got), len(source))
            expected = (duration(name) - starts) * FPS
            assert abs(len(got) - expected) <= 3, (name, position, len(got), expected)


def check_all(isolate):
    names = [*FLAGS, *LONG, *MADE]
    with TitleProxy({'upstream': f'file://{folder().name}/'}, isolate=isolate) as proxy, \
            ThreadPoolExecutor(len(names)) as pool:
        for done in [pool.submit(check_title, proxy, name) for name in names]:
            done.result()


@test
def fragmented_titles_have_their_duration():
    """titles of fragmented MP4 tell their whole duration and play from their last fragment, whatever their header says"""
    check_all('auto')


@test
def they_have_it_without_workers():
    """so they do without worker processes"""
    check_all('no')


@test
def clips_begin_again_with_their_first_fragment():
    """a clip of fragmented MP4 begins again with its first picture, also where that is in the header"""
    names = 'headed.mp4', 'indexed.mp4', 'bare.mp4'
    with Controlled({f'/{name}': {'upstream': f'file://{file_of(name)}'} for name in names}) as proxy, ThreadPoolExecutor(3) as pool:
        def read(name):
            return hashes(proxy.url(f'/{name}'), '-rtsp_transport', 'tcp', '-t', str(SECONDS + 2))
        for name, got in zip(names, pool.map(read, names)):
            source = pictures(file_of(name), '-r', str(FPS))
            first = source.index(got[0])
            assert got == (source + source + source)[first:first + len(got)], (name, first, len(got))


if __name__ == '__main__':
    run()
