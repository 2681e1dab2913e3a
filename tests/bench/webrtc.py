# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what readers over WebRTC cost a server, and how soon they have a picture."""

import json
import tempfile
import time

from goprogram import go_program
from load import JsonProc
from report import Column
from servers import MediaMtx, Origin, Upstream, Weir

NAME = 'webrtc'
TITLE = 'readers over WebRTC (WHEP) of one stream of H.264, keyframes every 2 s'
CASE, WHO, YARDSTICK = 'stream, readers', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('packet', 'us CPU a packet', '{:.2f}', spread=True),
    Column('cpu', 'CPU %', '{:.0f}'),
    Column('delivered', 'delivered %', '{:.2f}'),
    Column('lost', 'lost', '{:.0f}'),
    Column('memory', 'KiB a reader'),
    Column('threads', 'threads'),
    Column('answer', 'answer p50 ms'),
    Column('p50', 'first keyframe p50 ms'),
    Column('p99', 'p99 ms'),
    Column('failed', 'failed'),
)

HTTP_PORT, RTC_PORT = 18889, 18189
SECONDS = 10  # that each reader reads
ARRIVE = 20   # ms from one reader to the next


class Whep(Weir):
    whole = {'http': {'listen': f'0.0.0.0:{HTTP_PORT}'}, 'webrtc': {'listen': f'0.0.0.0:{RTC_PORT}'}}

    def url(self, path):
        return f'http://{self.address}:{HTTP_PORT}/{path}/whep'


class WhepMediaMtx(MediaMtx):
    whole = {'webrtc': True, 'webrtcAddress': f':{HTTP_PORT}', 'webrtcLocalUDPAddress': f':{RTC_PORT}'}

    def url(self, path):
        return f'http://{self.address}:{HTTP_PORT}/{path}/whep'


class Readers(JsonProc):
    """The Go client, which shares no code with Weir."""

    def __init__(self, program, rig, url, readers, seconds):
        super().__init__(*rig.readers, program, 'read', '--json', '--codecs', 'h264', '--readers', readers,
                         '--stagger', ARRIVE, '--duration', seconds, url)

    def result(self, timeout):
        self.wait(timeout)
        text = self.output()
        return json.loads(text[text.index('['):text.rindex(']') + 1])


def nth(values, share):
    values = sorted(values)
    return values[min(int(len(values) * share), len(values) - 1)] if values else None


def one(program, rig, server_type, megabits, readers):
    rig.let_all_through()
    with Origin(rig, megabits) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server:
        with Readers(program, rig, server.url('s'), 1, 3) as first:
            first.result(40)
        idle = server.usage()
        with Readers(program, rig, server.url('s'), readers, SECONDS) as load:
            time.sleep(readers * ARRIVE / 1000 + SECONDS / 2)
            busy = server.usage()
            results = load.result(60)
        end = server.usage()
    tracks = [track for result in results for track in result['tracks']]
    packets = sum(track['packets'] for track in tracks)
    lost = sum(track['lost'] for track in tracks)
    keyframes = [track['keyframe_ms'] for track in tracks if track['keyframe_ms'] >= 0]
    row = {'cpu': 100 * (end.cpu - idle.cpu) / (end.at - idle.at), 'received': packets, 'lost': lost,
           'memory': (busy.rss - idle.rss) / 1024 / readers, 'threads': busy.threads,
           'answer': nth([result['answered_ms'] for result in results], 0.5),
           'failed': sum(result['status'] != 'ok' or not result['tracks'] for result in results)}
    if packets:
        row.update(packet=1e6 * (end.cpu - idle.cpu) / packets, delivered=100 * packets / (packets + lost),
                   p50=nth(keyframes, 0.5), p99=nth(keyframes, 0.99))
    return row


def run(rig, quick):
    with tempfile.TemporaryDirectory() as folder:
        program = go_program('webrtc', folder)
        for megabits, readers in ((1, 50),) if quick else ((1, 50), (1, 200), (4, 50), (4, 200)):
            for _ in range(1 if quick else 3):
                for server_type in Whep, WhepMediaMtx:
                    if server_type.there():
                        yield (f'{megabits} Mb/s, {readers}', server_type.name,
                               one(program, rig, server_type, megabits, readers))
