# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers request keyframes by RTCP; the proxy asks the upstream or encoder at most once a
second."""

import itertools
import re
import struct
import tempfile
import threading
import time

from proc import SIGN_OF_LIFE, Rtsp, free_port, free_udp_pair
from proxy import Proxy, wait_until
from scripted import FEEDBACK, KEY_PICTURE, SSRC, VIDEO, Server, feedback, rtp, sender_report
from tap import run, test

PLI, FIR = 1, 4
TRACK = 'm=video 0 RTP/{} 96\r\na=rtpmap:96 H264/90000\r\n{}a=control:track0\r\n'
QUIET = 1.5  # seconds without a request


class Camera(Server):
    """Sends one keyframe; records each request for another as (time, format, SSRC, rest).

    With `slow` it sends the keyframe only after that many requests.
    """

    def __init__(self, profile, *offers, slow=0):
        lines = ''.join(f'a=rtcp-fb:{offer}\r\n' for offer in offers)
        super().__init__(self._play, sdp={VIDEO: TRACK.format(profile, lines)})
        self.asked, self._slow = [], slow

    def _play(self, session):
        seen, key = 0, True
        try:
            for seq in itertools.count():
                if session.left.wait(0.02):
                    return
                now = key and len(self.asked) >= self._slow
                session.send(VIDEO, rtp(seq, seq * 1800, *(KEY_PICTURE,) if now else ()))
                key = key and not now
                for _, rtcp in session.rtcp[seen:]:
                    seen += 1
                    self.asked += [(time.monotonic(), *each) for each in feedback(rtcp)]
        except OSError:
            pass


class Reader(threading.Thread):
    """Plays a mount's track and records the times at which keyframes arrive."""

    def __init__(self, proxy, tcp=False):
        super().__init__(daemon=True)
        self._rtp, self._rtcp = free_udp_pair()
        self._rtsp, self._ssrc, self.keys, self._tcp = Rtsp(proxy.port), None, [], tcp
        ports = '-'.join(str(each.getsockname()[1]) for each in (self._rtp, self._rtcp))
        url = proxy.url()
        assert self._rtsp.request('DESCRIBE', url)[0] == 200
        transport = '/TCP;unicast;interleaved=0-1' if tcp else f';unicast;client_port={ports}'
        status, headers, _ = self._rtsp.request('SETUP', f'{url}/stream=0',
                                                {'Transport': f'RTP/AVP{transport}'})
        assert status == 200, status
        self._to = tcp or int(re.search(r'server_port=\d+-(\d+)', headers['transport'])[1])
        if not tcp:
            self._rtcp.sendto(SIGN_OF_LIFE, ('127.0.0.1', self._to))
        assert self._rtsp.request('PLAY', url)[0] == 200
        self.start()

    def _packet(self):
        while self._tcp:
            channel, data = self._rtsp.frame()
            if channel == 0:
                return data
        return self._rtp.recv(2000)

    def run(self):
        last = None
        try:
            while data := self._packet():
                self._ssrc, at = data[8:12], data[4:8]
                kind, head = data[12] & 31, data[13]
                if at != last and (kind == 5 or (kind == 28 and head & 31 == 5)):
                    self.keys.append(time.monotonic())
                    last = at
        except OSError:
            pass

    def ask(self, kind=PLI):
        wait_until(lambda: self._ssrc, 10, 'no packet')
        request = struct.pack('>BBHI', 0x80, 201, 1, 7)
        if kind == PLI:
            request += struct.pack('>BBHI', 0x80 | PLI, FEEDBACK, 2, 7) + self._ssrc
        else:
            request += struct.pack('>BBHII', 0x80 | FIR, FEEDBACK, 4, 7, 0) + self._ssrc + b'\1\0\0\0'
        if self._tcp:
            self._rtsp.send_frame(1, request)
        else:
            self._rtcp.sendto(request, ('127.0.0.1', self._to))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._rtsp.socket, self._rtp, self._rtcp:
            each.close()


def wait_up_to(seconds, true):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)


def asked_through(camera, transport='tcp', kind=PLI, tcp=False):
    """Returns the requests that a camera gets when a reader asks for a keyframe."""
    settings = {'upstream': camera.url, 'transport': transport}
    with camera, Proxy({'/cam': settings}) as proxy, Reader(proxy, tcp) as reader:
        reader.ask(kind)
        wait_up_to(QUIET, lambda: camera.asked)
        return [each[1:] for each in camera.asked]


@test
def requests_use_the_feedback_that_the_upstream_offers():
    for transport in 'tcp', 'udp':
        assert asked_through(Camera('AVPF', '96 nack pli'), transport) == [(PLI, SSRC, b'')]
    (kind, _, rest), = asked_through(Camera('AVPF', '* ccm fir'))
    assert kind == FIR and int.from_bytes(rest[:4], 'big') == SSRC, rest
    assert asked_through(Camera('AVPF', '96 nack pli'), kind=FIR) == [(PLI, SSRC, b'')]


@test
def a_tcp_reader_can_ask_for_a_keyframe():
    for kind in PLI, FIR:
        camera = Camera('AVPF', '96 nack pli')
        assert asked_through(camera, kind=kind, tcp=True) == [(PLI, SSRC, b'')]


@test
def readers_over_tcp_and_udp_ask_for_one_stream():
    with Camera('AVPF', '96 nack pli') as camera, \
            Proxy({'/cam': {'upstream': camera.url, 'transport': 'tcp'}}) as proxy:
        for n, tcp in enumerate((False, True, True, False), 1):
            with Reader(proxy, tcp) as reader:
                reader.ask()
                wait_until(lambda: len(camera.asked) >= n, 5, f'not request {n}')


class Encoder(threading.Thread):
    """Sends RTP and RTCP without a request; records the packets that return to its RTCP port."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self._rtp, self._rtcp = free_udp_pair()
        self._rtcp.settimeout(0.02)
        self._port, self.asked, self.left = port, [], False
        self.start()

    def run(self):
        for seq in itertools.count():
            if self.left:
                return
            self._rtp.sendto(rtp(seq, seq * 1800, KEY_PICTURE), ('127.0.0.1', self._port))
            self._rtcp.sendto(sender_report(0, seq * 1800), ('127.0.0.1', self._port + 1))
            try:
                self.asked += feedback(self._rtcp.recv(2000))
            except TimeoutError:
                pass


@test
def an_rtp_sender_is_asked_if_its_sdp_offers_feedback():
    for profile, offer, expected in (('AVPF', 'a=rtcp-fb:* nack pli\r\n', [(PLI, SSRC, b'')]),
                                     ('AVP', '', [])):
        port = free_port()
        with tempfile.NamedTemporaryFile('w', suffix='.sdp') as file:
            file.write('v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n'
                       f'm=video {port} RTP/{profile} 96\r\na=rtpmap:96 H264/90000\r\n{offer}')
            file.flush()
            encoder = Encoder(port)
            with Proxy({'/cam': f'sdp://{file.name}'}) as proxy, Reader(proxy) as reader:
                reader.ask()
                wait_up_to(QUIET, lambda: encoder.asked)
                assert encoder.asked == expected, encoder.asked
            encoder.left = True


@test
def an_upstream_that_offers_nothing_is_not_asked():
    assert asked_through(Camera('AVP')) == []


@test
def the_proxy_asks_until_the_first_keyframe_comes():
    with Camera('AVPF', '96 nack pli', slow=3) as camera, \
            Proxy({'/cam': {'upstream': camera.url, 'transport': 'tcp'}}) as proxy, \
            Reader(proxy) as reader:
        wait_until(lambda: reader.keys, 15, 'no keyframe')
        time.sleep(QUIET)
        assert len(camera.asked) == 3, camera.asked
        assert camera.asked[2][0] - camera.asked[0][0] > 1, camera.asked


@test
def requests_of_ten_readers_become_one_a_second():
    with Camera('AVPF', '96 nack pli') as camera, \
            Proxy({'/cam': {'upstream': camera.url, 'transport': 'tcp'}}) as proxy:
        readers = [Reader(proxy) for _ in range(10)]
        end = time.monotonic() + 4
        while time.monotonic() < end:
            for reader in readers:
                reader.ask()
            time.sleep(0.1)
        for reader in readers:
            reader.__exit__()
    times = [at for at, *_ in camera.asked]
    assert 2 <= len(times) <= 5, times
    # The RTP session may hold back a request to send it with a report.
    assert len(times) - 1 < times[-1] - times[0] + 1, times


def check_encoder(settings):
    """An encoder that makes no keyframe for a minute makes exactly one when a reader asks."""
    with Proxy({'/cam': {**settings, 'start-timeout': '20s'}}) as proxy, Reader(proxy) as reader:
        wait_until(lambda: reader.keys, 10, 'no first keyframe')
        for number in 2, 3:
            reader.ask()
            wait_until(lambda: len(reader.keys) >= number, 5, f'no keyframe {number}')
        time.sleep(QUIET)
        assert len(reader.keys) == 3, reader.keys


SOURCE = 'launch: videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! '


@test
def a_stages_encoder_makes_a_keyframe_on_request():
    check_encoder({
        'upstream': SOURCE + 'openh264enc gop-size=25 ! rtph264pay config-interval=-1 name=pay0',
        'pipeline': ['pull', 'decode',
                     {'transcode': {'size': '160x120', 'keys': '60s'}}]})


@test
def a_launch_lines_encoder_makes_a_keyframe_on_request():
    check_encoder({'upstream': SOURCE + 'openh264enc gop-size=9000 ! rtph264pay '
                   'config-interval=-1 name=pay0'})


if __name__ == '__main__':
    run()
