# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium publishes the camera or the screen from the page /publish, which says why if it cannot."""

import json
import subprocess

from chromium import Chromium
from hlsweb import Web
from proxy import QUICK, wait_until
from tap import SLOWER, run, test
from webrtcproxy import WebrtcProxy

FAKE = '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'
PUBLISHING = r'/^Publishing, \d+×\d+, \d+\.\d Mb\/s$/.test(state.textContent)'
STOPPED = '!problem.hidden && state.textContent === "Not publishing" && !camera.disabled && stopButton.hidden'


class Publish(WebrtcProxy):
    """A proxy to which clients publish as /cam."""

    def __init__(self, mount=None, **top):
        super().__init__('publish', mount={**QUICK, **(mount or {})}, **top)

    def publisher(self):
        return self.get('/v1/mounts/cam').get('publisher')

    def wait_for_publisher(self):
        wait_until(self.publisher, 20, 'a publisher')
        return self.publisher()

    def wait_for_none(self):
        wait_until(lambda: not self.publisher(), 20, 'no publisher')


def open_page(browser, proxy, path='/publish/cam', host='127.0.0.1'):
    browser.open(f'http://{host}:{proxy.web_port}{path}')
    browser.wait(f'location.host === "{host}:{proxy.web_port}" && document.readyState === "complete"', 30, 'the page')


def publish(browser, button='camera'):
    browser.run(f'{button}.click()')
    browser.wait(PUBLISHING, 30, 'the picture to leave')


def streams(url):
    """Returns {kind of stream: codec} of what a reader gets."""
    done = subprocess.run(['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-show_streams', '-of', 'json', url],
                          capture_output=True, text=True, timeout=60 * SLOWER, check=True)
    return {each['codec_type']: each for each in json.loads(done.stdout)['streams']}


@test(timeout=180)
def a_camera_is_published():
    with Publish() as proxy, Chromium(*FAKE) as browser:
        open_page(browser, proxy)
        assert browser.run('stopButton.hidden && problem.hidden && state.textContent') == 'Not publishing'
        publish(browser)
        assert proxy.wait_for_publisher()['transport'] == 'WebRTC', proxy.publisher()
        assert browser.run('camera.disabled && !stopButton.hidden && problem.hidden') is True
        browser.wait('video.videoWidth > 0 && video.muted', 10, 'the preview')
        proxy.wait_for_line(r' mount /cam up: ', 30)
        got = streams(proxy.url())
        assert got['video']['width'] >= 320 and got['audio']['codec_name'] == 'opus', got
        browser.run('stopButton.click()')
        browser.wait('stopButton.hidden && state.textContent === "Not publishing" && problem.hidden', 10, 'the end')
        assert browser.run('video.srcObject') is None
        proxy.wait_for_none()
        # Again, and the page is closed.
        publish(browser)
        proxy.wait_for_publisher()
        browser.open('about:blank')
        proxy.wait_for_none()


@test(timeout=120)
def a_screen_is_published_until_it_ends():
    with Publish() as proxy, Chromium(*FAKE, '--auto-select-desktop-capture-source=Entire screen') as browser:
        # No screen is there without a display.
        browser.call('Page.addScriptToEvaluateOnNewDocument', source='''
            navigator.mediaDevices.getDisplayMedia = () => {
              const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
              [canvas.width, canvas.height] = [640, 360];
              setInterval(() => { context.fillStyle = `hsl(${Date.now() / 10 % 360} 90% 50%)`; context.fillRect(0, 0, 640, 360); }, 40);
              return Promise.resolve(canvas.captureStream());
            };''')
        open_page(browser, proxy)
        publish(browser, 'screenButton')
        proxy.wait_for_line(r' mount /cam up: ', 30)
        assert list(streams(proxy.url())) == ['video']
        # The button of the browser, next to the page.
        browser.run('job.stream.getTracks()[0].dispatchEvent(new Event("ended"))')
        browser.wait(STOPPED, 10, 'the end')
        assert browser.run('problem.textContent') == 'The screen has ended.'
        proxy.wait_for_none()


@test(timeout=180)
def what_the_browser_does_not_give_is_said():
    with Publish(hosts=['cam.example']) as proxy, \
            Chromium('--host-resolver-rules=MAP cam.example 127.0.0.1') as browser:
        for error, text in [('NotAllowedError', 'You did not allow this page to use the camera, or the browser or the system does not.'),
                            ('NotFoundError', 'There is no camera.'),
                            ('NotReadableError', 'The camera cannot be used. Another program may use it.'),
                            ('OddError', 'The camera cannot be used: odd')]:
            open_page(browser, proxy)
            browser.run(f'navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("odd", "{error}"))')
            browser.run('camera.click()')
            browser.wait(STOPPED, 10, error)
            assert browser.run('problem.textContent') == text, browser.run('problem.textContent')
        # Without a microphone.
        browser.run('''navigator.mediaDevices.getUserMedia = (wanted) => wanted.audio
            ? Promise.reject(new DOMException("", "NotFoundError")) : Promise.resolve(document.createElement('canvas').captureStream(5))''')
        browser.run('camera.click()')
        browser.wait('job && job.stream.getTracks().length === 1', 10, 'the picture alone')
        # A page that is neither over HTTPS nor of the machine itself.
        open_page(browser, proxy, host='cam.example')
        assert browser.run('isSecureContext') is False
        assert browser.run('camera.disabled && screenButton.disabled && !problem.hidden') is True
        assert 'https://' in browser.run('problem.textContent'), browser.run('problem.textContent')


@test(timeout=180)
def what_the_server_refuses_is_said():
    with Publish() as proxy, Chromium(*FAKE) as browser:
        open_page(browser, proxy)
        for status, text in [(401, 'To publish here you need a password or a token. (odd)'), (403, 'You may not publish here. (odd)'),
                             (404, 'Nobody can publish here. (odd)'), (406, 'odd'), (409, 'odd'), (503, 'odd')]:
            browser.run(f'window.fetch = () => Promise.resolve(new Response("odd", {{ status: {status} }}))')
            browser.run('camera.click()')
            browser.wait(STOPPED, 20, str(status))
            assert browser.run('problem.textContent') == text, (status, browser.run('problem.textContent'))
        assert not proxy.publisher()


@test(timeout=120)
def who_comes_second_is_told_so():
    with Publish() as proxy, Chromium(*FAKE) as browser:
        open_page(browser, proxy)
        proxy.post('obs', '/cam/whip')
        browser.run('camera.click()')
        browser.wait(STOPPED, 20, 'a word')
        assert 'publishes /cam already' in browser.run('problem.textContent'), browser.run('problem.textContent')


@test(timeout=180)
def a_camera_is_published_in_three_sizes_where_readers_may_choose():
    with Publish({'choices': {'pull': ['simulcast']}}) as proxy, Chromium(*FAKE) as browser:
        open_page(browser, proxy)
        browser.run('camera.click()')
        browser.wait(r'/^Publishing(, \d+×\d+){3}, \d+\.\d Mb\/s$/.test(state.textContent)', 40, 'three pictures to leave')
        wait_until(lambda: (proxy.publisher() or {}).get('layer') == 'h', 20, 'the largest one')
        sizes = [streams(f'{proxy.url("/cam")}{query}')['video']['width'] for query in ('', '?simulcast=2', '?simulcast=3')]
        print(f'# {sizes} {browser.run("state.textContent")}')
        assert sizes[0] == 2 * sizes[1] == 4 * sizes[2], sizes


@test(timeout=180)
def a_broken_connection_is_made_again_and_one_that_the_server_ends_is_not():
    with Publish({'takeover': 'yes'}) as proxy, Chromium(*FAKE) as browser:
        open_page(browser, proxy)
        publish(browser)
        first = proxy.wait_for_publisher()
        browser.run('before = job.session; Object.defineProperty(before.peer, "connectionState", { value: "failed" })')
        browser.wait(f'job.session !== before && {PUBLISHING} && problem.hidden', 40, 'another session')
        assert proxy.wait_for_publisher() != first
        # Another one takes over.
        browser.run('''other = { peer: new RTCPeerConnection() }; for (const track of job.stream.getTracks())
            other.peer.addTransceiver(track.clone(), { direction: 'sendonly' }); offer(other, endpoint).then(() => {})''')
        browser.wait(STOPPED, 30, 'the end')
        assert browser.run('problem.textContent').startswith('The server has ended this'), browser.run('problem.textContent')


@test
def only_who_may_publish_sees_the_page():
    with Publish(mounts={'/file': {'upstream': 'rtsp://127.0.0.1:9/x'}}) as proxy:
        status, head, body = proxy.fetch('/publish/cam')
        assert status == 200 and b'publish.js' in body, (status, body)
        policy = head['content-security-policy']
        assert policy.startswith("default-src 'none'; script-src 'self'") and "frame-ancestors 'none'" in policy, policy
        # Whoever likes may show a stream in a page.
        assert 'frame-ancestors' not in proxy.fetch('/watch/cam')[1]['content-security-policy']
        for path, reason in ('/publish/none', b'there is no such mount'), ('/publish/file', b'the mount takes no publishers'):
            status, _, body = proxy.fetch(path)
            assert status == 404 and reason in body, (path, status, body)
    users = [{'name': 'ann', 'digest': ['SHA-256:0'], 'permissions': [{'action': 'publish', 'path': '/cam'}]},
             {'name': 'any', 'permissions': [{'action': 'read'}]}]
    users[0]['digest'] = ['MD5:' + '0' * 32]
    with Publish(users=users, **{'basic-without-tls': 'yes'}) as proxy:
        assert proxy.fetch('/publish/cam')[0] == 401
        assert proxy.fetch('/publish/none')[0] == 401
        assert proxy.fetch('/watch/~/publish.js')[0] == 200  # no secret
    with Web('publish') as proxy:
        assert proxy.fetch('/publish/cam')[0] == 404


run()
