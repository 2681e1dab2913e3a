# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount has RTSP media only while RTSP readers want it: one that is recorded, or read over HLS, SRT
or HTTP-TS, has neither UDP ports nor sinks for readers that nobody has asked for."""

import os
import re
import subprocess
import tempfile

from control import CLIP_URI, Controlled, Watch
from proc import open_files
from proxy import QUICK, wait_until
from tap import SLOWER, run, test

FACTORIES = {'GST_DEBUG': 'GST_ELEMENT_FACTORY:4', 'GST_DEBUG_NO_COLOR': '1'}
TRACKS = 2
PAYLOADER, SINK = 'rtprelaypay', 'multiudpsink' # of RTSP media; fanoutsink takes the name of the sink


def udp_sockets(pid):
    """Returns how many UDP sockets a process has."""
    known = set()
    for name in 'udp', 'udp6':
        with open(f'/proc/{pid}/net/{name}', encoding='ascii') as file:
            known |= {f'socket:[{line.split()[9]}]' for line in list(file)[1:]}
    return sum(name in known for name in open_files(pid))


def made(proxy, element):
    return sum(f'creating element "{element}"' in line for line in proxy.lines)


def size(folder):
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(folder) for name in names)


def grows(folder):
    before = size(folder)
    wait_until(lambda: size(folder) > before + 200000, 20, 'the recording goes on')


def recorded(folder, upstream, transport):
    return Controlled({'/cam': {'upstream': upstream.url(), 'transport': transport, **QUICK,
                                'record': {'folder': folder, 'part': '200ms'}}}, env=FACTORIES)


def check_recorded(transport, n_sockets):
    with tempfile.TemporaryDirectory() as folder, Controlled({'/cam': {'upstream': CLIP_URI, **QUICK}}) as origin, \
            recorded(folder, origin, transport) as proxy:
        grows(folder)
        assert udp_sockets(proxy.pid) == n_sockets, udp_sockets(proxy.pid)
        assert made(proxy, PAYLOADER) == made(proxy, SINK) == 0
        for _ in range(2):
            with Watch(proxy) as reader:
                reader.take(200)
                assert udp_sockets(proxy.pid) > n_sockets
            wait_until(lambda: udp_sockets(proxy.pid) == n_sockets, 20, 'the media of the reader has gone')
            grows(folder)
        assert made(proxy, PAYLOADER) == 2 * TRACKS, made(proxy, PAYLOADER)
        assert proxy.stop() == 0


@test
def a_recorded_mount_has_no_sockets_of_its_own_until_an_rtsp_reader_comes():
    check_recorded('tcp', 0)


@test
def a_recorded_mount_has_its_upstream_s_sockets_only():
    check_recorded('udp', 2 * TRACKS)


@test
def readers_of_other_protocols_need_no_rtsp_media():
    with Controlled({'/cam': {'upstream': CLIP_URI, **QUICK}}, env=FACTORIES, hls={}, http={'listen': '127.0.0.1:0'}) as proxy:
        web = proxy.wait_for_line(r' titles (http://[\d.]+:\d+)')[1]
        for url in f'{web}/hls/cam/index.m3u8', f'{web}/ts/cam':
            done = subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-i', url, '-frames:v', '50', '-f', 'framehash', '-'],
                                  capture_output=True, text=True, timeout=60 * SLOWER, check=True)
            assert len(re.findall(r'^0, ', done.stdout, re.M)) == 50, done.stdout
        assert made(proxy, PAYLOADER) == made(proxy, SINK) == 0
        assert proxy.stop() == 0


@test
def a_mount_that_runs_without_readers_keeps_a_keyframe_for_the_first_one():
    with Controlled({'/cam': {'upstream': CLIP_URI, 'on-demand': False, **QUICK}}, env=FACTORIES) as proxy:
        wait_until(lambda: made(proxy, PAYLOADER) == TRACKS, 20, 'the media is there before the first reader')
        with Watch(proxy) as reader:
            reader.take()
        assert made(proxy, PAYLOADER) == TRACKS
        assert proxy.stop() == 0


if __name__ == '__main__':
    run()
