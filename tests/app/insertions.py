# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clips that are inserted into a live stream: readers of all outlets see them, between keyframes."""

import bisect
import glob
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from control import Controlled
from loads import Load
from proc import Proc, free_port
from proxy import matches, wait_until
from tap import SLOWER, Skip, run, test
from transportstream import check_packets

LENGTH = 10  # s, of the clip
RATE = 25


@lru_cache
def folder():
    if not shutil.which('ffmpeg'):
        raise Skip('no ffmpeg found')
    return tempfile.TemporaryDirectory()


def encode(name, *words, seconds=LENGTH, pictures='testsrc', size='320x240', tone=880, rate=48000, sound=True):
    """Makes a clip in the folder, if it is not there. Returns its path."""
    path = os.path.join(folder().name, name)
    if os.path.exists(path):
        return path
    # Without noise, pieces of sound would be equal.
    noise = f'anoisesrc=sample_rate={rate}:amplitude=0.01:seed={tone}[n];sine=frequency={tone}:sample_rate={rate}[s];[n][s]amix'
    command = ['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', f'{pictures}=size={size}:rate={RATE}']
    command += ['-f', 'lavfi', '-i', noise, '-c:a', 'aac'] if sound else []
    command += ['-t', str(seconds), '-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p', '-b:v', '300k']
    subprocess.run([*command, *words, path], check=True, timeout=60 * SLOWER, stdin=subprocess.DEVNULL)
    return path


def live():
    """A film of 60 s with a keyframe a second, which is looped."""
    return encode('live.mp4', '-g', '25', '-bf', '2', '-x264-params', 'scenecut=0', seconds=60, pictures='testsrc2', tone=440)


def advert(size='320x240'):
    """A clip with B-frames and two slices a picture."""
    return encode(f'ad-{size}.mp4', '-g', '50', '-bf', '3', '-x264-params', 'slices=2', size=size)


@lru_cache
def parts(path):
    """Returns {'v': [(time, hash)], 'a': ...} of the coded pictures, without their parameter sets, and of
    the coded pieces of sound, in the order of decoding."""
    got = {}
    for kind, filters in ('v', ['-bsf:v', 'h264_mp4toannexb,filter_units=remove_types=6-9']), ('a', []):
        if kind == 'a' and not path.endswith('.mp4'):
            filters = ['-bsf:a', 'aac_adtstoasc']
        done = subprocess.run(
            ['ffmpeg', '-v', 'error', '-copyts', '-i', path, '-map', f'0:{kind}', '-c', 'copy', *filters, '-f', 'framehash', '-hash', 'md5', '-'],
            capture_output=True, text=True, timeout=60 * SLOWER, check=False, stdin=subprocess.DEVNULL)
        unit, found = 1, []
        for line in done.stdout.splitlines():
            if line.startswith('#tb 0:'):
                over, under = line.split(':')[1].split('/')
                unit = int(over) / int(under)
            elif line and not line.startswith('#'):
                fields = [field.strip() for field in line.split(',')]
                found.append((int(fields[2]) * unit, fields[5]))
        got[kind] = found
    return got


def runs_of(got, sources):
    """Returns [(source, [(time here, time there)])]: the stretches of each source, in order."""
    known = {digest: (name, when) for name, rows in sources.items() for when, digest in rows}
    found = []
    for when, digest in got:
        name, there = known.get(digest, ('unknown', 0))
        if not found or found[-1][0] != name:
            found.append((name, []))
        found[-1][1].append((when, there))
    return found


def check_spliced(path, clip, whole=True):
    """Checks that the file has the live film, the clip and the film again: each at a keyframe, with its
    sound within 5 ms of where it belongs."""
    got, film, inserted = parts(path), parts(live()), parts(clip)
    # The first and the last picture may be cut.
    video = runs_of(got['v'][1:-2], {'live': film['v'], 'clip': inserted['v']})
    audio = runs_of(got['a'][1:-1], {'live': film['a'], 'clip': inserted['a']})
    assert [name for name, _ in video] == ['live', 'clip', 'live'], [(name, len(rows)) for name, rows in video]
    assert [name for name, _ in audio] == ['live', 'clip', 'live'], [(name, len(rows)) for name, rows in audio]
    before, between, after = (rows for _, rows in video)
    # The clip begins in place of a keyframe, and the film comes back at one.
    assert between[0][1] == inserted['v'][0][0], between[0]
    first = film['v'][0][0]
    assert abs((after[0][1] - first) % 1) < 0.001, after[0]
    # In the order of decoding, the picture before a keyframe may be shown earlier than another one.
    assert abs(between[0][0] - max(when for when, _ in before) - 1 / RATE) < 0.001, (before[-3:], between[0])
    if whole:
        assert len(between) >= (LENGTH - 0.3) * RATE, len(between)
    for rows in (before, between, after) if whole else (before, after):
        times = sorted(when for when, _ in rows)[:-4]  # of the last ones, some are yet to come
        assert max(b - a for a, b in zip(times, times[1:])) < 1.5 / RATE, rows
    for of_video, of_audio in zip(video, audio):
        # The clock of a transport stream that comes over a network is smoothed: compared is what is close.
        pictures = sorted(of_video[1])
        for here, there in of_audio[1]:
            near = pictures[min(bisect.bisect_left(pictures, (here, 0)), len(pictures) - 1)]
            error = (here - there) - (near[0] - near[1])
            error -= 60 * round(error / 60)  # the film is looped
            assert abs(error) < 0.005, (of_video[0], here, there, near)
    return video, audio


class Live(Controlled):
    """A proxy with a live mount into which clips are inserted, also over HTTP."""

    def __init__(self, upstream=None, mount=None, mounts=None, **top):
        cam = {'upstream': upstream or f'file://{live()}', 'insert': {'folder': folder().name}, 'linger': '500ms', **(mount or {})}
        super().__init__({'/cam': cam, **(mounts or {})}, http={'listen': '127.0.0.1:0'}, **top)
        self.web = f'http://127.0.0.1:{int(self.wait_for_line(r" titles http://[0-9.]+:([0-9]+)")[1])}'

    def insert(self, clip, status=201, path='/cam', **more):
        got = self.http('POST', f'/v1/mounts{path}/insert', {'clip': os.path.basename(clip), **more})
        assert got[0] == status, got
        return got[2]['insertion'] if status == 201 else got[2]['error']['message']

    def insertion(self, path='/cam'):
        return self.get(f'/v1/mounts{path}/insert')['insertion']

    def state(self):
        found = self.insertion()
        return found and found['state']

    def wait_for(self, state, timeout=30):
        wait_until(lambda: self.state() == state, timeout, f'the insertion is {state}')


class Stream:
    """A reader of the transport stream over HTTP, which writes a file."""

    def __init__(self, proxy, path):
        self.path, self.socket, self.is_open = path, socket.socket(), True
        self.socket.connect(('127.0.0.1', int(proxy.web.rsplit(':', 1)[1])))
        self.socket.sendall(b'GET /ts/cam HTTP/1.1\r\nHost: localhost\r\n\r\n')
        self.count = 0
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self):
        data = b''
        while b'\r\n\r\n' not in data:
            data += self.socket.recv(4096)
        assert data.startswith(b'HTTP/1.1 200'), data
        data = data.split(b'\r\n\r\n', 1)[1]
        with open(self.path or os.devnull, 'wb') as file:
            while True:
                self.count += len(data)
                file.write(data)
                try:
                    data = self.socket.recv(1 << 16)
                except OSError:
                    break
                if not data:
                    self.is_open = False
                    break

    def __enter__(self):
        return self

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self.socket.close()

    def __exit__(self, *unused):
        if self.socket.fileno() >= 0:
            self.close()


def frames_of(proxy):
    return proxy.get('/v1/mounts/cam')['ingest']['packets']


def see(proxy, seconds):
    """Waits until this much of the film has come, of about 60 packets a second."""
    enough = frames_of(proxy) + 60 * seconds
    wait_until(lambda: frames_of(proxy) >= enough, 30, f'{seconds} s of media')


@test(timeout=150)
def a_hundred_readers_see_a_clip():
    """A hundred readers over RTSP, HLS and MPEG-TS see a clip between two keyframes, and lose nothing"""
    with ExitStack() as stack:
        records = stack.enter_context(tempfile.TemporaryDirectory())
        sink = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        sink.bind(('127.0.0.1', 0))
        sink.settimeout(1)
        pushed, over = [], threading.Event()

        def receive():
            while not over.is_set():
                try:
                    pushed.append(sink.recv(65536))
                except TimeoutError:
                    pass

        proxy = stack.enter_context(Live(mount={
            'push': [f'udp://127.0.0.1:{sink.getsockname()[1]}'], 'record': {'folder': records, 'segment': '60s'}}))
        taker = threading.Thread(target=receive)
        taker.start()
        stack.callback(over.set)
        loads = [stack.enter_context(Load('--transport', how, '--tracks', 'all', '-n', '30', '-d', '120', proxy.url())) for how in ('udp', 'tcp')]
        players = stack.enter_context(Load('--hls', '-n', '20', '-d', '120', f'{proxy.web}/hls/cam/index.m3u8'))
        streams = [stack.enter_context(Stream(proxy, os.path.join(records, 'out.ts') if i == 0 else None)) for i in range(20)]
        wait_until(lambda: len(proxy.get('/v1/readers')['readers']) >= 100, 60, '100 readers')
        see(proxy, 3)
        proxy.insert(advert())
        proxy.wait_for('playing')
        wait_until(lambda: proxy.insertion() is None, 40, 'the clip has ended')
        see(proxy, 3)
        readers = proxy.get('/v1/readers')['readers']
        assert len(readers) >= 100, len(readers)
        for running in loads:
            got = running.finish()
            assert got["connected"] == 30 and not got["errors"] and got['lost'] == 0 and got['reordered'] == 0 and got['duplicates'] == 0, got
        got = players.finish()
        assert got['playing'] == 20, got
        assert all(each.is_open for each in streams)
        for each in streams:
            each.close()
        over.set()
        taker.join(10)
        check_packets(open(streams[0].path, 'rb').read())
        check_spliced(streams[0].path, advert())
        with open(os.path.join(records, 'pushed.ts'), 'wb') as file:
            file.write(b''.join(pushed))
        check_spliced(file.name, advert())
        proxy.signal(15)
        assert proxy.wait(20) == 0
        recorded = glob.glob(f'{records}/**/*.mp4', recursive=True)
        assert len(recorded) >= 1, recorded
        clip = parts(advert())['v']
        kept = [digest for path in recorded for _, digest in parts(path)['v']]
        assert len(set(kept) & {digest for _, digest in clip}) >= len(clip) - 8, (len(kept), recorded)


REFUSED = [
    ('none.mp4', {}, 404, r'there is no clip none\.mp4 in the folder /'),
    ('../live.mp4', {}, 400, r'is not a file in the mount.s folder of clips'),
    ('/etc/passwd', {}, 400, r'is not a file in the mount.s folder of clips'),
    ('out.mp4', {}, 400, r'out\.mp4 is outside the folder /'),
    ('noise.mp4', {}, 400, r'the clip cannot be played: Could not determine type of stream'),
    ('folder', {}, 400, r'cannot open folder'),
    ('ad-320x240.mp4', {'at': '2020-01-01T00:00:00Z'}, 400, r'is in the past; leave "at" out'),
    ('ad-320x240.mp4', {'at': '2999-01-01T00:00:00Z'}, 400, r'is more than a day ahead'),
    ('ad-320x240.mp4', {'at': 'soon'}, 400, r'expected a time such as '),
    ('ad-320x240.mp4', {'for': '11s'}, 400, r'`for` is 11\.000 s, but the clip lasts 10\.\d+ s'),
    ('ad-320x240.mp4', {'for': '0s'}, 400, r'for'),
    ('ad-320x240.mp4', {'to': '3s'}, 400, r'unknown key'),
    ('ad-44100.mp4', {}, 409, r'the clip.s tracks are H264 and MPEG4-GENERIC/44100.*those of the mount.s upstream H264 and MPEG4-GENERIC/48000'),
    ('ad-stereo.mp4', {}, 409, r'MPEG4-GENERIC/48000/2.*MPEG4-GENERIC/48000/1|encode the clip'),
    ('ad-silent.mp4', {}, 409, r'the clip.s tracks are H264, those of the mount.s upstream H264 and MPEG4-GENERIC/48000'),
    ('ad-h265.mp4', {}, 409, r'the clip.s tracks are H265 and .*encode the clip'),
]


@test
def clips_that_do_not_fit_are_refused():
    """A clip that does not fit, or is not there, is refused before readers see anything of it"""
    advert()
    encode('ad-44100.mp4', rate=44100)
    encode('ad-stereo.mp4', '-ac', '2')
    encode('ad-silent.mp4', sound=False)
    encode('ad-h265.mp4', '-c:v', 'libx265', '-x265-params', 'log-level=none')
    base = folder().name
    with tempfile.NamedTemporaryFile(suffix='.mp4') as outside:
        for name, make in (('out.mp4', lambda path: os.symlink(outside.name, path)), ('folder', os.mkdir),
                           ('noise.mp4', lambda path: open(path, 'wb').write(os.urandom(99999)))):
            if not os.path.lexists(os.path.join(base, name)):
                make(os.path.join(base, name))
        with Live(mounts={'/plain': {'upstream': f'file://{live()}'}, '/titles': {'upstream': f'file://{base}/'}}) as proxy:
            for clip, more, status, wrong in REFUSED:
                got = proxy.http('POST', '/v1/mounts/cam/insert', {'clip': clip, **more})
                assert got[0] == status and re.search(wrong, got[2]['error']['message']), (clip, more, got)
                assert proxy.insertion() is None
            for path, status, wrong in (('/plain', 409, 'has no folder of clips'), ('/titles', 409, 'serves stored titles'),
                                        ('/none', 404, 'there is no mount /none')):
                assert re.search(wrong, proxy.insert(advert(), status, path)), (path, wrong)
            assert proxy.http('DELETE', '/v1/mounts/cam/insert')[0] == 404
            assert proxy.http('POST', '/v1/mounts/cam/insert', b'x', {'Content-Type': 'text/plain'})[0] == 415
            assert proxy.http('POST', '/v1/mounts/cam')[0] == 405
            assert not matches(proxy, 'is inserted'), proxy.lines


@test
def a_clip_is_planned_withdrawn_and_ended_early():
    """A clip is planned for a time and withdrawn, a second one waits for the first to end, and a running one ends early"""
    with Live() as proxy, tempfile.TemporaryDirectory() as out:
        later = (datetime.now(timezone.utc) + timedelta(hours=2)).isoformat()
        planned = proxy.insert(advert(), at=later)
        assert planned['state'] == 'planned' and planned['length-seconds'] == LENGTH and 'begun' not in planned, planned
        assert proxy.insertion() == planned
        assert 'planned or played already' in proxy.insert(advert(), 409)
        assert proxy.http('DELETE', '/v1/mounts/cam/insert')[2]['insertion'] == planned
        assert proxy.insertion() is None
        with Stream(proxy, f'{out}/out.ts') as stream:
            see(proxy, 3)
            soon = datetime.now(timezone.utc) + timedelta(seconds=2)
            planned = proxy.insert(advert(), at=soon.isoformat(), **{'for': '9s'})
            assert planned['length-seconds'] == 9, planned
            proxy.wait_for('playing')
            begun = datetime.fromisoformat(proxy.insertion()['begun'].replace('Z', '+00:00'))
            assert begun.timestamp() >= int(soon.timestamp()), (begun, soon)
            see(proxy, 3)
            assert proxy.http('DELETE', '/v1/mounts/cam/insert')[2]['insertion']['state'] == 'playing'
            wait_until(lambda: proxy.insertion() is None, 20, 'the clip has ended')
            see(proxy, 3)
            stream.close()
            video, _ = check_spliced(stream.path, advert(), whole=False)
            assert 2 * RATE < len(video[1][1]) < 8 * RATE, len(video[1][1])


@test
def a_publisher_with_its_sets_in_the_description_comes_back():
    """A publisher whose parameter sets are in its description only is shown again after a clip of another size"""
    with Live('publish') as proxy, Proc(
            'ffmpeg', '-nostdin', '-v', 'error', '-re', '-stream_loop', '-1', '-i', live(), '-c', 'copy', '-f', 'rtsp', '-rtsp_transport', 'tcp',
            proxy.url()):
        proxy.wait_for_line(' mount /cam up', 30)
        with Proc('ffmpeg', '-nostdin', '-v', 'info', '-rtsp_transport', 'tcp', '-i', proxy.url(), '-map', '0:v', '-vf', 'showinfo', '-f', 'null',
                  '-') as player:
            player.wait_for_line(' s:320x240 ', 60)
            proxy.insert(advert('480x272'), **{'for': '4s'})
            player.wait_for_line(' s:480x272 ', 60)
            seen = len(player.lines)
            player.wait_for_line(' s:320x240 ', 60, seen)
            wait_until(lambda: sum(' s:320x240 ' in each for each in player.lines[seen:]) > 50, 60, 'the film goes on')
            player.kill()


def crc32(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04c11db7 if crc >> 31 else 0)) & 0xffffffff
    return crc.to_bytes(4, 'big')


def splice_insert(event, out, pts, seconds=None):
    """A section of SCTE 35 (9.7.3) that begins or ends a break at a time of presentation."""
    command = event.to_bytes(4, 'big') + bytes([0x7f, (0x80 if out else 0) | 0x4f | (0x20 if seconds else 0)])
    command += (0xfe << 32 | pts).to_bytes(5, 'big')
    command += (0xfe << 32 | round(seconds * 90000)).to_bytes(5, 'big') if seconds else b''
    command += b'\x00\x01\x00\x00'
    body = bytes(1) + bytes(5) + bytes([0, 0xff, 0xf0 | len(command) >> 8, len(command) & 0xff, 5]) + command + bytes(2)
    section = bytes([0xfc, 0x30, len(body) + 4]) + body
    return section + crc32(section)


class Cued:
    """Sends the film as a transport stream with cues to a UDP port."""

    CUES = 0x1f0

    def __init__(self, port):
        self.target, self.event, self.first, self.time, self.due = ('127.0.0.1', port), 0, None, None, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._process = subprocess.Popen(
            ['ffmpeg', '-v', 'error', '-re', '-stream_loop', '-1', '-i', live(), '-c', 'copy', '-f', 'mpegts', '-flush_packets', '1', '-'],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._process.kill()
        self._process.wait(10)
        self._thread.join(10)
        self._process.stdout.close()
        self.socket.close()

    def cue(self, out, ahead=3, seconds=None):
        """Sends a cue for the first keyframe that is at least so far ahead; twice, as encoders do."""
        self.event += out
        at = self.first + ((self.time - self.first) // 90000 + ahead + 1) * 90000
        self.due += 2 * [splice_insert(self.event, out, at, seconds)]

    def _with_cues(self, packet):
        """Adds the stream of cues to the table of the program."""
        size = int.from_bytes(packet[6:8], 'big') & 0xfff
        table = bytearray(packet[5:5 + 3 + size - 4]) + bytes([0x86, 0xe0 | self.CUES >> 8, self.CUES & 0xff, 0xf0, 0])
        table[1:3] = (0xb000 | len(table) - 3 + 4).to_bytes(2, 'big')
        return (packet[:5] + bytes(table) + crc32(table)).ljust(188, b'\xff')

    def _send(self):
        counter, maps = 0, 0x1000
        while packet := self._process.stdout.read(188):
            pid = (packet[1] & 0x1f) << 8 | packet[2]
            if pid == maps and packet[1] & 0x40:
                packet = self._with_cues(packet)
            if pid == 0x100 and packet[1] & 0x40:
                pes = 5 + packet[4] if packet[3] & 0x20 else 4
                stamp = int.from_bytes(packet[pes + 9:pes + 14], 'big')
                self.time = (stamp >> 33 & 7) << 30 | (stamp >> 17 & 0x7fff) << 15 | stamp >> 1 & 0x7fff
                self.first = self.first or self.time
                if self.due:
                    head = bytes([0x47, 0x40 | self.CUES >> 8, self.CUES & 0xff, 0x10 | counter & 15, 0])
                    counter += 1
                    self.socket.sendto((head + self.due.pop(0)).ljust(188, b'\xff'), self.target)
            self.socket.sendto(packet, self.target)


@test(timeout=120)
def a_cue_of_a_transport_stream_begins_a_clip():
    """A cue of SCTE 35 begins the clip at its keyframe, one ends it early, and none is played twice"""
    port = free_port()
    with tempfile.TemporaryDirectory() as out, Cued(port) as sender, \
            Live(f'udp://127.0.0.1:{port}', {'insert': {'folder': folder().name, 'on-cue': os.path.basename(advert())}, 'on-demand': False}) as proxy, \
            Stream(proxy, f'{out}/out.ts') as stream:
        wait_until(lambda: stream.count > 100000, 30, 'the film comes')
        sender.cue(True, seconds=LENGTH)
        proxy.wait_for('planned')
        assert proxy.insertion()['event'] == 1, proxy.insertion()
        proxy.wait_for('playing')
        wait_until(lambda: proxy.insertion() is None, 40, 'the clip has ended')
        see(proxy, 2)
        stream.close()
        check_spliced(stream.path, advert())
        assert len(matches(proxy, ' cue 1 begins clip ')) == 1, proxy.lines
        sender.cue(True)
        proxy.wait_for('playing')
        sender.cue(False, ahead=2)
        wait_until(lambda: proxy.insertion() is None, 20, 'the clip has ended early')
        assert len(matches(proxy, 'is inserted for')) == len(matches(proxy, ': it has ended')) == 2, proxy.lines


@test(timeout=120)
def behind_source_stages_a_cue_begins_one_clip_a_mount():
    """A cue begins each mount's clip behind the source stages, which two mounts with the same upstream share"""
    port = free_port()
    cam = {'source-stages': ['restamp'], 'on-demand': False, 'insert': {'folder': folder().name, 'on-cue': os.path.basename(advert())}}
    other = {**cam, 'upstream': f'udp://127.0.0.1:{port}', 'insert': {**cam['insert'], 'on-cue': os.path.basename(advert('480x272'))}}
    with Cued(port) as sender, Live(other['upstream'], cam, {'/other': other}) as proxy:
        for path in '/cam', '/other':
            proxy.wait_for_line(f' mount {path} up: ', 30)
        sender.cue(True, seconds=LENGTH)
        for path in '/cam', '/other':
            wait_until(lambda path=path: (proxy.insertion(path) or {}).get('state') == 'playing', 30, f'a clip is inserted into {path}')
        begun = sorted(each[1] for each in matches(proxy, r'( mount /\w+: cue 1 begins clip \S+) '))
        assert begun == [f' mount {path}: cue 1 begins clip {name}' for path, name in (('/cam', 'ad-320x240.mp4'), ('/other', 'ad-480x272.mp4'))], begun


@test
def players_of_hls_learn_of_another_size():
    """A clip of another size begins a new map after a discontinuity in HLS, and so does the film after it"""
    clip = advert('480x272')
    with Live() as proxy, Proc('ffmpeg', '-nostdin', '-v', 'info', '-i', f'{proxy.web}/hls/cam/plain.m3u8', '-map', '0:v', '-vf',
                               'showinfo', '-f', 'null', '-') as player:
        player.wait_for_line(' s:320x240 ', 60)
        seen = len(player.lines)
        proxy.insert(clip)
        player.wait_for_line(' s:480x272 ', 60, seen)
        seen = len(player.lines)
        player.wait_for_line(' s:320x240 ', 60, seen)
        sizes = [each[1] for each in matches(player, r' s:(\d+x\d+) ')]
        shown = [size for i, size in enumerate(sizes) if i == 0 or size != sizes[i - 1]]
        assert shown == ['320x240', '480x272', '320x240'], shown
        assert sizes.count('480x272') >= (LENGTH - 0.5) * RATE, sizes.count('480x272')
        wrong = [each for each in player.lines if re.search('rror|nvalid|concealing|corrupt|non-exist', each)]
        assert not wrong, wrong[:5]
        player.kill()


if __name__ == '__main__':
    run()
