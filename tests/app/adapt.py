# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers of a layered stream get the layers that they choose and that their line can carry."""

import contextlib
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import threading
import time

from clips import ffmpeg
from layered import play, served
from layerreader import LayerReader
from openapi import Contract
from proc import Proc, Rtsp
from proxy import wait_until
from sanitized import stock_environment
from svcfile import GROUP, check_shown, identify, reference, temporal_of_picture
from tap import run, test

CONTRACT = Contract()
JSON = {'Content-Type': 'application/json'}


def state_of(proxy, reader):
    """Returns the API's description of the reader."""
    found = []

    def there():
        answer = proxy.http('GET', '/v1/readers')
        CONTRACT.check('GET', '/v1/readers', answer)
        found[:] = [each for each in answer[2]['readers'] if each['peer'] == reader.peer()]
        return found

    wait_until(there, 10, 'the reader is listed')
    return found[0]


def layers_of(proxy, reader):
    return state_of(proxy, reader)['layers']


def choose(proxy, reader, layers, status=200):
    path = f'/v1/readers/{state_of(proxy, reader)["id"]}'
    answer = proxy.http('PATCH', path, {'layers': layers}, JSON)
    CONTRACT.check('PATCH', path, answer)
    assert answer[0] == status, answer
    return answer[2]


def order(layers):
    """Converts layers to numbers; all (*) is above any layer."""
    return tuple(99 if part == '*' else int(part) for part in layers.split('.'))


def in_stream(layers):
    """Converts layers to numbers, with all (*) as the highest layer of the stream. The API may write
    either."""
    return tuple(min(part, most) for part, most in zip(order(layers), (2, 0, 2)))


def whole_pictures(reader):
    """Returns (number, spatial layer) of the reader's pictures, all of which must be complete."""
    assert reader.assembler.lost == 0, reader.assembler.lost
    return [identify(units) for units in list(reader.assembler.pictures)]


def settled(reader):
    """Returns whole_pictures() from the reader's second key picture on. There its layers take
    effect, even if no other reader has them."""
    seen = whole_pictures(reader)
    keys = [at for at, (n, _) in enumerate(seen) if at > 0 and n % GROUP == 0]
    return seen[keys[0]:]


@test(timeout=60)
def every_due_packet_is_counted():
    """metrics: packets due are packets sent plus packets dropped, by reason"""

    def numbers(text, name):
        return [int(n) for n in re.findall(rf'^weir_{name}_packets_total{{mount="/cam".*}} (\d+)$',
                                           text, re.M)]

    with served(90) as proxy:
        for layers in ('0.0.0', '1.0.1'):
            with play(proxy, f'?layers={layers}') as reader:
                reader.wait_for(GROUP, 60)
        # Wait until no reader has packets left to get.
        wait_until(lambda: not proxy.get('/v1/readers')['readers'][1:], 10, 'all but one have left')
        proxy.http('DELETE', f"/v1/readers/{proxy.get('/v1/readers')['readers'][0]['id']}")
        wait_until(lambda: not proxy.get('/v1/readers')['readers'], 10, 'all readers have left')
        text = proxy.get('/metrics').decode()
        left_out = dict(re.findall(r'^weir_left_out_packets_total{.*reason="([a-z-]+)"} (\d+)$', text,
                                   re.M))
        assert int(left_out['layers']) > 0, left_out
        assert sum(numbers(text, 'sent') + numbers(text, 'socket_lost')
                   + numbers(text, 'left_out')) == numbers(text, 'due')[0] > 0, text


@test(timeout=60)
def by_url():
    """a reader gets the layers that its URL names, over UDP and TCP"""
    with served(60) as proxy, contextlib.ExitStack() as stack:
        readers = {(layers, tcp): stack.enter_context(play(proxy, f'?layers={layers}', tcp=tcp))
                   for layers in ('0.0.0', '1.0.1', '2.0.2', '0.0.2', '*.*.1') for tcp in (False, True)}
        wait_until(lambda: all(len(reader.assembler.pictures) >= 3 * GROUP // 2
                               for reader in readers.values()), 60, 'all readers have a second group')
        for (layers, tcp), reader in readers.items():
            spatial, _, temporal = order(layers)
            seen = settled(reader)
            assert {s for _, s in seen} == {min(spatial, 2)}, (layers, seen)
            assert {temporal_of_picture(n) for n, _ in seen} == set(range(temporal + 1)), seen
            said = int(re.search(r'seq=(\d+)', reader.rtp_info)[1])
            assert reader.first_seq == said, (layers, reader.rtp_info, reader.first_seq)
            told = layers_of(proxy, reader)
            assert told['adapt'] == 'gcc' and told['limit'] == told['wanted'] == layers, told
            assert (told['line'] is not None) == tcp, told
            assert in_stream(told['now']) == in_stream(layers), told


@test
def invalid_layers_in_a_url():
    """a URL with invalid layers, or with layers given twice, gets 404"""
    with served(**{'adapt': 'fixed', 'choices': {'transcode': ['size']}}) as proxy:
        for query, status in [
                ('layers=0.0.0', 200), ('layers=*.*.*', 200), ('layers=7.15.7', 200),
                ('layers=', 404), ('layers', 404), ('layers=1', 404), ('layers=1.0', 404),
                ('layers=1.0.0.0', 404), ('layers=8.0.0', 404), ('layers=0.16.0', 404),
                ('layers=0.0.8', 404), ('layers=-1.0.0', 404), ('layers=+1.0.0', 404),
                ('layers=1..0', 404), ('layers=a.b.c', 404), ('layers=0x1.0.0', 404),
                ('layers=1.0.0&layers=1.0.0', 404), ('layers=1.0.0&x=1', 200),
                ('layers=1.0.99999999999999999999', 404), ('size=nix&layers=1.0.0', 404)]:
            with Rtsp(proxy.port) as rtsp:
                got = rtsp.request('DESCRIBE', proxy.url('/cam?' + query))[0]
                assert got == status, (query, got)


@test
def off():
    """with adapt off, readers get the mount's layers and cannot choose"""
    with served(adapt='off', layers='1.0.1') as proxy, play(proxy) as reader:
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.request('DESCRIBE', proxy.url('/cam?layers=0.0.0'))[0] == 404
        reader.wait_for(GROUP)
        assert {s for _, s in settled(reader)} == {1}
        assert layers_of(proxy, reader)['limit'] == '1.0.1'
        error = choose(proxy, reader, '0.0.0', 409)['error']
        assert 'because the mount has adapt: off' in error['message'], error


@test
def limits():
    """neither URL nor API exceeds the mount's layers, which can change under readers"""
    with served(adapt='fixed', layers='1.0.*') as proxy, \
            play(proxy, '?layers=2.0.1') as reader:
        assert layers_of(proxy, reader)['limit'] == '1.0.1'
        assert choose(proxy, reader, '0.0.2')['layers']['limit'] == '0.0.2'
        assert choose(proxy, reader, 'auto')['layers']['limit'] == '1.0.*'
        for wrong in ('', '1', 'x', '9.0.0', None, 5):
            choose(proxy, reader, wrong, 400)
        assert proxy.http('PATCH', '/v1/mounts/cam', {'layers': '0.0.*'}, JSON)[0] == 200
        wait_until(lambda: layers_of(proxy, reader)['now'] == '0.0.*', 10, 'fewer layers')
        answer = proxy.http('PATCH', '/v1/mounts/cam?dry-run', {'layers': None}, JSON)
        assert 'the new layers' in answer[2]['change']['effect'], answer
        assert proxy.http('PATCH', '/v1/mounts/cam', {'layers': None}, JSON)[0] == 200
        wait_until(lambda: layers_of(proxy, reader)['now'] == '2.*.*', 10, 'all layers')
        whole_pictures(reader)


@test(timeout=120)
def a_hundred_changes():
    """a reader whose layers the API changes 100 times sees every frame bit-exact"""
    seed = int(time.time())
    print(f'# seed {seed}')
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        references = [reference(directory, spatial) for spatial in range(3)]
        with served(120, adapt='fixed') as proxy, play(proxy) as udp, play(proxy, tcp=True) as tcp:
            for _ in range(100):
                for reader in udp, tcp:
                    layers = [chance.randrange(3), 0, chance.randrange(3)]
                    choose(proxy, reader, '.'.join(map(str, layers)))
                udp.wait_for(chance.randrange(1, 15))
            for number, reader in enumerate((udp, tcp)):
                shown = whole_pictures(reader)
                assert {spatial for _, spatial in shown} == {0, 1, 2}, 'not all layers were shown'
                for n, units in enumerate(list(reader.assembler.pictures)[:len(shown)]):
                    (directory / f'{number}-{n}.264').write_bytes(
                        b''.join(b'\0\0\0\1' + unit for unit in units))
                check_shown(directory, number, shown, references)


class Reporting:
    """Sends receiver reports regularly, with a loss that the test sets."""

    def __init__(self, reader, every=1.0):
        self.reader, self.every, self.loss = reader, every, 0
        self._ends, self._lost, self._expected = threading.Event(), 0.0, 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._ends.wait(self.every):
            expected = self.reader.expected()
            self._lost += self.loss * (expected - self._expected)
            self._expected = expected
            self.reader.report(int(self._lost))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()


@test(timeout=120)
def by_reports():
    """a reader that reports loss gets fewer layers until the loss ends; others are unaffected"""
    with served(join='live') as proxy, play(proxy) as reader, play(proxy) as other, \
            Reporting(reader) as reports, Reporting(other):
        wait_until(lambda: layers_of(proxy, reader)['estimate'], 20, 'a report was read')
        assert layers_of(proxy, reader)['wanted'] == '*.*.*'
        reports.loss = 0.5
        wait_until(lambda: layers_of(proxy, reader)['now'].startswith('0.'), 20, 'fewer layers')
        reports.loss = 0
        low = order(layers_of(proxy, reader)['wanted'])
        wait_until(lambda: order(layers_of(proxy, reader)['wanted']) > low, 60, 'more layers')
        assert layers_of(proxy, other)['wanted'] == '*.*.*', layers_of(proxy, other)
        # Packets that the filter left out leave no gap in the sequence numbers.
        whole_pictures(reader)
        whole_pictures(other)


class FeedbackReader(LayerReader):
    """Tells of each packet when it came, as if over a line of `.line` bits a second."""

    def __init__(self, proxy, query='?feedback=transport-cc'):
        self.line, self._arrived, self._told, self._waiting = 1e9, 0, 0, []
        super().__init__(proxy.port, proxy.url('/cam' + query))

    def _got(self, packet):
        if not packet[0] & 0x10:
            super()._got(packet)
            return
        super()._got(bytes([packet[0] & ~0x10]) + packet[1:12] + packet[20:])
        form, words, head, number = struct.unpack_from('>HHBH', packet, 12)
        assert form == 0xbede and words == 1 and head == 14 << 4 | 1, packet[:24]
        now = time.monotonic()
        self._arrived = max(now, self._arrived) + len(packet) * 8 / self.line
        self._waiting.append((number, self._arrived))
        if now - self._waiting[0][1] > 0.05 or len(self._waiting) == 50:
            self._tell()

    def _tell(self):
        first = self._waiting[0][0]
        numbers = [number - first & 0xffff for number, _ in self._waiting]
        assert numbers == list(range(len(numbers))), numbers
        last = reference = int(self._waiting[0][1] / 0.064)
        last *= 256
        deltas = b''
        for _, arrived in self._waiting:
            ticks = int(arrived / 0.00025)
            deltas, last = deltas + struct.pack('>h', ticks - last), ticks
        body = struct.pack('>IIHHIH', 5, self._ssrc, first, len(numbers),
                           (reference & 0xffffff) << 8 | self._told, 2 << 13 | len(numbers)) + deltas
        body += bytes(-len(body) % 4)
        self._told = self._told + 1 & 0xff
        self._waiting.clear()
        self._sockets[1].sendto(struct.pack('>BBH', 0x8f, 205, len(body) // 4) + body, self._there)


@test(timeout=120)
def by_feedback():
    """a reader over UDP that tells of each packet gets what its line carries within seconds"""
    with served() as proxy, FeedbackReader(proxy) as reader:
        wait_until(lambda: (layers_of(proxy, reader)['line'] or {}).get('state') == 'clear', 10,
                   'the line is known')
        reader.wait_for(GROUP)
        seen = settled(reader)
        assert {s for _, s in seen} == {2}, seen
        reader.line = 1e6
        wait_until(lambda: order(layers_of(proxy, reader)['wanted'])[0] < 2
                   or order(layers_of(proxy, reader)['wanted'])[2] < 2, 10, 'it gets less')
        told = layers_of(proxy, reader)
        assert told['line']['reason'] == 'the queue on its line grows', told
        assert 0 < told['estimate'] < 1.5e6, told
        assert state_of(proxy, reader)['transport'] == 'UDP'


@test(timeout=60)
def feedback_is_asked_for():
    """only who asks for it is offered feedback on each packet, and only over UDP"""
    with served() as proxy:
        for query, offered in ('', False), ('?feedback=transport-cc', True), ('?layers=1.0.2', False):
            with Rtsp(proxy.port) as rtsp:
                sdp = rtsp.request('DESCRIBE', proxy.url('/cam' + query))[2].decode()
            assert ('a=extmap:14 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01'
                    '\r\n' in sdp) == offered, (query, sdp)
            assert ('a=rtcp-fb:* transport-cc\r\n' in sdp) == offered, (query, sdp)
        with play(proxy, '?feedback=transport-cc', tcp=True) as over_tcp, FeedbackReader(proxy, '') as other:
            for reader in over_tcp, other:
                reader.wait_for(GROUP // 2)
                assert layers_of(proxy, reader)['line'] is None, layers_of(proxy, reader)
            assert not other._told


@test(timeout=60)
def players_take_the_offer():
    """players play with the offer of feedback on each packet: FFmpeg as without it, GStreamer gives it"""
    with served() as proxy:
        url = proxy.url('/cam?feedback=transport-cc')
        done = subprocess.run([ffmpeg(), '-nostdin', '-v', 'error', '-rtsp_transport', 'udp', '-i', url,
                               '-t', '2', '-c', 'copy', '-f', 'framecrc', '-'], timeout=50, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        frames = [line for line in done.stdout.splitlines() if not line.startswith(b'#')]
        assert len(frames) > 30, done.stdout
        with Proc('gst-launch-1.0', '-q', 'rtspsrc', f'location={url}', 'protocols=udp', '!', 'fakesink',
                  env=stock_environment()):
            wait_until(lambda: any((each['layers'] or {}).get('line') for each in
                                   proxy.get('/v1/readers')['readers']), 30, 'GStreamer tells of its line')


@test(timeout=120)
def by_lag():
    """a TCP reader that takes 400 kb/s gets layers that fit"""
    with served(join='live') as proxy, play(proxy, tcp=True, receive_buffer=16384) as reader:
        reader.rate = 50000
        wait_until(lambda: order(layers_of(proxy, reader)['wanted']) < (1, 0, 1), 60, 'fewer layers')
        assert layers_of(proxy, reader)['estimate'] < 800000, layers_of(proxy, reader)


if __name__ == '__main__':
    run()
