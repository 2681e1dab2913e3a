# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what readers over WebRTC cost a server, how soon they have a picture, and what Chromium shows
of a stream that loses packets."""

import os
import shutil
import statistics
import time

import webrtc_page
from chromium import Chromium
from load import JsonProc
from report import Column
from servers import BUILD, PLUGINS, MediaMtx, Origin, Upstream, Weir

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
    Column('shown', 'first picture in Chromium p50 ms', spread=True),
    Column('freezes', 'freezes in 30 s'),
)

HTTP_PORT, RTC_PORT = 18889, 18189
SECONDS = 10   # that each reader reads
ARRIVALS = 50  # readers a second
PAGES = 12     # that are opened for the first picture
LOSS_EVERY, LOSS_SECONDS = 50, 30


class Whep(Weir):
    def words(self, mounts):
        self.whole = {**self.whole, 'http': {'listen': f'{self.address}:{HTTP_PORT}'},
                      'webrtc': {'listen': f'{self.address}:{RTC_PORT}'}}
        return super().words(mounts)

    def url(self, path):
        return f'http://{self.address}:{HTTP_PORT}/{path}/whep'

    def page(self, path):
        return f'http://{self.address}:{HTTP_PORT}/watch/{path}'


class WhepMediaMtx(MediaMtx):
    whole = {'webrtc': True, 'webrtcAddress': f':{HTTP_PORT}', 'webrtcLocalUDPAddress': f':{RTC_PORT}'}

    def url(self, path):
        return f'http://{self.address}:{HTTP_PORT}/{path}/whep'

    def page(self, path):
        return f'http://{self.address}:{HTTP_PORT}/{path}/'


class Readers(JsonProc):
    def __init__(self, rig, url, readers, seconds, at_once=False):
        arrivals = () if at_once else ('--arrivals', f'uniform:{ARRIVALS}')
        super().__init__(*rig.readers, BUILD / 'apps/rtsp-load/rtsp-load', '--whep', '--json', '--readers', readers,
                         '--duration', seconds, *arrivals, url, env={**os.environ, **PLUGINS})


def at_once(rig, server_type, readers):
    rig.let_all_through()
    with Origin(rig, 1) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server:
        with Readers(rig, server.url('s'), 1, 4) as first:
            first.result(40)
        with Readers(rig, server.url('s'), readers, SECONDS, at_once=True) as load:
            result = load.result(60)
    row = {'received': result['packets'], 'lost': result['lost'], 'delivered': result['delivered'],
           'failed': result['failed'], 'answer': result['answer_p50_ms']}
    if result['keyframes']:
        row.update(p50=result['keyframe_p50_ms'], p99=result['keyframe_p99_ms'])
    return row


def first_pictures(rig, server_type):
    rig.let_all_through()
    with Origin(rig, 1) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server, \
         Chromium(prefix=rig.readers) as browser:
        webrtc_page.look(browser)
        webrtc_page.open_page(browser, server.page('s'))  # the browser's own first time
        shown = []
        for i in range(PAGES):
            time.sleep(1 + i * 2 / PAGES)  # everywhere between two keyframes
            shown.append(webrtc_page.open_page(browser, server.page('s')))
    return {'shown': statistics.median(shown)}


def losses(rig, server_type):
    rig.let_all_through()
    with Origin(rig, 1) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server, \
         Chromium(prefix=rig.readers) as browser, rig.unsegmented():
        webrtc_page.look(browser)
        webrtc_page.open_page(browser, server.page('s'))
        time.sleep(3)
        rig.lose_udp(LOSS_EVERY)
        before = webrtc_page.video(browser)
        time.sleep(LOSS_SECONDS)
        after = webrtc_page.video(browser)
    rig.let_all_through()
    assert after['nackCount'] > before['nackCount'], 'nothing was lost'
    # What has come as a retransmission of RFC 4588 stays counted as lost.
    lost, again = (after.get(key, 0) - before.get(key, 0) for key in ('packetsLost', 'retransmittedPacketsReceived'))
    return {'freezes': after['freezeCount'] - before['freezeCount'], 'lost': max(0, lost - again)}


def one(rig, server_type, megabits, readers):
    rig.let_all_through()
    with Origin(rig, megabits) as origin, \
         server_type(rig, {'s': origin.url}, Upstream(always=True)) as server:
        with Readers(rig, server.url('s'), 1, 4) as first:
            first.result(40)
        idle = server.usage()
        with Readers(rig, server.url('s'), readers, readers / ARRIVALS + SECONDS) as load:
            time.sleep(readers / ARRIVALS + SECONDS / 2)
            busy = server.usage()
            result = load.result(60)
        end = server.usage()
    row = {'cpu': 100 * (end.cpu - idle.cpu) / (end.at - idle.at), 'received': result['packets'],
           'lost': result['lost'], 'delivered': result['delivered'], 'failed': result['failed'],
           'memory': (busy.rss - idle.rss) / 1024 / readers, 'threads': busy.threads,
           'answer': result['answer_p50_ms']}
    if result['keyframes']:
        row.update(p50=result['keyframe_p50_ms'], p99=result['keyframe_p99_ms'])
    if result['packets']:
        row['packet'] = 1e6 * (end.cpu - idle.cpu) / result['packets']
    return row


def run(rig, quick):
    for megabits, readers in ((4, 50),) if quick else ((1, 50), (1, 200), (4, 50), (4, 200), (4, 1000)):
        for _ in range(1 if quick else 3):
            for server_type in Whep, WhepMediaMtx:
                if server_type.there():
                    yield f'{megabits} Mb/s, {readers}', server_type.name, one(rig, server_type, megabits, readers)
    cases = [('1 Mb/s, 200 at once', lambda *words: at_once(*words, 200))]
    if shutil.which('chromium') and rig.real:
        cases += ('1 Mb/s, Chromium', first_pictures), (f'1 Mb/s, Chromium, 1 packet in {LOSS_EVERY} lost', losses)
    for case, measure in cases:
        for _ in range(1 if quick else 3):
            for server_type in Whep, WhepMediaMtx:
                if server_type.there():
                    yield case, server_type.name, measure(rig, server_type)
