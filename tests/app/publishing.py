# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that publish to a mount with ANNOUNCE and RECORD, well and badly."""

import base64
import os
import struct
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime

from control import Controlled, Watch
from openapi import Contract
from proc import Proc, Rtsp
from proxy import QUICK, Proxy, Read, matches, tracks, wait_for_readers, wait_until
from sanitized import stock_environment
from sent import Sender, check_frames, media, sync
from tap import Skip, run, test

LIVE = {'upstream': 'publish', **QUICK}
VIDEO = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n'
AUDIO = 'm=audio 0 RTP/AVP 97\r\na=rtpmap:97 OPUS/48000/2\r\na=control:streamid=1\r\n'
HEAD = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n'


def output(url, transport='tcp'):
    return ('-c', 'copy', '-f', 'rtsp', '-rtsp_transport', transport, url)


def announce(rtsp, url, sdp=HEAD + VIDEO, headers=None):
    """Returns (status, body)."""
    status, _, body = rtsp.request(
        'ANNOUNCE', url, {'Content-Type': 'application/sdp', **(headers or {})}, sdp.encode())
    return status, body.decode()


def set_up(rtsp, url, transport='RTP/AVP/TCP;unicast;interleaved=0-1;mode=record'):
    status, headers, _ = rtsp.request('SETUP', url + '/streamid=0', {'Transport': transport})
    return status, headers.get('transport')


def record(rtsp, url):
    return rtsp.request('RECORD', url, {'Range': 'npt=0-'})[0]


class Publisher(Rtsp):
    """Publishes H.264 over its connection: single NAL units, each a packet."""

    def __init__(self, proxy, sdp=HEAD + VIDEO, path='/cam'):
        super().__init__(proxy.port)
        url = proxy.url(path)
        assert announce(self, url, sdp)[0] == 200
        assert set_up(self, url)[0] == 200
        assert record(self, url) == 200
        self.number = 0

    def packet(self, nal=b'\x65' + bytes(50)):
        data = struct.pack('>BBHII', 0x80, 0x80 | 96, self.number, self.number * 3600, 77) + nal
        self.number += 1
        self.send(struct.pack('>cBH', b'$', 0, len(data)) + data)
        return data


@test
def what_ffmpeg_publishes_arrives_unchanged():
    """frames that FFmpeg publishes over TCP and UDP arrive unchanged and in sync"""
    ways = 'tcp', 'udp'
    media()
    with Proxy({f'/{way}': {'upstream': 'publish'} for way in ways}) as proxy:
        with Sender(*output(proxy.url('/tcp'))), Sender(*output(proxy.url('/udp'), 'udp')):
            for way in ways:
                proxy.wait_for_line(rf' mount /{way} up: publish, 2 tracks$', 20)
            with ThreadPoolExecutor(2) as pool:
                got = list(pool.map(lambda way: check_frames(proxy, ('video', 'audio'),
                                                             path=f'/{way}'), ways))
        for way, times in zip(ways, got):
            assert abs(sync(times)) < 5, (way, sync(times))


@test
def what_gstreamer_publishes_arrives_unchanged():
    """frames that rtspclientsink publishes arrive unchanged"""
    if subprocess.run(['gst-inspect-1.0', '--exists', 'rtspclientsink'], check=False).returncode:
        raise Skip('there is no rtspclientsink')
    with Proxy({'/cam': {'upstream': 'publish'}}) as proxy, \
            Proc('gst-launch-1.0', '-q', 'filesrc', f'location={media()[2]}', '!', 'qtdemux', '!',
                 'h264parse', '!', 'rtspclientsink', f'location={proxy.url()}', env=stock_environment()):
        proxy.wait_for_line(r' mount /cam up: publish, 1 tracks$', 20)
        check_frames(proxy, ('video',))


@contextmanager
def sending(publisher, nal=b'\x65live'):
    """Has the publisher send packets all the time. Yields those that were sent."""
    over, sent = threading.Event(), []

    def run_here():
        while not over.wait(0.02):
            sent.append(publisher.packet(nal + struct.pack('>I', len(sent))))

    thread = threading.Thread(target=run_here)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def read_until(reader, end, limit=10):
    """Returns the payloads of the reader's packets up to one that begins with `end`."""
    deadline, got = time.monotonic() + limit, []
    while not got or not got[-1].startswith(end):
        assert time.monotonic() < deadline, got[-3:]
        channel, packet = reader.frame()
        if channel == 0:
            assert packet[1] == 0x80 | 96, packet
            got.append(packet[12:])
    return got


@test
def packets_pass_unchanged():
    """payload and marker of each packet are the publisher's"""
    with Proxy({'/cam': LIVE}) as proxy, Publisher(proxy) as publisher:
        with sending(publisher) as sent, Watch(proxy) as reader:
            # A payload type that was not announced, and that no reader knows.
            publisher.send(struct.pack('>cBHBBHII', b'$', 0, 16, 0x80, 98, 0, 0, 77) + b'none')
            got = read_until(reader, b'\x65live\0\0\0\x40')
        first = [packet[12:] for packet in sent].index(got[0])
        assert got == [packet[12:] for packet in sent][first:first + len(got)]


@test
def a_keyframe_is_asked_of_the_publisher():
    """a reader that needs a keyframe makes the proxy ask the publisher for one, by PLI"""
    with Proxy({'/cam': LIVE}) as proxy:
        with Publisher(proxy, HEAD + VIDEO + 'a=rtcp-fb:96 nack pli\r\n') as publisher:
            with sending(publisher, b'\x41'), Rtsp(proxy.port) as reader:
                proxy.wait_for_line(r' mount /cam up')
                assert reader.request('DESCRIBE', proxy.url())[0] == 200
                assert reader.request('SETUP', proxy.url('/cam/stream=0'),
                                      {'Transport': 'RTP/AVP/TCP;interleaved=0-1'})[0] == 200
                assert reader.request('PLAY', proxy.url())[0] == 200
                kinds = set()
                while 206 not in kinds: # payload-specific feedback
                    channel, rtcp = publisher.frame()
                    assert channel == 1, channel
                    while rtcp:
                        kinds.add(rtcp[1])
                        rtcp = rtcp[4 * (1 + struct.unpack('>H', rtcp[2:4])[0]):]


@test
def the_api_tells_who_publishes():
    """the API tells the publisher's address, its transport and when it began, while it is there"""
    udp = 'RTP/AVP;unicast;client_port=40002-40003;mode=record'
    contract = Contract()
    with Controlled({'/cam': LIVE}) as proxy:
        def publisher():
            answer = proxy.http('GET', '/v1/mounts/cam')
            contract.check('GET', '/v1/mounts/cam', answer)
            return answer[2].get('publisher')

        for way, words in (('TCP', ()), ('UDP', (udp,))):
            with Rtsp(proxy.port) as rtsp:
                assert announce(rtsp, proxy.url())[0] == 200
                assert set_up(rtsp, proxy.url(), *words)[0] == 200
                assert publisher() is None
                before = time.time()
                assert record(rtsp, proxy.url()) == 200
                told = publisher()
                assert told['transport'] == way, told
                assert told['peer'] == '%s:%d' % rtsp.socket.getsockname()[:2], told
                since = datetime.fromisoformat(told['since'].replace('Z', '+00:00')).timestamp()
                assert int(before) <= since <= time.time(), (before, told)
                assert rtsp.request('TEARDOWN', proxy.url())[0] == 200
            assert publisher() is None


@test
def each_mount_has_its_own_publisher():
    """readers of one of two mounts with the same settings get nothing of the other's publisher"""
    with Proxy({'/cam': LIVE, '/other': LIVE}) as proxy, Publisher(proxy) as one, \
            Publisher(proxy, path='/other') as other:
        with sending(one), sending(other, b'\x65other'), Watch(proxy) as reader, \
                Watch(proxy, '/other') as second:
            read_until(second, b'\x65other')
            for _ in range(20):
                channel, packet = reader.frame()
                assert channel or not packet[12:].startswith(b'\x65other'), packet


@test
def a_second_publisher_is_refused():
    """a second publisher gets 503 with the reason, and the first stays"""
    with Proxy({'/cam': LIVE}) as proxy, Publisher(proxy) as first, Rtsp(proxy.port) as second:
        with sending(first):
            proxy.wait_for_line(r' mount /cam up')
            status, body = announce(second, proxy.url())
            assert status == 503 and 'publishes /cam already' in body, (status, body)
            with Watch(proxy) as reader:
                reader.take(10)
            assert announce(second, proxy.url())[0] == 503
        assert first.request('TEARDOWN', proxy.url())[0] == 200
        assert announce(second, proxy.url())[0] == 200


@test
def a_publisher_that_lost_its_line_comes_back_at_once():
    """a publisher may replace itself when it has been silent for a second"""
    with Proxy({'/cam': {**LIVE, 'read-timeout': '20s'}}) as proxy, Publisher(proxy) as first, Rtsp(proxy.port) as second:
        with sending(first):
            proxy.wait_for_line(r' mount /cam up')
            assert announce(second, proxy.url())[0] == 503
        wait_until(lambda: announce(second, proxy.url())[0] == 200, 20, 'the next connection')
        proxy.wait_for_line(r' publisher .* out: /cam: another publisher has taken')
        assert first.socket.recv(1) == b''


@test
def a_mount_may_let_the_newest_publisher_take_over():
    """with takeover, the newest publisher replaces the one before, and readers stay"""
    with Proxy({'/cam': {**LIVE, 'takeover': 'yes'}}) as proxy, Publisher(proxy) as first:
        with sending(first):
            reader = Watch(proxy)
        with reader, Publisher(proxy) as second, sending(second, b'\x65second'):
            proxy.wait_for_line(r' publisher .* out: /cam: another publisher has taken')
            assert first.socket.recv(1) == b''
            read_until(reader, b'\x65second')


@test
def a_publisher_may_die_and_come_back():
    """readers stay while a publisher is killed, and continue when it comes back"""
    with Proxy({'/cam': {**LIVE, 'read-timeout': '5s'}}) as proxy:
        sender = Sender(*output(proxy.url()))
        proxy.wait_for_line(r' mount /cam up: publish, 2 tracks$', 20)
        read = Read(proxy.url(), duration=4)
        wait_for_readers(proxy, 1)
        sender.kill()
        proxy.wait_for_line(r' mount /cam waits for a publisher: publish: the publisher has left')
        seen = len(proxy.lines)
        with Sender(*output(proxy.url())):
            proxy.wait_for_line(r' mount /cam up: publish, 2 tracks$', 20, start=seen)
            result = read.result()
        for number, name, track in tracks(result):
            for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward'):
                assert track[key] == 0, (number, name, key, track)
            assert track['packets'] > 50, (number, name, track)


@test
def a_silent_publisher_is_closed():
    """a publisher that sends nothing for read-timeout is closed, over UDP too"""
    udp = 'RTP/AVP;unicast;client_port=40000-40001;mode=record'
    for transport in ('RTP/AVP/TCP;unicast;interleaved=0-1', udp):
        with Proxy({'/cam': LIVE}) as proxy, Rtsp(proxy.port) as rtsp:
            assert announce(rtsp, proxy.url())[0] == 200
            status, answer = set_up(rtsp, proxy.url(), transport)
            assert status == 200 and ('server_port=' in answer or 'interleaved=0-1' in answer), answer
            assert record(rtsp, proxy.url()) == 200
            assert rtsp.socket.recv(1) == b''
            proxy.wait_for_line(r' publisher .* out: /cam: no media for 1.0 s')


@test(timeout=120)
def a_publisher_that_sends_only_media_stays():
    """a publisher that sends no request after RECORD stays for more than a minute"""
    with Proxy({'/cam': LIVE}) as proxy, Publisher(proxy) as publisher:
        begun = time.monotonic()
        with sending(publisher):
            proxy.wait_for_line(' mount /cam up: ')
            while time.monotonic() < begun + 70:
                assert not matches(proxy, ' publisher .* out: '), proxy.output()
                time.sleep(0.5)
            with Watch(proxy) as reader:
                reader.take()


@test
def only_users_with_the_permission_publish():
    """a publisher needs the permission publish for the mount"""
    with tempfile.TemporaryDirectory() as folder:
        secret = os.path.join(folder, 'secret')
        with open(secret, 'w', encoding='ascii') as file:
            file.write('pass\n')
        os.chmod(secret, 0o600)
        users = [{'name': name, 'password-file': secret, 'permissions': permissions}
                 for name, permissions in (
                     ('camera', [{'action': 'publish', 'path': '/cam'}]),
                     ('viewer', [{'action': 'read'}]))]
        with Controlled({'/cam': LIVE, '/other': LIVE}, users=users, api='off',
                        **{'basic-without-tls': 'yes'}) as proxy:
            for name, path, wanted in ((None, '/cam', 401), ('viewer', '/cam', 403),
                                       ('camera', '/other', 403), ('camera', '/cam', 200)):
                given = base64.b64encode(f'{name}:pass'.encode()).decode()
                headers = {'Authorization': f'Basic {given}'} if name else {}
                with Rtsp(proxy.port) as rtsp:
                    status = announce(rtsp, proxy.url(path), headers=headers)[0]
                    assert status == wanted, (name, path, status)


BAD = {
    'no description': ('', 400), 'no SDP': ('hello', 400), 'a zero': (HEAD + '\0' + VIDEO, 400),
    'no track': (HEAD, 415), 'no RTP': (HEAD + 'm=video 0 udp 96\r\n', 415),
    'no rtpmap': (HEAD + 'm=video 0 RTP/AVP 96\r\n', 415),
    'SRTP': (HEAD + VIDEO.replace('RTP/AVP', 'RTP/SAVP'), 415),
    'a long body': (HEAD + VIDEO + 'a=x\r\n' * 20000, 413),
}


@test
def bad_descriptions_are_refused():
    """a bad description gets a status that names the fault, and nothing else is lost"""
    with Proxy({'/cam': LIVE, '/file': 'udp://127.0.0.1:1'}) as proxy:
        for name, (sdp, wanted) in BAD.items():
            with Rtsp(proxy.port) as rtsp:
                status = announce(rtsp, proxy.url(), sdp)[0]
                assert status == wanted, (name, status)
        for path, wanted in (('/file', 405), ('/none', 404), ('/cam/below', 404)):
            with Rtsp(proxy.port) as rtsp:
                assert announce(rtsp, proxy.url(path))[0] == wanted, path
        with Rtsp(proxy.port) as rtsp: # a good track beside a bad one, and 20 of them
            many = ''.join(VIDEO.replace('streamid=0', f'streamid={n}') for n in range(20))
            assert announce(rtsp, proxy.url(), HEAD + 'm=video 0 udp 96\r\n' + many)[0] == 200
        with Rtsp(proxy.port) as rtsp: # once the proxy has noticed that the last one has left
            wait_until(lambda: announce(rtsp, proxy.url())[0] == 200, 10, 'the mount is free')
            assert set_up(rtsp, proxy.url())[0] == 200 and record(rtsp, proxy.url()) == 200
            proxy.check_alive()


@test
def bad_requests_are_refused():
    """requests of a publisher that do not fit get a status, and the connection stays"""
    with Proxy({'/cam': LIVE}) as proxy, Rtsp(proxy.port) as rtsp:
        url = proxy.url()
        assert record(rtsp, url) == 455
        assert announce(rtsp, url, HEAD + VIDEO + AUDIO)[0] == 200
        assert record(rtsp, url) == 455
        assert rtsp.request('SETUP', url + '/streamid=7', {'Transport': 'RTP/AVP/TCP'})[0] == 404
        for transport in ('RTP/AVP;unicast;client_port=22-23', 'RTP/AVP;multicast', 'RTP/SAVP/TCP',
                          'RTP/AVP/TCP;mode=play', 'RTP/AVP;unicast;client_port=5000-5001;'
                          'destination=192.0.2.1'):
            assert set_up(rtsp, url, transport)[0] == 461, transport
        assert set_up(rtsp, url, 'RTP/AVP/TCP;interleaved=999-1000')[0] == 400
        assert set_up(rtsp, url)[0] == 200
        status = rtsp.request('SETUP', url + '/streamid=1',
                              {'Transport': 'RTP/AVP/TCP;interleaved=1-2'})[0]
        assert status == 461, status
        assert record(rtsp, url) == 200
        assert set_up(rtsp, url)[0] == 455
        rtsp.send(b'$\x00\xff\xff' + bytes(65535)) # not RTP
        rtsp.send(b'$\x00\x00\x00' + b'$\x01\x00\x04abcd')
        assert rtsp.request('GET_PARAMETER', url)[0] == 200
        assert rtsp.request('TEARDOWN', url)[0] == 200


@test
def urls_of_publishers_may_have_queries():
    """queries are ignored, wherever a publisher puts the name of the track, and if there is none"""
    nameless = (HEAD + VIDEO).replace('a=control:streamid=0\r\n', '')
    assert 'control' not in nameless, nameless
    with Proxy({'/cam': LIVE}) as proxy:
        for query in '', '?_=123', '?tcp', '?a=b/c', '?', '?token=S3cr3t':
            for sdp, track in ((HEAD + VIDEO, f'/cam{query}/streamid=0'), (HEAD + VIDEO, f'/cam/streamid=0{query}'),
                               (HEAD + VIDEO, '/cam/streamid=0'), (nameless, f'/cam{query}')):
                with Rtsp(proxy.port) as rtsp:
                    assert announce(rtsp, proxy.url(f'/cam{query}'), sdp)[0] == 200, query
                    for wrong in f'/cam/streamid=7{query}', f'/other{query}':
                        status = rtsp.request('SETUP', proxy.url(wrong), {'Transport': 'RTP/AVP/TCP'})[0]
                        assert status == 404, (wrong, status)
                    status = rtsp.request('SETUP', proxy.url(track), {'Transport': 'RTP/AVP/TCP'})[0]
                    assert status == 200, (query, track, status)
                    assert record(rtsp, proxy.url(f'/cam{query}')) == 200
                    assert rtsp.request('TEARDOWN', proxy.url(f'/cam{query}'))[0] == 200


@test
def a_mount_that_is_removed_closes_its_publisher():
    """a reload that removes the mount closes its publisher"""
    with Controlled({'/cam': {**LIVE, 'read-timeout': '20s'}, '/other': LIVE}) as proxy, \
            Publisher(proxy) as publisher:
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] in (200, 204)
        assert publisher.socket.recv(1) == b''


if __name__ == '__main__':
    run(at_once=2, shared=[media])
