# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium plays live mounts by WebRTC on the page /watch, and by HLS where WebRTC cannot."""

import subprocess
import tempfile

from chromium import Chromium
from hlsweb import Web, clip
from proc import Proc
from proxy import wait_until
from tap import SLOWER, run, test

WEBRTC = {'webrtc': {'listen': '127.0.0.1:0'}}
LOADED = 'performance.getEntriesByType("resource").map((each) => each.name)'
FRAMES = 'video.getVideoPlaybackQuality().totalVideoFrames'


def open_page(browser, proxy, path='/cam'):
    browser.open(f'{proxy.web}/watch{path}')
    # The page before may still be there.
    browser.wait(f'location.pathname === "/watch{path}" && document.readyState === "complete"', 30, 'the page')


def wait_for_frames(browser, n, more='true'):
    """Waits until n frames more were shown. `more` is a further condition. Returns how many were shown in all."""
    start = browser.run(FRAMES) or 0
    browser.wait(f'{FRAMES} >= {start + n} && {more}', 40, f'{n} frames')
    return browser.run(FRAMES)


def ids(proxy):
    return [reader['id'] for reader in proxy.get('/v1/readers')['readers'] if reader['transport'] == 'WebRTC']


def brightness(browser):
    """Returns the deviation of the brightness of what the page's video shows: a black picture has none."""
    return browser.run('''(() => { const canvas = document.createElement('canvas');
        canvas.width = 64; canvas.height = 36; const context = canvas.getContext('2d');
        context.drawImage(video, 0, 0, 64, 36); const data = context.getImageData(0, 0, 64, 36).data;
        const all = []; for (let i = 0; i < data.length; i += 4) all.push(data[i + 1]);
        const mean = all.reduce((a, b) => a + b) / all.length;
        return Math.sqrt(all.reduce((a, b) => a + (b - mean) ** 2, 0) / all.length); })()''')


@test(timeout=120)
def the_page_plays_by_webrtc():
    with Web(**WEBRTC) as proxy, Chromium() as browser:
        open_page(browser, proxy)
        wait_for_frames(browser, 75, 'state.dataset.way === "WebRTC"')
        assert brightness(browser) > 20
        # A busy machine may have delayed the page.
        browser.wait('/^WebRTC, latency 0\\.\\d\\d s, 320×180$/.test(state.textContent)', 30, 'a low latency')
        assert not any(each.endswith('/hls.min.js') for each in browser.run(LOADED)), browser.run(LOADED)
        assert browser.run('problem.hidden') is True, browser.run('problem.textContent')
        # Browsers refuse sound at the start.
        assert browser.run('!unmute.hidden && video.muted') is True
        browser.run('unmute.click()')
        browser.wait('unmute.hidden && !video.muted && video.srcObject.getAudioTracks().length === 1', 10, 'sound')
        first, = ids(proxy)
        open_page(browser, proxy)
        wait_for_frames(browser, 25)
        wait_until(lambda: ids(proxy) and first not in ids(proxy), 10, 'the session before to end with its page')


@test(timeout=120)
def pictures_with_b_slices_are_shown_without_these():
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        path = f'{folder}/b.mp4'
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25', '-t', '20', '-c:v',
                        'libx264', '-preset', 'veryfast', '-bf', '3', '-profile:v', 'high', '-g', '50', '-pix_fmt',
                        'yuv420p', path], check=True, timeout=60 * SLOWER)
        with Web(f'file://{path}', **WEBRTC) as proxy:
            open_page(browser, proxy)
            wait_for_frames(browser, 25, 'state.dataset.way === "WebRTC"')
            dropped = browser.run('video.getVideoPlaybackQuality().corruptedVideoFrames')
            assert dropped == 0 and browser.run('problem.hidden') is True, dropped
            proxy.wait_for_line(r'mount /cam: readers over WebRTC get no pictures of B slices')


@test(timeout=180)
def a_publisher_that_comes_again_is_seen_in_the_same_session():
    with Web('publish', **WEBRTC) as proxy, Chromium() as browser:
        words = ('ffmpeg', '-v', 'error', '-re', '-stream_loop', '-1', '-i', clip(), '-c', 'copy', '-f', 'rtsp',
                 '-rtsp_transport', 'tcp', proxy.url())
        with Proc(*words) as publisher:
            proxy.wait_for_line(r' mount /cam up: ', 30)
            open_page(browser, proxy)
            wait_for_frames(browser, 50)
            before = ids(proxy)
            publisher.kill()
        browser.wait('!problem.hidden && problem.textContent === "The stream has stopped."', 30, 'a word')
        with Proc(*words):
            wait_for_frames(browser, 50, 'problem.hidden')
            assert ids(proxy) == before and len(before) == 1, (before, ids(proxy))


@test(timeout=120)
def without_webrtc_hls_plays():
    with Web() as proxy, Chromium() as browser:
        open_page(browser, proxy)
        wait_for_frames(browser, 25, 'state.dataset.way === "HLS"')
        assert browser.run('state.textContent').startswith('HLS, latency '), browser.run('state.textContent')


@test(timeout=120)
def where_no_way_is_open_hls_plays_and_the_page_says_why():
    with Web(**WEBRTC) as proxy, Chromium() as browser:
        # No address of the answer can be reached.
        browser.call('Page.addScriptToEvaluateOnNewDocument', source='''
            const set = RTCPeerConnection.prototype.setRemoteDescription;
            RTCPeerConnection.prototype.setRemoteDescription = function (description) {
              const sdp = description.sdp.replace(/^a=candidate:.*\\r\\n/gm, '');
              return set.call(this, { type: description.type, sdp });
            };''')
        open_page(browser, proxy)
        wait_for_frames(browser, 25, 'state.dataset.way === "HLS"')
        assert '(WebRTC finds no way through the network)' in browser.run('state.textContent')


@test(timeout=180)
def hls_plays_however_webrtc_fails():
    failing = 'Promise.reject(new Error("broken"))'
    with Web(**WEBRTC) as proxy, Chromium() as browser:
        for broken in ('window.RTCPeerConnection = class { constructor() { throw new Error("broken"); } };',
                       *(f'RTCPeerConnection.prototype.{each} = () => {failing};'
                         for each in ('setLocalDescription', 'setRemoteDescription', 'getStats'))):
            script = browser.call('Page.addScriptToEvaluateOnNewDocument', source=broken)
            open_page(browser, proxy)
            wait_for_frames(browser, 25, 'state.dataset.way === "HLS"')
            assert '(WebRTC fails: broken)' in browser.run('state.textContent'), browser.run('state.textContent')
            wait_until(lambda: not ids(proxy), 10, 'the session to end')
            browser.call('Page.removeScriptToEvaluateOnNewDocument', identifier=script['identifier'])


@test(timeout=120)
def pauses_between_attempts_grow():
    """the page waits twice as long after each attempt that fails, or as long as the server asks, and plays then"""
    with Web(**WEBRTC) as proxy, Chromium() as browser:
        browser.call('Page.addScriptToEvaluateOnNewDocument', source='''
            const after = window.setTimeout, ask = window.fetch;
            let attempts = 0, pauses = [], peer;
            window.RTCPeerConnection = class extends RTCPeerConnection {
              constructor() { super(); peer = this; }
            };
            window.setTimeout = (job, ms) => {
              if (attempts > 7 || ms < 3000) return after(job, ms);
              pauses.push(ms);
              return after(job, 10);
            };
            window.fetch = (url, options) => {
              if (options.method !== 'POST' || (attempts += 1) > 7) return ask(url, options);
              if (attempts < 7) return Promise.reject(new Error('no way'));
              return Promise.resolve(new Response('busy', { status: 503, headers: { 'Retry-After': '7' } }));
            };''')
        open_page(browser, proxy)
        wait_for_frames(browser, 25, 'state.dataset.way === "WebRTC"')
        pauses = browser.run('pauses')
        assert pauses == [3000, 6000, 12000, 24000, 30000, 30000, 7000], pauses
        # After a stream that was seen, they begin anew.
        browser.run('pauses = []; attempts = 5; peer.close()')
        browser.wait('attempts > 7', 20, 'an attempt')
        wait_for_frames(browser, 25)
        assert browser.run('pauses') == [3000, 6000, 7000], browser.run('pauses')


@test(timeout=120)
def what_is_wrong_is_said():
    with Web('publish', mount={'start-timeout': '1s'}, **WEBRTC) as proxy, Chromium() as browser:
        open_page(browser, proxy)
        browser.wait('!problem.hidden && problem.textContent', 20, 'a word')
        text = browser.run('problem.textContent')
        assert text == 'Conflict: the upstream takes too long to start (start-timeout)', text


run()
