# SPDX-License-Identifier: LGPL-2.1-or-later
"""`fan-out: elements`: gst-rtsp-server's own media serves a mount's readers."""

import contextlib
import struct

from control import CLIP_URI, Controlled, Watch
from proc import Rtsp, thread_names
from proxy import Origin, Read, ffmpeg_reads, said, wait_until
from secured import rtspsrc_reads
from tap import run, test

ON = {'on-demand': False}
ELEMENTS = {'fan-out': 'elements', 'client': 'rtspsrc'}


@contextlib.contextmanager
def served(**settings):
    with Origin() as origin, Controlled({
            '/cam': {'upstream': origin.url, **ELEMENTS, **settings},
            '/other': {'upstream': origin.url, **settings}}) as proxy:
        yield origin, proxy


def has_element_threads(proxy):
    """Reports whether an rtpbin of a served mount runs: it waits for the RTCP of readers."""
    return any(name.startswith('rtpsession') for name in thread_names(proxy.pid).values())


@test(timeout=120)
def readers_get_the_stream_unchanged():
    """over UDP and TCP, several at once, each gets all packets of both tracks in order"""
    with served() as (origin, proxy):
        with Read(proxy.url(), transport='tcp', readers=3, duration=5, expect=origin.expect) as tcp, \
                Read(proxy.url(), transport='udp', readers=3, duration=5, expect=origin.expect) as udp:
            for result in tcp.result(), udp.result():
                totals = result['totals']
                assert totals['ok'] == 3 and totals['lost'] == totals['mismatched'] == 0, totals
                assert totals['matched'] > 100, totals


@test(timeout=120)
def players_of_others_read():
    with served() as (_, proxy):
        for transport in 'tcp', 'udp':
            ffmpeg_reads(proxy.url(), transport)
            rtspsrc_reads(proxy.url(), transport, 'rtph264depay', '!', 'h264parse', '!', 'identity', 'eos-after=20', '!',
                          'fakesink')


@test(timeout=120)
def a_mount_changes_between_engine_and_elements():
    """a change closes the readers; those who come again get the other media"""
    with Controlled({'/cam': {'upstream': CLIP_URI, 'fan-out': 'elements', **ON}}) as proxy:
        for way, there in ('elements', True), ('engine', False), ('elements', True):
            status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', {'fan-out': way})
            assert status == 200, answer
            with Watch(proxy) as reader:
                reader.take()
                assert proxy.get('/v1/mounts/cam')['config']['fan-out'] == way
                wait_until(lambda: has_element_threads(proxy) == there, 10, way)
                listed, = proxy.get('/v1/readers')['readers']
                assert listed['packets'] > 0 and listed['mount'] == '/cam', listed
                other = 'engine' if there else 'elements'
                status, _, answer = proxy.http('PATCH', '/v1/mounts/cam?dry-run', {'fan-out': other})
                assert status == 200 and 'readers are closed' in str(answer), answer
                seen = len(proxy.lines)
                proxy.http('PATCH', '/v1/mounts/cam', {'fan-out': other})
                proxy.wait_for_line(r' reader \S+ out: /cam', 10, start=seen)


@test(timeout=90)
def odd_readers_harm_nothing():
    """a reader that sends RTCP with wrong lengths, one that plays one track only, and one that goes at once"""
    with served(**ON) as (_, proxy):
        proxy.wait_for_line(r' mount /cam up: ')
        with Watch(proxy) as steady:
            for hurt in (b'\x80', b'\x81\xc9\x00\x01', b'\x80\xc8\xff\xff' + bytes(8), bytes(1400),
                         struct.pack('>BBHI', 0x81, 206, 9, 1)):
                steady.send_frame(1, hurt)
            for _ in range(5):
                reader = Watch(proxy)
                reader.socket.close()
            steady.take(100)
            # A reader whose port nobody has.
            with Rtsp(proxy.port) as rtsp:
                url = proxy.url()
                assert rtsp.request('DESCRIBE', url)[0] == 200
                assert rtsp.request('SETUP', f'{url}/stream=0', {
                    'Transport': 'RTP/AVP;unicast;client_port=9-10'})[0] in (200, 461)
            steady.take(100)


@test
def what_cannot_work_is_refused():
    head = 'mounts:\n  /cam:\n    upstream: rtsp://192.0.2.7/x\n'
    for text, expected in (
            (head + '    cache: {time: 10s}\n    fan-out: elements\n',
             '5:14: fan-out: elements serves at the live edge only; remove cache'),
            (head + '    interval: 10s\n    fan-out: elements\n', '5:14: fan-out: elements is for live streams'),
            (head + '    fan-out: kernel\n', '4:14: fan-out: '),
            ('mounts:\n  /cam:\n    upstream: file:///tmp/\n    fan-out: elements\n',
             '4:14: fan-out: elements is for live streams')):
        told, status = said(text, '--check-config')
        assert status == 2 and told.startswith(f'rtsp-proxy: FILE:{expected}'), told


if __name__ == '__main__':
    run()
