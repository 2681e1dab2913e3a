# SPDX-License-Identifier: LGPL-2.1-or-later
"""SRTP for readers over TLS: keys in MIKEY messages, media and reports over UDP and TCP.

One proxy runs for most tests. Its packets say in plain text which ones they are.
"""

import base64
import itertools
import os
import random
import re
import struct
import threading
import time

from control import CLIP_URI, Controlled, Watch
from proc import SIGN_OF_LIFE, Rtsp, free_udp_pair
from proxy import QUICK, Origin, Read, check_whole, ffmpeg_reads, matches, wait_until
from scripted import KEY_PICTURE, PICTURE, SDP, VIDEO, Server, feedback, rtp, sender_report
from sealed import (AES_CM, ANY_INBOUND, ANY_OUTBOUND, KEY_BYTES, Srtp, kemac, key_header, mikey,
                    policy, read_key)
from secured import Secure, TlsRtsp, rtspsrc_reads
from tap import run, test

SANITIZED = bool(os.environ.get('WEIR_SANITIZER_RUNTIME'))
PATIENCE = 60 if SANITIZED else 20
NTP = 3900000000  # seconds
TEXT = b'These are pictures that nobody on the way may see. '
UDP = 'RTP/SAVP;unicast;client_port={}-{}'
TCP = 'RTP/SAVP/TCP;unicast;interleaved=0-1'


def payload(number):
    head = KEY_PICTURE[:2] if number % 25 == 0 else PICTURE[:1]
    return head + TEXT * 10 + struct.pack('>I', number)


def play_on(session):
    start = time.monotonic()
    try:
        for number in itertools.count():
            # Its numbers are in the upper half, and wrap soon.
            session.send(VIDEO, rtp(65000 + number, number * 1800, payload(number)))
            if number % 25 == 0:
                report = sender_report((NTP << 32) + number * 2 ** 32 // 50, number * 1800)
                session.send(VIDEO, report, rtcp=True)
            if session.left.wait(max(0, start + number * 0.02 - time.monotonic())):
                return
    except OSError:
        pass


class Reader(TlsRtsp):
    """A client that plays the video over SRTP."""

    def __init__(self, proxy, path='/cam'):
        super().__init__(proxy)
        self.url = proxy.tls_url(path)
        status, _, sdp = self.request('DESCRIBE', self.url)
        assert status == 200, status
        self.sdp = sdp.decode()
        assert 'RTP/SAVP' in self.sdp, self.sdp
        self.own = os.urandom(KEY_BYTES)
        self.to_proxy = Srtp(self.own, ANY_OUTBOUND)
        self.pair, self.to, self.from_proxy, self.key = None, None, None, None

    def offered(self):
        return read_key(re.search(r'a=key-mgmt:mikey (\S+)', self.sdp)[1])

    def set_up(self, transport=None, key=True):
        """Returns the status. `key`: True, False for none, or the header."""
        if not transport:
            self.pair = free_udp_pair()
            for each in self.pair:
                each.settimeout(PATIENCE)
            transport = UDP.format(*(each.getsockname()[1] for each in self.pair))
        headers = {'Transport': transport}
        if key:
            headers['KeyMgmt'] = key_header(mikey(self.own), self.url) if key is True else key
        status, answer, _ = self.request('SETUP', f'{self.url}/stream=0', headers)
        if status == 200:
            self._read_answer(answer)
        return status

    def _read_answer(self, answer):
        assert answer['transport'].startswith('RTP/SAVP'), answer
        fields = dict(part.split('=', 1) for part in answer['keymgmt'].split(';'))
        assert fields['prot'] == 'mikey' and fields['uri'] == f'"{self.url}/stream=0"', fields
        self.key, _, roc = read_key(fields['data'].strip('"'))
        assert roc == 0
        self.from_proxy = Srtp(self.key, ANY_INBOUND)
        if ports := re.search(r'server_port=(\d+)-(\d+)', answer['transport']):
            self.to = [('127.0.0.1', int(port)) for port in ports.groups()]

    def play(self, transport=None, **more):
        """Returns the sequence number in RTP-Info."""
        assert self.set_up(transport, **more) == 200
        return self.resume()

    def resume(self):
        status, answer, _ = self.request('PLAY', self.url)
        assert status == 200, status
        return int(re.search(r'seq=(\d+)', answer['rtp-info'])[1])

    def wire(self):
        """Returns the next packet as it is on the wire."""
        if self.pair:
            return self.pair[0].recv(65536)
        while True:
            channel, data = self.frame()
            if channel == 0:
                return data

    def packet(self):
        """Returns the sequence number and the payload of the next packet, decrypted."""
        sealed = self.wire()
        plain = self.from_proxy.rtp(sealed)
        assert plain is not None and len(plain) == len(sealed) - 10, sealed[:12]
        return struct.unpack_from('>H', plain, 2)[0], plain[12:]

    def report(self, plain=SIGN_OF_LIFE, spoil=None):
        sealed = bytearray(self.to_proxy.seal_rtcp(plain))
        if spoil is not None:
            sealed[spoil] ^= 1
        self.send_rtcp(bytes(sealed))
        return bytes(sealed)

    def send_rtcp(self, data):
        if self.pair:
            self.pair[1].sendto(data, self.to[1])
        else:
            self.send_frame(1, data)

    def name(self):
        return '{}:{}'.format(*self.socket.getsockname())

    def __exit__(self, *_):
        self.socket.close()
        for each in self.pair or ():
            each.close()


_SITE = []


def site():
    """The proxy for most tests."""
    if not _SITE:
        sdp = {VIDEO: SDP[VIDEO] + 'a=rtcp-fb:96 nack pli\r\n'}
        upstream = Server(play_on, sdp=sdp)
        films = CLIP_URI.rpartition('/')[0] + '/'
        proxy = Secure({'/cam': {'upstream': upstream.url, 'transport': 'tcp',
                                 'on-demand': False, **QUICK},
                        '/late': {'upstream': upstream.url, 'transport': 'tcp', 'cache': {'time': '10s'},
                                  'on-demand': False, **QUICK},
                        '/films': {'upstream': films}},
                       limits={'requests-per-second': 100000}, **{'trusted-networks': []})
        proxy.upstream = upstream
        for path in '/cam', '/late':
            with TlsRtsp(proxy) as client:  # from now on the numbers of the packets are known
                assert client.play(proxy.tls_url(path), tracks=1)[0] == 200
                client.frame()
        _SITE.append(proxy)
    return _SITE[0]


def refused(proxy, reason):
    return proxy.metric(f'refused_setups_total{{reason="{reason}"}}')


# ---- players ----


@test
def gortsplib_gets_every_packet_over_udp_and_tcp():
    with Origin() as origin, Secure({'/cam': {'upstream': origin.url, 'join': 'live',
                                              'on-demand': False}}) as proxy:
        Reader(proxy).socket.close()
        reads = [Read(proxy.tls_url(), readers=3, duration=4, transport=transport,
                      expect=origin.expect) for transport in ('udp', 'tcp')]
        for read in reads:
            check_whole(read.result(), 3)
        assert len(matches(proxy, r' in: /cam over UDP with SRTP$')) == 3
        assert len(matches(proxy, r' in: /cam over TCP with SRTP$')) == 3


@test(timeout=6 * PATIENCE)
def rtspsrc_and_ffmpeg_read_live_and_stored_media():
    with Secure({'/cam': {'upstream': CLIP_URI, 'on-demand': False},
                 '/films': {'upstream': CLIP_URI.rpartition('/')[0] + '/'}}) as proxy:
        Reader(proxy).socket.close()
        for path, protocol in itertools.product(
                ('/cam', '/films/' + CLIP_URI.rpartition('/')[2]), ('udp', 'tcp')):
            seen = len(proxy.lines)
            rtspsrc_reads(proxy.tls_url(path), protocol, 'rtph264depay', '!', 'h264parse', '!',
                          'openh264dec', '!', 'identity', 'eos-after=40', '!', 'fakesink')
            proxy.wait_for_line(rf' in: {path} over {protocol.upper()} with SRTP$', start=seen)
        # FFmpeg knows no MIKEY: it reads plain RTP within the connection.
        ffmpeg_reads(proxy.tls_url(), 'tcp')
        proxy.wait_for_line(r' in: /cam over TCP$')


@test(timeout=6 * PATIENCE)
def another_proxy_reads_over_tls():
    """the client light within the connection, and rtspsrc with SRTP over TCP and UDP"""
    with Secure({'/cam': {'upstream': CLIP_URI, 'on-demand': False}}) as origin:
        Reader(origin).socket.close()
        for client, transport, way in (('light', 'auto', 'TCP'), ('rtspsrc', 'tcp', 'TCP with SRTP'),
                                       ('rtspsrc', 'auto', 'UDP with SRTP')):
            upstream = {'upstream': origin.tls_url(), 'client': client, 'transport': transport,
                        'tls-ca': origin.pem, 'on-demand': False}
            seen = len(origin.lines)
            with Controlled({'/far': upstream}) as proxy, Watch(proxy, '/far') as reader:
                origin.wait_for_line(rf' in: /cam over {way}$', start=seen)
                reader.take()


# ---- on the wire ----


@test
def the_wire_shows_no_payload_and_every_reader_has_its_key():
    proxy = site()
    with Reader(proxy) as one, Reader(proxy) as other, Reader(proxy) as tcp:
        assert one.offered()[0] != other.offered()[0]
        one.play()
        other.play()
        tcp.play(TCP)
        readers = one, other, tcp
        assert len({reader.key for reader in readers}) == 3
        for reader in readers:
            assert reader.key == reader.offered()[0]
        sealed = [{}, {}, {}]
        for _ in range(100):
            for reader, found in zip(readers, sealed):
                data = reader.wire()
                assert data[:2] in (b'\x80\x60', b'\x80\xe0') and b'picture' not in data
                assert data[8:12] == struct.pack('>I', reader.offered()[1])
                found[data[4:8]] = data[12:]
        common = sealed[0].keys() & sealed[1].keys() & sealed[2].keys()
        assert len(common) > 50
        for time_stamp in common:
            packets = {found[time_stamp] for found in sealed}
            assert len(packets) == 3
        text = proxy.output()
        for reader in readers:
            for key in reader.key, reader.own:
                assert base64.b64encode(key).decode()[:16] not in text
                assert key.hex()[:16] not in text


@test
def packets_are_decrypted_from_the_first_one_on():
    """the number in RTP-Info is below 32768, the rollover counter 0, and no packet is missing"""
    proxy = site()
    for path, transport in itertools.product(('/cam', '/late'), (None, TCP)):
        with Reader(proxy, path) as reader:
            first = reader.play(transport)
            seq, data = reader.packet()
            assert seq == first < 32768, (seq, first)
            number = struct.unpack('>I', data[-4:])[0]
            for step in range(1, 100):
                seq, data = reader.packet()
                assert seq == first + step and data == payload(number + step), (seq, data)


@test
def numbers_continue_after_a_pause():
    proxy = site()
    for path, transport in itertools.product(('/cam', '/late'), (None, TCP)):
        with Reader(proxy, path) as reader:
            last = reader.play(transport)
            for _ in range(3):
                for _ in range(30):
                    last, data = reader.packet()
                    assert data == payload(struct.unpack('>I', data[-4:])[0])
                assert reader.request('PAUSE', reader.url)[0] == 200
                # Packets that were under way at the PAUSE.
                if reader.pair:
                    reader.pair[0].settimeout(0.2)
                try:
                    while reader.pair or reader.frames:
                        last, _ = reader.packet()
                except TimeoutError:
                    reader.pair[0].settimeout(PATIENCE)
                assert reader.resume() == last + 1, last
                assert reader.packet()[0] == last + 1


@test
def a_stored_title_is_decrypted_across_seeks_and_pauses():
    """RTP-Info has the number of the first packet after each PLAY, and numbers never repeat"""
    proxy = site()
    for transport in None, TCP:
        with Reader(proxy, '/films/' + CLIP_URI.rpartition('/')[2]) as reader:
            assert reader.play(transport) < 32768
            last = None
            for start in 3, 1, 0:
                seq, _ = reader.packet()
                assert last is None or 0 < (seq - last) & 0xffff < 1000, (last, seq)
                last = seq
                for _ in range(20):
                    seq, _ = reader.packet()
                    # A burst may be more than the socket holds.
                    assert 0 < (seq - last) & 0xffff < (2 if transport else 1000), (last, seq)
                    last = seq
                assert reader.request('PAUSE', reader.url)[0] == 200
                status, answer, _ = reader.request('PLAY', reader.url, {'Range': f'npt={start}-'})
                assert status == 200, status
                first = int(re.search(r'seq=(\d+)', answer['rtp-info'])[1])
                while (last - first) & 0xffff >= 0x8000:  # those before the seek
                    seq, _ = reader.packet()
                    assert 0 < (seq - last) & 0xffff < 1000, (last, seq, first)
                    last = seq
                assert last == first or not transport, (last, first)


@test
def each_setup_makes_use_of_another_key():
    proxy = site()
    with Reader(proxy) as reader, Reader(proxy) as unread:
        keys = {unread.offered()[0]}
        for _ in range(4):
            assert reader.set_up() == 200
            keys.add(reader.key)
        reader.request('TEARDOWN', reader.url)
        reader.session = None
        assert reader.set_up() == 200
        keys.add(reader.key)
        assert len(keys) == 6
        reader.resume()
        reader.packet()


@test
def a_client_without_a_key_uses_the_offered_one_in_both_directions():
    proxy = site()
    with Reader(proxy) as reader:
        reader.play(key=False)
        reader.packet()
        reader.to_proxy = Srtp(reader.key, ANY_OUTBOUND)
        before = proxy.metric('srtcp_refused_total')
        reader.report()
        reader.send_rtcp(SIGN_OF_LIFE)
        wait_until(lambda: proxy.metric('srtcp_refused_total') == before + 1, PATIENCE,
                   'the report in the clear is refused, the other is not')


# ---- reports ----


@test
def sender_reports_are_encrypted():
    with Reader(site()) as reader:
        reader.play()
        report = b'  '
        while report[1] != 200:
            sealed = reader.pair[1].recv(2000)
            report = reader.from_proxy.rtcp(sealed)
            assert len(report) == len(sealed) - 14 and b'weir-' in report, report
            assert sealed[:8] == report[:8] and b'weir-' not in sealed


@test(timeout=240 if SANITIZED else 60)
def only_authentic_reports_keep_a_reader_alive():
    """5 s after PLAY, readers that sent spoilt, plain or foreign reports are out"""
    proxy = site()
    with Reader(proxy) as good, Reader(proxy) as spoilt, Reader(proxy) as plain, \
            Reader(proxy) as foreign, Reader(proxy) as mute:
        before = proxy.metric('srtcp_refused_total')
        for reader in good, spoilt, plain, foreign, mute:
            reader.play()
        good.report()
        sent = 0
        for at in range(22):
            spoilt.report(spoil=at)
            sent += 1
        plain.send_rtcp(SIGN_OF_LIFE)
        plain.pair[0].sendto(b'x', plain.to[0])
        foreign.send_rtcp(good.report())
        foreign.report()
        foreign.own = None
        sent += 2
        wait_until(lambda: proxy.metric('srtcp_refused_total') == before + sent, PATIENCE,
                   f'{sent} reports are refused')
        for reader in spoilt, plain, mute:
            proxy.wait_for_line(rf' reader {reader.name()} out: /cam: no datagram came',
                                timeout=PATIENCE)
        for reader in good, foreign:
            for _ in range(50):
                reader.packet()
            assert reader.request('OPTIONS', reader.url)[0] == 200


@test
def a_report_counts_once():
    proxy = site()
    with Reader(proxy) as reader:
        reader.play()
        before = proxy.metric('srtcp_refused_total')
        sealed = reader.report()
        for _ in range(10):
            reader.send_rtcp(sealed)
        wait_until(lambda: proxy.metric('srtcp_refused_total') == before + 10, PATIENCE,
                   '10 copies are refused')


@test
def receiver_reports_and_keyframe_requests_are_read():
    proxy = site()
    with Reader(proxy) as reader:
        first = reader.play()
        ssrc = reader.offered()[1]
        while reader.from_proxy.rtcp(reader.pair[1].recv(2000))[1] != 200:
            pass
        block = struct.pack('>IIIIII', ssrc, 64 << 24 | 5, first + 50, 0, 0, 0)
        report = struct.pack('>BBHI', 0x81, 201, 7, 7) + block
        picture = struct.pack('>BBHII', 0x81, 206, 2, 7, ssrc)
        before = keyframe_requests(proxy)
        reader.report(report + picture)
        wait_until(lambda: keyframe_requests(proxy) > before, PATIENCE, 'a request upstream')

        def shown():
            return next(each for each in proxy.get('/v1/readers')['readers']
                        if each['peer'] == reader.name())

        wait_until(lambda: (shown()['loss'] or {}).get('packets') == 5, PATIENCE, 'the loss is shown')


def keyframe_requests(proxy):
    """Returns how many PLI and FIR the upstream has got."""
    return sum(len(feedback(data)) for each in proxy.upstream.sessions for _, data in each.rtcp)


@test
def keyframe_requests_within_the_connection_are_read():
    """only authentic ones, and each once; others are counted"""
    proxy = site()
    with Reader(proxy) as reader:
        reader.play(TCP)
        picture = struct.pack('>BBHII', 0x81, 206, 2, 7, reader.offered()[1])
        before, asked = proxy.metric('srtcp_refused_total'), keyframe_requests(proxy)
        reader.send_rtcp(picture)
        for at in 0, 1, 5, 9, -1:
            reader.report(SIGN_OF_LIFE + picture, spoil=at)
        wait_until(lambda: proxy.metric('srtcp_refused_total') == before + 6, PATIENCE,
                   '6 requests are refused')
        assert keyframe_requests(proxy) == asked
        sealed = reader.report(SIGN_OF_LIFE + picture)
        wait_until(lambda: keyframe_requests(proxy) > asked, PATIENCE, 'a request upstream')
        reader.send_rtcp(sealed)
        wait_until(lambda: proxy.metric('srtcp_refused_total') == before + 7, PATIENCE,
                   'a copy is refused')
        for _ in range(50):
            reader.packet()


# ---- refusals ----


@test
def srtp_without_tls_is_refused():
    proxy = site()
    before = refused(proxy, 'srtp-without-tls')
    with Rtsp(proxy.port) as client:
        url = proxy.url('/cam')
        status, _, sdp = client.request('DESCRIBE', url)
        assert status == 200 and b'RTP/AVP' in sdp and b'key-mgmt' not in sdp
        for transport in UDP.format(25000, 25001), TCP, 'RTP/SAVPF;unicast;client_port=25000':
            answer = client.request('SETUP', f'{url}/stream=0', {
                'Transport': transport, 'KeyMgmt': key_header(mikey(bytes(KEY_BYTES)), url)})
            assert answer[0] == 461, answer
    assert refused(proxy, 'srtp-without-tls') == before + 3
    proxy.wait_for_line(r' refused: SETUP: it asks for SRTP without TLS')


@test
def wrong_keys_are_refused():
    proxy = site()
    key = os.urandom(KEY_BYTES)
    other = [(1, kemac(key))]
    weak = [(0, b'\0')] + [each for each in AES_CM if each[0] != 0]
    long = [(0, b'\1'), (1, b'\x20'), (2, b'\1')]
    cases = [
        (463, mikey(key[:16])), (463, mikey(key + b'x')), (463, mikey(b'')),
        (463, mikey(key, payloads=[(1, kemac(key, cipher=1))])),
        (463, mikey(key, payloads=[(1, kemac(key, mac=1))])),
        # GStreamer would free the salt twice.
        (463, mikey(key, payloads=[(1, kemac(key[:16], kind=3, salt=key[16:]))])),
        (463, mikey(key, payloads=[(10, policy(weak)), *other])),
        (463, mikey(key, payloads=[(10, policy(long)), *other])),
        (463, mikey(key, payloads=[(10, policy([(0, b'\x06')])), *other])),
        (463, mikey(key, payloads=[(10, policy([(0, b'')])), *other])),
        (463, mikey(key, payloads=[(10, policy())])),
        (463, mikey(key, payloads=[])),
        # GStreamer 1.22 would read this for ever.
        (463, mikey(key, payloads=[(99, b'x' * 8), *other])),
        (463, mikey(key, payloads=[(6, b'\0\0\4name'), *other])),
        (463, b'\1\2' + mikey(key)[2:]),
        (400, mikey(key)[:-3]), (400, mikey(key)[:15]), (400, b'\1'), (400, b''),
        (463, b'\2' + mikey(key)[1:]),
    ]
    with Reader(proxy) as reader:
        before = {status: refused(proxy, f'key-{name}') for status, name in (
            (400, 'malformed'), (463, 'unsupported'))}
        for number, (status, message) in enumerate(cases):
            got = reader.set_up(key=key_header(message, reader.url))
            assert got == status, (number, got, status)
        good = base64.b64encode(mikey(key)).decode()
        texts = [('prot=mikey', 400), (f'data="{good}"', 400), ('x', 400), (';;;', 400),
                 (f'prot=mikey;data="{good[:-1]}"', 400), (f'prot=mikey;data="*{good[1:]}"', 400),
                 (f'prot=other;data="{good}"', 463),
                 (f'prot=mikey;data={good}', 200), (f'prot=MIKEY; uri=""; data="{good}"', 200)]
        for text, status in texts:
            assert reader.set_up(key=text) == status, text
        for status, name in (400, 'malformed'), (463, 'unsupported'):
            number = sum(each[0] == status for each in cases) + sum(
                each[1] == status for each in texts)
            assert refused(proxy, f'key-{name}') == before[status] + number, name
    proxy.wait_for_line(r' refused: SETUP: its header KeyMgmt is malformed')
    proxy.wait_for_line(r' refused: SETUP: its key for SRTP is not for AES-CM')


@test
def changed_keys_harm_nobody():
    """1000 MIKEY messages with changed bytes; a reader of another connection loses nothing"""
    proxy = site()
    with Reader(proxy) as victim, Reader(proxy) as reader:
        first = victim.play()
        chance = random.Random(1)
        got = {200: 0, 400: 0, 463: 0}
        for _ in range(1000):
            message = bytearray(mikey(reader.own))
            for _ in range(chance.randrange(1, 4)):
                message[chance.randrange(len(message))] = chance.randrange(256)
            message = message[:chance.randrange(1, len(message) + 60)]
            got[reader.set_up(UDP.format(25200, 25201), key=key_header(bytes(message), reader.url))] += 1
        print(f'# {got}')
        assert min(got.values()) > 20, got
        for step in range(50):
            assert victim.packet()[0] == first + step
    complaints = matches(proxy, r'(WARNING|CRITICAL|ERROR) \*\*')
    assert not complaints, [each.string for each in complaints]


@test
def readers_come_and_go():
    """200 sessions over UDP and TCP, half of them without TEARDOWN, leave nothing behind"""
    proxy = site()

    def descriptors():
        return len(os.listdir(f'/proc/{proxy.pid}/fd'))

    def visit(number):
        with Reader(proxy) as reader:
            reader.play(TCP if number % 3 == 0 else None)
            reader.packet()
            if number % 2:
                assert reader.request('TEARDOWN', reader.url)[0] == 200

    visit(0)
    wait_until(lambda: not proxy.get('/v1/readers')['readers'], PATIENCE, 'no readers')
    before = descriptors()
    for number in range(50):
        threads = [threading.Thread(target=visit, args=(number + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wait_until(lambda: not proxy.get('/v1/readers')['readers'], PATIENCE, 'no readers')
    wait_until(lambda: descriptors() <= before + 4, PATIENCE, f'{before} descriptors')


if __name__ == '__main__':
    run()
