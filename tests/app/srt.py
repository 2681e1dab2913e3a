# SPDX-License-Identifier: LGPL-2.1-or-later
"""The SRT listener: publishers and readers on one port, well and badly."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager

from control import Controlled
from libsrt import BAD_SECRET, UNSECURE, Caller
from livets import clip
from proc import Proc
from proxy import CLIP, Read, matches, program, tracks, wait_for_readers, wait_until
from sanitized import stock_environment
from sent import Sender, check_frames, clip_hashes, frames, sync
from srtraw import FILTER, KEYS, RawCaller, extension, request, text
from tap import Skip, run, test
from transportstream import check_packets, frames as ts_frames, offset_error
from workers import workers_of

FILE = {'upstream': f'file://{CLIP}'}
LISTEN = {'listen': '127.0.0.1:0', 'latency': '1s'} # a busy machine is late
LIVE = {'upstream': 'publish', 'start-timeout': '20s', 'read-timeout': '20s', 'connect-timeout': '20s'}
PASSPHRASE = 'correct-horse-battery'
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, BAD_MODE, CONFLICT = 1400, 1401, 1403, 1404, 1405, 1409


class Srt(Controlled):
    def __init__(self, mounts, srt=None, **top):
        super().__init__(mounts, srt={**LISTEN, **(srt or {})}, **top)
        try:
            self.srt_port = int(self.wait_for_line(r' takes publishers at srt://127\.0\.0\.1:(\d+)$')[1])
        except BaseException:
            self.kill()
            raise

    def srt(self, stream_id, more=''):
        return f'srt://127.0.0.1:{self.srt_port}?streamid={stream_id}{more}'

    def send(self, stream_id, more=''):
        """Has FFmpeg publish the film. Returns its process."""
        return Sender('-c', 'copy', '-f', 'mpegts', self.srt(stream_id, f'&pkt_size=1316{more}'))

    def call(self, stream_id, **more):
        return Caller(self.srt_port, stream_id, **more)

    def wait_for_mount(self, tracks_=2, path='/cam', start=0):
        self.wait_for_line(rf' mount {path} up: publish, {tracks_} tracks$', 30, start=start)


@test
def what_ffmpeg_publishes_arrives_unchanged():
    """frames that FFmpeg publishes reach an RTSP reader unchanged and in sync, and an SRT reader too"""
    with Srt({'/cam': LIVE}) as proxy, proxy.send('publish:cam'):
        proxy.wait_for_line(r' publisher 127\.0\.0\.1:\d+ in: /cam over SRT$', 20)
        proxy.wait_for_mount()
        times = check_frames(proxy, ('video', 'audio'))
        assert abs(sync(times)) < 5, sync(times)
        got = frames(proxy.srt('read:cam'))
        known = set(clip_hashes()['video'])
        seen = [frame for _, frame in got['video']]
        assert len(seen) > 40 and not [frame for frame in seen if frame not in known]
        told = proxy.http('GET', '/v1/mounts/cam')[2]['publisher']
        assert told['transport'] == 'SRT', told


@test
def what_gstreamer_publishes_arrives_unchanged():
    """frames that srtsink publishes, with B-frames, arrive; the mount tells apart its two callers"""
    launch = ['filesrc', f'location={clip()}', '!', 'qtdemux', '!', 'h264parse', '!',
              'video/x-h264,stream-format=byte-stream,alignment=au', '!', 'mpegtsmux', 'alignment=7', '!', 'srtsink']
    with Srt({'/cam': LIVE}) as proxy:
        uri = f'uri=srt://127.0.0.1:{proxy.srt_port}'
        with Proc('gst-launch-1.0', '-q', *launch, uri, 'mode=caller', 'streamid=#!::r=/cam,m=publish,u=x',
                  env=stock_environment()):
            proxy.wait_for_mount(1)
            with Read(proxy.url(), duration=2) as read:
                for number, name, track in tracks(read.result(status=None)): # B-frames: timestamps go back
                    assert track['lost'] == 0 and track['packets'] > 20, (number, name, track)


@test
def what_srt_live_transmit_publishes_arrives_unchanged():
    """frames that srt-live-transmit publishes, in pieces of other lengths than packets, arrive unchanged and in sync"""
    if not shutil.which('srt-live-transmit'):
        raise Skip('srt-live-transmit is missing')
    with tempfile.TemporaryDirectory() as folder, Srt({'/cam': LIVE}) as proxy:
        pipe = os.path.join(folder, 'pipe')
        os.mkfifo(pipe)
        with Proc('sh', '-c', f'exec srt-live-transmit -q -a:no -chunk:1000 file://con "$0" < {pipe}',
                  proxy.srt('publish:cam')), Sender('-c', 'copy', '-f', 'mpegts', '-y', pipe):
            proxy.wait_for_mount()
            times = check_frames(proxy, ('video', 'audio'))
            assert abs(sync(times)) < 5, sync(times)


@test
def a_reader_gets_the_stream_from_a_join_point():
    """srt-live-transmit gets whole packets, with the source's frames at its offsets; the API shows it"""
    if not shutil.which('srt-live-transmit'):
        raise Skip('srt-live-transmit is missing')
    with tempfile.TemporaryDirectory() as folder, \
            Srt({'/cam': {'upstream': f'file://{clip()}', 'linger': '500ms'}}) as proxy:
        path = os.path.join(folder, 'got.ts')
        with Proc('sh', '-c', f'exec srt-live-transmit -q -a:no "{proxy.srt("#!::r=cam")}" file://con > "{path}"'):
            wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 300000, 40, 'media over SRT')
            shown = proxy.http('GET', '/v1/readers')[2]['readers']
            assert [(one['transport'], one['mount']) for one in shown] == [('SRT', '/cam')], shown
            assert proxy.metric('srt_connections') == 1
            seen = len(proxy.lines)
            assert proxy.http('DELETE', f'/v1/readers/{shown[0]["id"]}')[0] in (200, 204)
            proxy.wait_for_line(r' reader 127\.0\.0\.1:\d+ out: /cam: ', start=seen - 1)
        with open(path, 'rb') as file:
            data = file.read()
        check_packets(data[:len(data) // 188 * 188])
        sent, source = ts_frames(path), ts_frames(clip())
        for kind in 'va':
            known = {md5 for _, md5 in source[kind]}
            wrong = [md5 for _, md5 in sent[kind][1:-2] if md5 not in known]
            assert not wrong and len(sent[kind]) > 40, (kind, len(wrong), len(sent[kind]))
        assert offset_error(sent, source) < 0.005, offset_error(sent, source)


@test
def a_stream_that_no_transport_stream_carries_is_refused():
    with Srt({'/cam': {'upstream': f'file://{clip("vp8-only.webm")}'}}) as proxy, proxy.call('read:cam') as caller:
        proxy.wait_for_line(r' reader 127\.0\.0\.1:\d+ out: /cam: track 0: MPEG-TS cannot carry VP8$', 30)
        wait_until(lambda: not caller.is_open(), 20, 'the end')


REFUSED = {
    None: BAD_REQUEST, 'cam': BAD_REQUEST, 'watch:cam': BAD_REQUEST, '#!::m=publish': BAD_REQUEST,
    '#!::r=cam,r=cam': BAD_REQUEST, '#!::rcam': BAD_REQUEST, 'read:c\x1b[2Jam': BAD_REQUEST,
    b'read:\xff\xfe\xfd\xfc': BAD_REQUEST,
    '#!::r=cam,m=bidirectional': BAD_MODE, '#!::r=cam,t=file': BAD_MODE, 'publish:file': BAD_MODE,
    'read:none': NOT_FOUND, 'publish:none': NOT_FOUND, 'publish:cam/below': NOT_FOUND,
    'read:' + 'x' * 507: NOT_FOUND, 'publish:' + '%n' * 200: NOT_FOUND,
}


@test
def bad_stream_ids_are_refused():
    """a stream id that cannot be served gets SRT's code of refusal, and a line in the log"""
    with Srt({'/cam': LIVE, '/file': FILE}) as proxy:
        for stream_id, code in REFUSED.items():
            with proxy.call(stream_id) as caller:
                assert caller.reason == code, (stream_id, caller.reason, code)
        proxy.wait_for_line(r' client 127\.0\.0\.1:\d+ refused: its stream id cannot be used: it names no path')
        proxy.wait_for_line(r' publisher 127\.0\.0\.1:\d+ refused: the mount takes no publishers')
        assert not [line for line in proxy.lines if '\x1b' in str(line)]
        with proxy.call('publish:cam') as caller:
            assert caller.reason is None and caller.is_open()
        proxy.signal(signal.SIGTERM)
        assert proxy.wait(30) == 0 # a sanitizer has found nothing


def refused(proxy):
    """Returns how many callers were refused because of their passphrase."""
    return proxy.metric('refusals_total{reason="passphrase"}')


@test
def a_wrong_passphrase_is_refused():
    """the log and a metric say if a caller's passphrase is wrong, missing or too much; with the right one it publishes"""
    with Srt({'/cam': LIVE}, srt={'passphrase': PASSPHRASE}) as proxy:
        assert refused(proxy) == 0
        with proxy.call('publish:cam', passphrase='wrong passphrase') as caller:
            assert caller.reason == BAD_SECRET, caller.reason
        proxy.wait_for_line(r' client 127\.0\.0\.1:\d+ refused: its passphrase is wrong$', 20)
        with proxy.call('publish:cam') as caller:
            assert caller.reason == UNSECURE, caller.reason
        proxy.wait_for_line(r' client \S+ refused: it has no passphrase, and the listener has one', 20)
        assert refused(proxy) == 2
        with proxy.send('publish:cam', f'&passphrase={PASSPHRASE}'):
            proxy.wait_for_mount()
    with Srt({'/cam': LIVE}) as proxy, proxy.call('publish:cam', passphrase=PASSPHRASE) as caller:
        assert caller.reason == UNSECURE, caller.reason
        proxy.wait_for_line(r' client \S+ refused: it has a passphrase, and the listener has none', 20)


@test
def refused_callers_hold_no_places():
    """after 300 callers without the passphrase, from 8 addresses, one with it gets in at the first attempt"""
    with Srt({'/cam': LIVE}, srt={'passphrase': PASSPHRASE}, limits={'connections': 4}) as proxy:
        for number in range(300):
            with RawCaller(proxy.srt_port, f'127.0.0.{number % 8 + 2}') as caller:
                assert caller.conclude(request('publish:cam')) == UNSECURE, number
        with proxy.call('publish:cam', passphrase=PASSPHRASE) as caller:
            assert caller.reason is None, caller.reason
            proxy.wait_for_line(r' publisher \S+ in: /cam over SRT$', 20)
        wait_until(lambda: refused(proxy) == 300, 20, 'the count of refused callers')
        lines = [line for line in proxy.lines if 'it has no passphrase' in str(line)]
        assert 8 <= len(lines) <= 8 * 12, len(lines) # a burst of 10 for each address


@test
def only_users_with_the_permission_publish():
    """credentials in the stream id follow the rules of RTSP; hashed passwords are checked after the handshake"""
    folder = tempfile.TemporaryDirectory()
    secret = os.path.join(folder.name, 'secret')
    with open(secret, 'w', encoding='ascii') as file:
        file.write('pa:ss\n')
    os.chmod(secret, 0o600)
    hashed = subprocess.run([program(), 'hash-password', '--user', 'hashed'], input='pass\n', text=True,
                            capture_output=True, check=True).stdout
    users = [{'name': 'camera', 'password-file': secret, 'permissions': [{'action': 'publish', 'path': '/cam'}]},
             {'name': 'viewer', 'password-file': secret, 'permissions': [{'action': 'read'}]},
             {'name': 'hashed', 'hash': re.search(r'\$argon2id\S+(?<!["\'])', hashed)[0],
              'permissions': [{'action': 'publish', 'path': '/cam'}]}]
    mounts = {'/cam': LIVE, '/other': LIVE}
    with Srt(mounts, users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        for stream_id, code in (('publish:cam', UNAUTHORIZED), ('publish:cam:camera:wrong', UNAUTHORIZED),
                                ('publish:cam:viewer:pa:ss', FORBIDDEN), ('publish:other:camera:pa:ss', FORBIDDEN),
                                ('publish:none:camera:pa:ss', FORBIDDEN), ('read:cam:camera:pa:ss', FORBIDDEN),
                                ('publish:cam:camera:pa:ss', None), ('#!::m=publish,r=cam,u=camera,s=pa:ss', None)):
            seen = len(proxy.lines)
            with proxy.call(stream_id) as caller:
                # A caller whose password was wrong before is slowed down: it may be told later.
                if caller.reason is None and code is not None:
                    wait_until(lambda caller=caller: not caller.is_open(), 20, stream_id)
                else:
                    assert caller.reason == code, (stream_id, caller.reason, code)
                if code is None:
                    proxy.wait_for_line(r' publisher \S+ in: /cam over SRT$', 20, start=seen)
            if code is None:
                proxy.wait_for_line(r' publisher \S+ out: /cam', 20, start=seen)
        seen = len(proxy.lines)
        with proxy.call('publish:cam:hashed:pass') as caller:
            assert caller.reason is None, caller.reason
            proxy.wait_for_line(r' publisher \S+ in: /cam over SRT$', 20, start=seen)
        with proxy.call('publish:cam:hashed:wrong') as caller:
            wait_until(lambda: not caller.is_open(), 20, 'the refusal')
        assert not [line for line in proxy.lines if 'pa:ss' in str(line)]
    # A stream id is not encrypted, so without this key no password is taken.
    users = [user for user in users if 'hash' not in user] # who could never log in
    with Srt(mounts, users=users, api='off') as proxy, proxy.call('publish:cam:camera:pa:ss') as caller:
        assert caller.reason == UNAUTHORIZED, caller.reason
        proxy.wait_for_line(r'password without TLS')


@test
def a_second_publisher_is_refused_or_takes_over():
    """a second publisher is refused with SRT's code, or replaces the first if the mount says so"""
    with Srt({'/cam': LIVE, '/free': {**LIVE, 'takeover': 'yes'}}) as proxy:
        with proxy.send('publish:cam'), proxy.send('publish:free'):
            proxy.wait_for_mount()
            proxy.wait_for_mount(path='/free')
            with proxy.call('publish:cam') as caller:
                assert caller.reason == CONFLICT, caller.reason
            seen = len(proxy.lines)
            with proxy.send('publish:free'):
                proxy.wait_for_line(r' publisher \S+ out: /free: another publisher has taken the mount over', 20)
                proxy.wait_for_mount(path='/free', start=seen)


@test
def a_publisher_that_lost_its_line_comes_back_at_once():
    """a publisher may replace itself when it has been silent for a second, long before SRT gives its connection up"""
    with Srt({'/cam': LIVE}) as proxy:
        sender = proxy.send('publish:cam')
        name = proxy.wait_for_line(r' publisher (\S+) in: /cam over SRT$', 20)[1]
        proxy.wait_for_mount()
        sender.signal(signal.SIGSTOP)

        def is_back():
            with proxy.call('publish:cam') as caller:
                return caller.reason != CONFLICT
        wait_until(is_back, 20, 'the next connection of the publisher')
        proxy.wait_for_line(rf' publisher {name} out: /cam: another publisher has taken the mount over$')
        sender.kill()


@test
def a_publisher_may_die_and_come_back():
    """readers stay while a publisher is killed, and continue when it comes back"""
    with Srt({'/cam': LIVE}) as proxy:
        sender = proxy.send('publish:cam')
        proxy.wait_for_mount()
        read = Read(proxy.url(), duration=6)
        wait_for_readers(proxy, 1)
        sender.kill()
        proxy.wait_for_line(r' mount /cam waits for a publisher: publish: the publisher has left', 30)
        seen = len(proxy.lines)
        with proxy.send('publish:cam'):
            proxy.wait_for_mount(start=seen)
            with Read(proxy.url(), duration=2) as second:
                for number, name, track in tracks(second.result()):
                    assert track['packets'] > 20 and track['lost'] == 0, (number, name, track)
        for number, name, track in tracks(read.result()):
            for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes'):
                assert track[key] == 0, (number, name, key, track)


@test
def what_is_no_transport_stream_is_refused():
    """a publisher of noise is closed with the reason, one that is silent too, and a reader that sends"""
    noise = random.Random(1).randbytes(1316)
    mount = {**LIVE, 'connect-timeout': '3s'}
    with Srt({'/cam': mount, '/file': FILE}) as proxy:
        for data in noise, b'G' * 1316, None:
            seen = len(proxy.lines)
            reason = '(?!the connection)' if data else 'no track came within'
            with proxy.call('publish:cam') as caller:
                proxy.wait_for_line(r' publisher \S+ in: /cam', 20, start=seen)
                for _ in range(500 if data else 0):
                    caller.send(data)
                proxy.wait_for_line(rf' publisher \S+ out: /cam: {reason}', 30, start=seen)
                wait_until(lambda caller=caller: not caller.is_open(), 20, 'the end')
        with proxy.call('read:file') as caller:
            caller.send(noise)
            proxy.wait_for_line(r' reader \S+ out: /file: a reader must not send', 20)
        with proxy.send('publish:cam'):
            proxy.wait_for_mount()


@test
def hostile_datagrams_change_nothing():
    """noise, cut and changed handshakes on the port leave a publisher alone"""
    dice = random.Random(7)
    induction = bytes.fromhex('80000000000000000000000000000000') + bytes([0, 0, 0, 4, 0, 2, 0, 0]) + bytes(40)
    with Srt({'/cam': LIVE}) as proxy, proxy.send('publish:cam'), \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        proxy.wait_for_mount()
        for _ in range(3000):
            data = bytearray(induction if dice.random() < 0.7 else dice.randbytes(dice.randrange(1500)))
            for _ in range(dice.randrange(6)):
                if data:
                    data[dice.randrange(len(data))] = dice.randrange(256)
            sender.sendto(bytes(data[:dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data),
                          ('127.0.0.1', proxy.srt_port))
        with Read(proxy.url(), duration=2) as read:
            for number, name, track in tracks(read.result()):
                assert track['lost'] == 0 and track['packets'] > 20, (number, name, track)
        assert proxy.http('GET', '/v1/mounts/cam')[2]['state'] == 'up'


@contextmanager
def undisturbed(proxy, path='/file'):
    """Reads a mount meanwhile, and checks that no packet is lost."""
    with Read(proxy.url(path), duration=600) as read:
        wait_for_readers(proxy, 1)
        yield
        for number, name, track in tracks(read.finish(status=None)):
            assert track['lost'] == 0 and track['packets'] > 20, (number, name, track)


# What libsrt 1.5.1 does not survive, and what it must not be asked: the port drops it.
DEADLY = {
    'an empty packet filter': extension(FILTER, bytes(4)),
    'a packet filter of zeros': extension(FILTER, bytes(64)),
    'keys beyond the array': extension(KEYS, b'\x12\x20\x29\x01' + bytes(1200)),
}


@test(timeout=120)
def handshakes_that_end_libsrt_are_dropped():
    """with and without a passphrase, a handshake that ends libsrt gets no answer; other mounts lose nothing"""
    for srt in {}, {'passphrase': PASSPHRASE}:
        with Srt({'/cam': LIVE, '/file': FILE}, srt=srt) as proxy, undisturbed(proxy):
            for what, extensions in DEADLY.items():
                for flags in 5, 7:
                    with RawCaller(proxy.srt_port) as caller:
                        answer = caller.conclude(request('publish:cam') + extensions, 0.2, flags)
                        assert answer is None, (what, answer)
            wait_until(lambda proxy=proxy: proxy.metric('srt_dropped_datagrams_total') >= 2 * len(DEADLY), 20, 'the count')
            secret = f'&passphrase={PASSPHRASE}' if srt else ''
            with proxy.send('publish:cam', secret):
                proxy.wait_for_mount()
        assert not matches(proxy, r' worker \d+ '), proxy.lines


@test
def a_packet_filter_that_is_one_is_taken():
    with Srt({'/cam': LIVE}) as proxy:
        with RawCaller(proxy.srt_port) as caller:
            assert caller.conclude(request('publish:cam') + extension(FILTER, text('fec,cols:10,rows:5'))) == -1
            proxy.wait_for_line(r' publisher \S+ in: /cam over SRT$', 20)


@test(timeout=180)
def changed_handshakes_with_valid_cookies_harm_nobody():
    """handshakes whose cookie is right, with changed, cut and doubled extensions, cost another mount no packet"""
    dice = random.Random(int(os.environ.get('WEIR_SEED', '11')))
    keys = extension(KEYS, bytes.fromhex('12202901000000000200020000000404') + dice.randbytes(40))
    blocks = [request('publish:cam'), request('read:file'), keys, extension(FILTER, text('fec,cols:10,rows:5')),
              extension(FILTER, text('fec,cols:30000,rows:30000')), extension(6, text('live')), extension(6, text('file')),
              extension(8, bytes.fromhex('4000000102000001')), extension(5, dice.randbytes(512))]

    def change(data):
        data = bytearray(data)
        for _ in range(dice.randrange(4)):
            at = dice.randrange(16, len(data))
            if not 44 <= at < 48: # the cookie
                data[at] = dice.choice((0, 1, 3, 4, 127, 128, 255, dice.randrange(256)))
        return bytes(data[:dice.randrange(64, len(data) + 1) // 4 * 4] if dice.random() < 0.1 else data)

    with Srt({'/cam': LIVE, '/file': FILE}, srt={'passphrase': PASSPHRASE} if dice.random() < 0.5 else {}) as proxy, \
            undisturbed(proxy):
        answered = 0
        for _ in range(int(os.environ.get('WEIR_HANDSHAKES', '300'))):
            with RawCaller(proxy.srt_port) as caller:
                extensions = b''.join(dice.choices(blocks, k=dice.randrange(1, 5)))
                answered += caller.conclude(extensions, 0.02, dice.choice((1, 3, 5, 7, 7)), change) is not None
        assert answered > 0
        assert proxy.http('GET', '/v1/mounts/file')[2]['state'] == 'up'
        proxy.signal(signal.SIGTERM)
        assert proxy.wait(30) == 0 # a sanitizer has found nothing


def worker_of_srt(proxy):
    """Returns the process that has libsrt, or None."""
    for pid in workers_of(proxy):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                if file.read().split(b'\0')[1] == b'srt':
                    return pid
        except (FileNotFoundError, ProcessLookupError, IndexError):
            pass
    return None


def end_libsrt(proxy, number, ended):
    """Ends the process that has libsrt while a publisher and a reader are there. Both may come again at once."""
    victim, seen = worker_of_srt(proxy), len(proxy.lines)
    with proxy.send('publish:cam'):
        proxy.wait_for_mount(start=seen)
        with proxy.call('read:cam') as reader:
            assert reader.reason is None
            proxy.wait_for_line(r' reader \S+ in: /cam over SRT$', 20, start=seen)
            os.kill(victim, number)
            proxy.wait_for_line(rf' worker {victim} {ended}; it ran 1 job$', 30, start=seen)
            proxy.wait_for_line(rf' publisher \S+ out: /cam: worker {victim} {ended}$', 20, start=seen)
            proxy.wait_for_line(rf' reader \S+ out: /cam: worker {victim} {ended}$', 20, start=seen)
    assert proxy.metric('srt_connections') == 0
    seen = len(proxy.lines)
    with proxy.send('publish:cam'):
        proxy.wait_for_mount(start=seen)
        assert worker_of_srt(proxy) not in (None, victim)
        with proxy.call('read:cam') as reader:
            assert reader.reason is None
            proxy.wait_for_line(r' reader \S+ in: /cam over SRT$', 20, start=seen)


@test(timeout=120)
def a_crash_of_libsrt_ends_its_callers_only():
    """when the process with libsrt crashes, SRT callers may come again at once, and others lose no packet"""
    with Srt({'/cam': LIVE, '/file': FILE}) as proxy, undisturbed(proxy):
        # ASan handles SIGSEGV itself.
        end_libsrt(proxy, signal.SIGSEGV, '(ended by SIGSEGV|ended with status 1)')
        end_libsrt(proxy, signal.SIGABRT, '(ended by SIGABRT|ended with status 1)')
        assert proxy.metric('workers_failed_total') >= 2


@test(timeout=120)
def a_libsrt_that_hangs_is_killed():
    """when the process with libsrt does not answer for 5 s, another one takes its place"""
    with Srt({'/cam': LIVE, '/file': FILE}) as proxy, undisturbed(proxy):
        end_libsrt(proxy, signal.SIGSTOP, 'was killed: it did not answer for 5 s')


@test
def a_caller_hears_that_the_proxy_stops():
    with Srt({'/file': FILE}) as proxy, proxy.call('read:file') as reader:
        proxy.wait_for_line(r' reader \S+ in: /file over SRT$', 20)
        proxy.signal(signal.SIGTERM)
        assert proxy.wait(30) == 0
        assert not reader.is_open()
        assert not matches(proxy, r' worker \d+ '), proxy.lines


@test
def a_mount_that_is_removed_closes_its_callers():
    with Srt({'/cam': LIVE, '/other': LIVE}) as proxy, proxy.call('publish:cam') as caller:
        proxy.wait_for_line(r' publisher \S+ in: /cam')
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] in (200, 204)
        proxy.wait_for_line(r' publisher \S+ out: /cam: the mount takes no publishers any more', 20)
        wait_until(lambda: not caller.is_open(), 20, 'the end')


if __name__ == '__main__':
    run(at_once=4, shared=[clip_hashes])
