# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what publishers over WebRTC (WHIP) cost a server."""

import shutil
import subprocess
import tempfile
import time

from goprogram import go_program
from proc import Proc
from report import Column
from servers import Upstream, clip_of
from tap import Skip
from webrtc import HTTP_PORT, RTC_PORT, Whep, WhepMediaMtx

NAME = 'publishers'
TITLE = 'publishers over WebRTC (WHIP) of H.264, keyframes every 2 s, without readers'
CASE, WHO, YARDSTICK = 'stream, publishers', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('packet', 'us CPU a packet', '{:.2f}', spread=True),
    Column('cpu', 'CPU %', '{:.0f}'),
    Column('rate', 'packets a second'),
    Column('memory', 'KiB a publisher'),
)

START, SETTLE, SECONDS = 30, 3, 10


class Whip(Whep):
    source = 'publish'
    whole = {'users': [{'name': 'any', 'permissions': [{'action': 'publish'}]}]}


class WhipMediaMtx(WhepMediaMtx):
    source = 'publisher'


def one(rig, server_type, megabits, publishers):
    names = [f's{n}' for n in range(publishers)]
    with tempfile.TemporaryDirectory() as folder, \
         server_type(rig, dict.fromkeys(names, server_type.source), Upstream(always=True)) as server:
        stream = f'{folder}/stream.h264'
        subprocess.run(['ffmpeg', '-v', 'error', '-i', clip_of(megabits), '-an', '-c', 'copy', '-bsf:v', 'h264_mp4toannexb',
                        stream], check=True)
        program = go_program('webrtc', folder)
        rig.count_to(RTC_PORT)
        idle = server.usage()
        with Proc(*rig.readers, program, 'publish', '--publishers', publishers, stream,
                  f'http://{server.address}:{HTTP_PORT}/s{{n}}/whip') as load:
            end = time.monotonic() + START
            while load.lines.count('CONNECTED') < publishers:
                assert load.running() and time.monotonic() < end, load.lines[-3:]
                time.sleep(0.1)
            time.sleep(SETTLE)
            before, packets = server.usage(), rig.packets('sent')
            time.sleep(SECONDS)
            after, packets = server.usage(), rig.packets('sent') - packets
            assert load.running(), 'the publishers have ended'
    rig.let_all_through()
    cpu = after.cpu - before.cpu
    return {'packet': 1e6 * cpu / packets, 'cpu': 100 * cpu / (after.at - before.at), 'rate': packets / (after.at - before.at),
            'memory': (after.rss - idle.rss) / 1024 / publishers}


def run(rig, quick):
    if not rig.real or not shutil.which('ffmpeg'):
        raise Skip('needs a network of two hosts, and FFmpeg')
    for megabits, publishers in ((1, 10),) if quick else ((1, 10), (4, 10), (1, 40)):
        for _ in range(1 if quick else 3):
            for server_type in Whip, WhipMediaMtx:
                if server_type.there():
                    yield f'{megabits} Mb/s, {publishers}', server_type.name, one(rig, server_type, megabits, publishers)
