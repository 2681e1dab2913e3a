# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stages between an upstream and the relay: what they see, and what passes through them."""

import contextlib
import os
import re
import struct
import subprocess
import tempfile
import time

import clips
from control import CLIP_URI, Controlled, Watch
from proc import Proc, free_port
from proxy import QUICK, Origin, Read, ffmpeg_reads, listens, matches, said, wait_until
from rtpsender import PLI, Sender, packet, session, uri
from scripted import SSRC, feedback, sender_report
from secured import rtspsrc_reads
from tap import SLOWER, run, test

ON = {'on-demand': False}
HEADER = '---\nsummary: for a test\nmedia: {}\ntakes: rtp\ngives: rtp\n{}---\n'
DROP = ('parameters:\n  drop:\n    type: number\n    default: 0.05\n    min: 0\n    max: 1\n'
        '    help: the share of packets that is lost\n')
# For each stage: its media, parameters and launch text.
STAGES = {
    'watch': ('any', '', 'identity'),
    'lossy': ('any', DROP, 'identity drop-probability={drop}'),
    # After 300 packets, its run fails.
    'failing': ('video', '', 'identity error-after=300'),
    # What it gives has no caps that fit.
    'unfit': ('video', '', 'capsfilter caps=video/x-raw'),
    # It takes 100 packets a second.
    'slow': ('any', '', 'identity sleep-time=10000'),
    'repay': ('video', 'codec: H264\n', 'rtph264depay ! rtph264pay pt=111 timestamp-offset=0'),
}


@contextlib.contextmanager
def proxied(mounts, **top):
    """Runs the proxy with the stages of this file."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (media, params, text) in STAGES.items():
            with open(os.path.join(folder, f'{name}.launch'), 'w', encoding='utf-8') as file:
                file.write(f'{HEADER.format(media, params)}{text}\n')
        with Controlled(mounts, stages=folder, **top) as proxy:
            yield proxy


@contextlib.contextmanager
def staged(port, upstream=None, others=None, **settings):
    """Runs the proxy with an RTP upstream on a port, in front of a stage, and a sender to it."""
    settings = {'upstream': upstream or uri(port), 'source-stages': ['watch'], **ON, **settings}
    with proxied({'/cam': settings, **(others or {})}) as proxy, Sender(port) as sender:
        wait_until(lambda: listens(port) and listens(port + 1), 10, 'the ports are open')
        yield proxy, sender


def nodes(proxy, kind, label=None):
    return [node for node in proxy.get('/v1/graph')['nodes']
            if node['kind'] == kind and label in (None, node['label'])]


def media_of(reader, last):
    """Returns the packets that a reader gets, without their SSRC, up to one that ends with `last`."""
    got = []
    while not got or got[-1][-4:] != struct.pack('>I', last):
        channel, data = reader.frame()
        if channel == 0:
            got.append(data[:8] + data[12:])
    return got


def arrive_alike(packets):
    """Checks that readers get these packets of an upstream alike behind a source stage and without one.
    Returns what they get. The last packet ends with its number."""
    port = free_port()
    with staged(port, others={'/plain': {'upstream': uri(port), **ON}}) as (proxy, sender), \
            sender.watched(proxy) as reader, Watch(proxy, '/plain') as plain:
        # Of the packets so far, the second reader has got the last one only.
        sent = [packet(sender.next + 1), *packets(sender.next + 2)]
        last, = struct.unpack('>I', sent[-1][-4:])
        sender.send(*sent)
        got = media_of(reader, last)
        assert got == media_of(plain, last), got
        return got


@test(timeout=60)
def packets_pass_as_they_came_from_the_line():
    """lost, swapped and late packets reach the readers in the order of their arrival, with their numbers"""
    sent = []

    def packets(first):
        # By their timestamps they take less than the 15 s of a stage's input: it may fall behind.
        for at in range(first, first + 320, 8):
            sent.extend(at + n for n in (2, 0, 1, 5, 4, 3, 6)) # the last of eight is lost
        sent.append(first + 340)
        return [packet(number) for number in sent]

    got = arrive_alike(packets)
    assert [struct.unpack('>I', data[-4:])[0] for data in got[-len(sent):]] == sent, got
    assert [struct.unpack('>H', data[2:4])[0] for data in got[-len(sent):]] == sent, got


@test(timeout=60)
def what_a_stage_does_not_take_in_time_is_counted():
    port = free_port()
    with staged(port, **{'source-stages': ['slow']}) as (proxy, sender), sender.watched(proxy) as reader:
        # 40 s by the timestamps, in 0.8 s: the stage's input holds 15 s.
        first, last = sender.next + 1, sender.next + 1000
        for at in range(first, last, 25):
            sender.send(*(packet(at + n) for n in range(25)))
            time.sleep(0.02)
        shown = [n for data in media_of(reader, last) if (n := struct.unpack('>I', data[-4:])[0]) >= first]
        left_out = proxy.metric('ingest_overflow_packets_total{mount="/cam"}')
        assert left_out > 50 and len(shown) + left_out == last + 1 - first, (len(shown), left_out)
        proxy.wait_for_line('stage slow does not keep up: [0-9]+ packets or frames were dropped')


@test(timeout=60)
def odd_packets_harm_nothing():
    """packets without payload, with padding, an extension or a wrong length, and numbers that jump"""
    def packets(at):
        head = struct.pack('>BBHII', 0x80, 96, at, at * 3600, SSRC)
        extension = struct.pack('>HH', 0xbede, 1) + bytes(4)
        yield head
        for n, data in enumerate((b'\xa0' + head[1:] + b'\x04\x00\x00\x04', b'\xb0' + head[1:] + b'\xff' * 4,
                                  b'\x90' + head[1:] + extension + packet(at)[12:], head + bytes(1400))):
            yield data[:2] + struct.pack('>H', at + 1 + n) + data[4:]
        yield from (b'\x80', b'', packet(at, ssrc=1))
        yield from (packet(number) for number in (40000, 40001, at + 5, at + 6, 40002, 40003, 40004))

    assert len(arrive_alike(packets)) > 5


@test(timeout=60)
def a_keyframe_request_reaches_the_upstream():
    port = free_port()
    with tempfile.NamedTemporaryFile('w', suffix='.sdp') as file:
        file.write(session(port, 'AVPF', 'rtcp-fb:* nack pli'))
        file.flush()
        with staged(port, f'sdp://{file.name}') as (proxy, sender):
            sender.report(0)
            with sender.watched(proxy) as reader:
                sender.send(packet(sender.next))
                channel = 1
                while channel != 0:
                    channel, data = reader.frame()
                reader.send_frame(1, struct.pack('>BBHI', 0x80, 201, 1, 7)
                                  + struct.pack('>BBHI', 0x80 | PLI, 206, 2, 7) + data[8:12])
                while not (found := feedback(sender.rtcp.recv(2000))):
                    pass
                assert found[0][:2] == (PLI, SSRC), found


@test(timeout=60)
def readers_get_the_clock_of_the_upstream():
    """a sender report to a reader tells the times that the upstream's sender reports tell"""
    port = free_port()
    with staged(port) as (proxy, sender), sender.watched(proxy) as reader:
        at = 3_900_000_000 << 32 # NTP time of the timestamp 0
        sender.rtcp.sendto(sender_report(at, 0), ('127.0.0.1', port + 1))
        told = None
        while not told:
            sender.send(packet(sender.next))
            sender.next += 1
            time.sleep(0.02)
            channel, data = reader.frame()
            if channel == 1 and data[1] == 200:
                told = struct.unpack_from('>QI', data, 8)
        seconds = (told[0] - at) / (1 << 32)
        assert abs(seconds * 90000 - told[1]) < 90, told


@test(timeout=120)
def players_read_through_a_lossy_stage():
    """RTSP, with each client: other people's players play what a stage has left of the packets"""
    for client in 'light', 'rtspsrc':
        with Origin() as origin, proxied({'/cam': {
                'upstream': origin.url, 'client': client, **ON,
                'source-stages': [{'lossy': {'drop': '0.02'}}]}}) as proxy:
            proxy.wait_for_line(r' mount /cam up: .*, 2 tracks$', 20)
            ffmpeg_reads(proxy.url(), 'tcp')
            rtspsrc_reads(proxy.url(), 'udp', 'rtph264depay', '!', 'h264parse', '!', 'identity', 'eos-after=20', '!', 'fakesink')
            totals = Read(proxy.url(), duration=3).result(status=None)['totals']
            # What the stage has taken out, readers see as lost, and nothing else is wrong.
            assert 0 < totals['lost'] < totals['packets'] / 5, totals
            assert totals['reordered'] == totals['duplicates'] == totals['ssrc_changes'] == 0, totals
            assert proxy.metric('ingest_lost_packets_total{mount="/cam"}') > 0


@test(timeout=60)
def a_change_of_the_stages_takes_over():
    """PATCH: other source stages start beside the running ones, and readers stay; the API and
    --explain show them"""
    mounts = {'/cam': {'upstream': CLIP_URI, 'source-stages': ['watch'], **ON},
              '/plain': {'upstream': CLIP_URI, **ON}}
    with proxied(mounts) as proxy, Watch(proxy) as reader:
        assert proxy.get('/v1/mounts/cam')['config']['source-stages'] == ['watch']
        before, = nodes(proxy, 'stage', 'watch')
        # Both mounts read the same upstream, which runs once.
        assert len(nodes(proxy, 'upstream')) == 1, nodes(proxy, 'upstream')
        for body, expected in (({'source-stages': [{'lossy': {'drop': '0'}}, 'watch']}, ['lossy', 'watch']),
                               ({'source-stages': None}, []), ({'source-stages': ['repay']}, ['repay'])):
            status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', body)
            assert status == 200, answer
            wait_until(lambda: sorted(node['label'] for node in nodes(proxy, 'stage')
                                      if node['label'] != 'pull') == expected
                       and not reader.receive(), 20, expected)
            reader.take()
        status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', {'source-stages': ['no-such']})
        assert status == 400 and 'source-stages' in str(answer) and 'no-such' in str(answer), answer
        assert before['state'] == 'up', before
        text = subprocess.run([os.environ['WEIR_RTSP_PROXY'], '--config', proxy.file, '--explain', '/cam'],
                              capture_output=True, text=True, timeout=20 * SLOWER, check=True).stdout
        assert '# watch: identity\n' in text and 'Each upstream has stages of its own: watch.' in text, text


def reason(proxy, n):
    return proxy.get('/v1/mounts/cam')['upstreams'][n].get('reason', '')


@test(timeout=120)
def a_stage_that_fails_is_a_failure_of_its_upstream():
    """with several upstreams, the next one takes over, behind a stage of its own; readers stay"""
    with Origin(clip=clips.clip(1, 20)) as a, Origin(clip=clips.clip(1, 20)) as b, proxied({'/cam': {
            'upstreams': [a.url, b.url], 'source-stages': ['failing'], **ON}}) as proxy:
        with Watch(proxy) as reader:
            took = rf' upstream {re.escape(b.url)} took over from {re.escape(a.url)}$'
            proxy.wait_for_line(took, 30)
            proxy.wait_for_line(rf' upstream {re.escape(a.url)}: stage failing: ', 5)
            assert reason(proxy, 0).startswith(f'{a.url}: stage failing: '), reason(proxy, 0)
            reader.take()
            wait_until(lambda: proxy.metric('failovers_total{mount="/cam"}') >= 2, 30, 'the other one fails, too')
            reader.take()


@test(timeout=60)
def a_stage_that_cannot_run_says_so():
    with proxied({'/cam': {'upstream': CLIP_URI, 'source-stages': ['unfit'], **QUICK, **ON}}) as proxy:
        proxy.wait_for_line(r' mount /cam down: .*stage unfit: ', 20)
        assert matches(proxy, rf' mount /cam down: {re.escape(CLIP_URI)}: stage unfit: ')


@test(timeout=120)
def a_warm_standby_has_its_stages():
    with Origin(clip=clips.clip(2, 20)) as a, Origin(clip=clips.clip(2, 20)) as b, proxied({'/cam': {
            'upstreams': [a.url, b.url], 'standby': 'warm', 'source-stages': ['watch'],
            'read-timeout': '5s', **ON}}) as proxy:
        wait_until(lambda: proxy.metric('standby_ready{mount="/cam"}') == 1, 20, 'the standby is ready')
        assert len(nodes(proxy, 'stage', 'watch')) == 2
        with Watch(proxy) as reader:
            reader.take()
            a.kill()
            proxy.wait_for_line(rf' upstream {re.escape(b.url)} took over from ', 10)
            reader.take()


@test(timeout=90)
def stages_start_and_stop_with_their_upstream():
    with Origin() as origin, proxied({'/cam': {
            'upstream': origin.url, 'source-stages': ['watch'], 'linger': '200ms'}}) as proxy:
        for _ in range(2):
            with Watch(proxy) as reader:
                reader.take()
                assert nodes(proxy, 'stage', 'watch')[0]['state'] == 'up'
            wait_until(lambda: not nodes(proxy, 'stage'), 10, 'all have stopped')


@test(timeout=120)
def the_source_may_be_of_any_kind():
    """a clip in a worker process, a launch line, and a client that publishes; with isolated stages"""
    launch = ('launch:videotestsrc is-live=true ! video/x-raw,format=I420,width=64,height=64,'
              'framerate=25/1 ! jpegenc ! rtpjpegpay name=pay0')
    mounts = {'/clip': {'upstream': CLIP_URI, 'source-stages': ['watch']},
              '/line': {'upstream': launch, 'source-stages': ['watch']},
              '/small': {'upstream': CLIP_URI, 'source-stages': [{'transcode': {'size': '64x64'}}],
                         'pipeline': ['pull', 'restamp']},
              '/in': {'upstream': 'publish', 'source-stages': ['watch']}}
    for isolate in 'auto', 'yes':
        with proxied(mounts, isolate=isolate) as proxy:
            for path in '/clip', '/line', '/small':
                with Watch(proxy, path) as reader:
                    reader.take()
                    if isolate == 'yes':
                        label = 'transcode' if path == '/small' else 'watch'
                        assert any('worker' in node['params'] for node in nodes(proxy, 'stage', label)), path
            with Proc('ffmpeg', '-v', 'error', '-re', '-stream_loop', '-1', '-i', CLIP_URI[7:], '-c', 'copy',
                      '-f', 'rtsp', '-rtsp_transport', 'tcp', proxy.url('/in')):
                proxy.wait_for_line(r' mount /in up: ', 20)
                with Watch(proxy, '/in') as reader:
                    reader.take()


@test
def what_cannot_work_is_refused():
    """a mistake is reported with its file, line and column"""
    head = 'mounts:\n  /cam:\n    upstream: rtsp://192.0.2.7/x\n    source-stages: '
    at = 'FILE:4:'
    cases = (
        ('[no-such]', f'{at}21: source-stages: there is no stage "no-such"; known stages: '),
        ('restamp', f'{at}20: source-stages: expected a list of stages'),
        ('[pull]', f'{at}21: source-stages: stage pull: source stages come after it; leave it out'),
        ('[picture-in-picture]', f'{at}21: source-stages: stage picture-in-picture: takes the media of several'),
        ('[restamp, restamp]', f'{at}21: source-stages: stage restamp: appears twice'),
        ('[decode]', f'{at}21: source-stages: stage decode: gives raw video; add a stage that makes RTP'),
        ('[{restamp: {limit: 3}}]', f'{at}39: source-stages: limit: "3" is not a duration'),
        ('[{restamp: {limt: 3s}}]', f'{at}38: source-stages: restamp has no parameter "limt"'),
    )
    for text, expected in cases:
        check(head + text + '\n', expected)
    check('mounts:\n  /cam:\n    upstream: file:///tmp/\n    source-stages: [restamp]\n',
          'FILE:4:20: source-stages: this mount has no live stream')
    check('mounts:\n  /cam:\n    upstream: rtsp://192.0.2.7/x\n    interval: 5s\n'
          '    source-stages: [restamp]\n',
          'FILE:5:20: source-stages: this mount has no live stream')
    check('mounts:\n  /a:\n    upstream: rtsp://192.0.2.7/x\n  /b:\n    upstream: rtsp://192.0.2.7/y\n  /c:\n'
          '    inputs: [/a, /b]\n    pipeline: [pull, mix, aac]\n    source-stages: [restamp]\n',
          'FILE:9:20: source-stages: a mount with inputs has no upstream')


def check(text, expected):
    """Checks that a configuration is refused with a message that begins so."""
    told, status = said(text, '--check-config')
    assert status == 2 and told.startswith(f'rtsp-proxy: {expected}'), (text, told)


if __name__ == '__main__':
    run()
