# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how old a picture is that a browser shows, from its making to the screen."""

import shutil
import sys
import time

import glass_source
import webrtc_page
from chromium import Chromium
from hls import Hls, HlsMediaMtx
from proc import Proc
from report import Column
from servers import PORT, Upstream
from tap import Skip
from webrtc import RTC_PORT, WhepMediaMtx

NAME = 'glass'
TITLE = 'age of the picture in a browser that plays HLS, or over WebRTC'
CASE, WHO, YARDSTICK = 'player', 'server', 'mediamtx'
LOG = False
COLUMNS = (
    Column('p50', 'age p50 ms', spread=True),
    Column('p95', 'p95 ms', spread=True),
    Column('stalls', 'stalls'),
)

SECONDS = 30  # that are measured
SETTLE = 15   # s, in which a page comes to its distance from the live edge, and the playlist is filled
START = 40    # s

# Reads the time in a picture, every 20 ms.
SAMPLE = '''(() => {
  const video = document.querySelector('video'), canvas = document.createElement('canvas');
  const width = %(width)d, height = %(height)d, across = %(across)d, down = %(down)d;
  canvas.width = width; canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  window.ages = []; window.stalls = 0;
  video.addEventListener('waiting', () => { stalls++; });
  setInterval(() => {
    context.drawImage(video, 0, 0, width, height);
    const data = context.getImageData(0, 0, width, height).data, bytes = [0, 0, 0, 0];
    for (let bit = 0; bit < across * down; bit++) {
      const x = Math.floor((bit %% across + 0.5) * width / across), y = Math.floor((Math.floor(bit / across) + 0.5) * height / down);
      bytes[bit >> 3] = bytes[bit >> 3] * 2 + (data[4 * (y * width + x)] > 127 ? 1 : 0);
    }
    const [a, b, c, sum] = bytes, made = (a * 256 + b) * 256 + c;
    if (((a + b + c) & 255) === sum) ages.push((Date.now() %% 16777216 - made + 16777216) %% 16777216);
  }, 20);
})()''' % {'width': glass_source.WIDTH, 'height': glass_source.HEIGHT, 'across': glass_source.COLUMNS,
           'down': glass_source.ROWS}

# Has hls.js play whole segments in the page of rtsp-proxy, in place of the page's own player.
PLAIN = '''(() => {
  const plain = Object.assign(document.createElement('video'), { muted: true, autoplay: true });
  hls.destroy();
  video.replaceWith(plain);
  hls = new Hls({ lowLatencyMode: false });
  hls.loadSource('/hls/s/plain.m3u8');
  hls.attachMedia(plain);
})()'''


class Page(Hls):
    source = 'publish'
    whole = {**Hls.whole, 'users': [{'name': 'any', 'permissions': [{'action': 'read'}, {'action': 'publish'}]}]}

    def page(self):
        return self.url('s').replace('/hls/', '/watch/').removesuffix('/index.m3u8')


class RtcPage(Page):
    """Its page plays over WebRTC, as browsers can."""

    def __init__(self, rig, *words):
        self.whole = {**Page.whole, 'webrtc': {'listen': f'{rig.server_address}:{RTC_PORT}'}}
        super().__init__(rig, *words)


class PageMediaMtx(HlsMediaMtx):
    source = 'publisher'

    def page(self):
        return self.url('s').removesuffix('index.m3u8')


class RtcPageMediaMtx(WhepMediaMtx):
    source = 'publisher'

    def page(self, path='s'):
        return super().page(path)


def one(rig, server_type, plain, seconds):
    with server_type(rig, {'s': server_type.source}, Upstream(always=server_type.source == 'publisher')) as server, \
         Proc(*rig.server, sys.executable, glass_source.__file__, f'rtsp://{server.address}:{PORT}/s'), \
         Chromium(prefix=rig.readers) as browser:
        time.sleep(2)  # until the stream is there
        webrtc_page.look(browser)
        browser.open(server.page())
        browser.wait('document.querySelector("video").currentTime > 0', START, 'it plays')
        time.sleep(SETTLE)
        if plain:
            browser.run(PLAIN)
            browser.wait('document.querySelector("video").currentTime > 5', START, 'it plays')
        browser.run(SAMPLE)
        time.sleep(seconds)
        ages, stalls = sorted(browser.run('ages')), browser.run('stalls')
        assert ('inbound-rtp' in str(webrtc_page.video(browser))) == (server_type in RTC), 'the page plays otherwise'
    assert len(ages) > 10 * seconds, f'{server_type.name} shows {len(ages)} pictures whose time can be read'
    return {'p50': ages[len(ages) // 2], 'p95': ages[len(ages) * 95 // 100], 'stalls': stalls}


RTC = RtcPage, RtcPageMediaMtx


def run(rig, quick):
    for program in 'chromium', 'ffmpeg':
        if not shutil.which(program):
            raise Skip(f'no {program} found')
    for case, plain in ('LL-HLS, parts of 200 ms', False), ('HLS, segments of 1 s', True):
        for _ in range(1 if quick else 3):
            for server_type in (Page,) if plain else (Page, PageMediaMtx):
                if server_type.there():
                    yield case, server_type.name, one(rig, server_type, plain, SECONDS // 2 if quick else SECONDS)
    for _ in range(1 if quick else 3):
        for server_type in RTC:
            if server_type.there():
                yield 'WebRTC', server_type.name, one(rig, server_type, False, SECONDS // 2 if quick else SECONDS)
