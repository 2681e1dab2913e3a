# SPDX-License-Identifier: LGPL-2.1-or-later
"""What encoders send over RTMP that no specification has. FFmpeg judges what readers get."""

import os
import subprocess
import tempfile
import threading
import time
from functools import lru_cache

from clips import ffmpeg
from librtmp import AGGREGATE, AUDIO, EXTENDED, VIDEO, tag
from proxy import Read, matches, tracks, wait_until
from rtmpproxy import LIVE, Rtmp, read_parts
from sent import frames
from tap import SLOWER, run, test

LENGTH = 8000 # ms: of the film
LEAD = 1000   # the audio of a film begins before its picture
ANEW = r' publisher \S+: its stream begins anew: '


@lru_cache
def film(size='320x240', rate=48000):
    """Returns a folder, the path of a film, and what read_parts() says of it."""
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, 'film.mp4')
    subprocess.run(
        [ffmpeg(), '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', f'testsrc2=s={size}:r=25', '-f', 'lavfi', '-i',
         f'anoisesrc=seed=1:amplitude=0.3:r={rate}', '-t', str(LENGTH // 1000), '-c:v', 'libx264', '-preset', 'ultrafast',
         '-g', '25', '-bf', '2', '-pix_fmt', 'yuv420p', '-c:a', 'aac', path], check=True, timeout=60 * SLOWER)
    record, sound, parts = read_parts(path, b'avcC')
    return folder, path, record, sound, [part for part in parts if part[0] >= 0 or part[1] == 'video']


@lru_cache
def original(size='320x240', rate=48000):
    return {kind: [frame for time_, frame in each if time_ >= 0]
            for kind, each in frames(film(size, rate)[1], seconds=10).items()}


def avc_record(size='320x240'):
    return b'\x17\0\0\0\0' + film(size)[2]


def aac_record(rate=48000):
    return b'\xaf\0' + film(rate=rate)[3]


def body(part):
    _, kind, key, offset, frame = part
    if kind == 'audio':
        return b'\xaf\1' + frame
    return (b'\x17' if key else b'\x27') + b'\1' + offset.to_bytes(3, 'big', signed=True) + frame


class Encoder:
    """Publishes films to /cam in real time, one after the other, while a `with` block runs. `send` gets each part and
    its time in ms, and publishes it. The records are sent before, or left to `send`."""

    def __init__(self, proxy, send, records=True, name='cam'):
        self.publisher = proxy.publisher().publish(name)
        self.send, self.parts = send, film()[4]
        self.stopped = threading.Event()
        if records:
            self.publisher.media(VIDEO, avc_record(), 0)
            self.publisher.media(AUDIO, aac_record(), 0)
        self.thread = threading.Thread(target=self.run)

    def run(self):
        begun = time.monotonic()
        try:
            for start in range(0, 120000, LENGTH):
                for part in self.parts:
                    now = LEAD + start + part[0]
                    if self.stopped.wait(max(begun + now / 1000 - time.monotonic(), 0)):
                        return
                    self.send(self, part, now)
        except OSError:
            pass # the proxy has closed the connection

    def media(self, part, now, **more):
        self.publisher.media(AUDIO if part[1] == 'audio' else VIDEO, body(part), now, **more)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stopped.set()
        self.thread.join()
        self.publisher.__exit__()


def read(proxy, seconds):
    """Returns frames() of a reader without the first second, in which FFmpeg leaves pictures out and changes times."""
    got = frames(proxy.url(), '-rtsp_transport', 'tcp', seconds=seconds)
    return {kind: each[25 if kind == 'video' else 50:] for kind, each in got.items()}


def check(proxy, kinds=('video', 'audio'), size='320x240', rate=48000, seconds=5):
    """Checks that a reader gets the film's frames in order, in their time and in sync."""
    got = read(proxy, seconds + 2)  # a track may begin late on a busy machine
    assert set(got) == set(kinds), set(got)
    lags = {}
    for kind in kinds:
        step = 0.04 if kind == 'video' else 1024 / rate
        known = {frame: place for place, frame in enumerate(original(size, rate)[kind])}
        times = [time_ for time_, _ in got[kind]]
        places = [known.get(frame) for _, frame in got[kind]]
        assert None not in places and len(places) > (seconds - 2) / step, (kind, len(places), places.count(None))
        apart = [(b - a) % len(known) for a, b in zip(places, places[1:])]
        assert set(apart) == {1}, (kind, apart)
        steps = [float(b - a) for a, b in zip(times, times[1:])]
        assert max(abs(each - step) for each in steps) < 0.005, (kind, steps)
        lags[kind] = float(times[-1]) - places[-1] * step
    if len(kinds) == 2:
        apart = (lags['audio'] - lags['video'] + LENGTH / 2000) % (LENGTH / 1000) - LENGTH / 2000
        assert abs(apart) < 0.1, (apart, lags)


@test
def tracks_with_a_clock_each_are_joined():
    """video whose times begin at 20 minutes, and audio whose begin at 0, keep their rates and are in sync"""
    def send(encoder, part, now):
        encoder.media(part, now + (1200000 if part[1] == 'video' else 0))

    with Rtmp({'/cam': LIVE}) as proxy, Encoder(proxy, send):
        proxy.wait_for_mount()
        check(proxy)
        assert len(matches(proxy, r' publisher \S+: its audio and its video have different clocks')) == 1


@test
def a_clock_that_is_set_goes_on():
    """when the clock of both tracks jumps by an hour, and back, they keep their rates and are in sync"""
    def send(encoder, part, now):
        encoder.media(part, now + (3600000 if now // 2000 % 2 else 0))

    with Rtmp({'/cam': LIVE}) as proxy, Encoder(proxy, send):
        proxy.wait_for_mount()
        got = read(proxy, 6)
        for kind, step in ('video', 0.04), ('audio', 1024 / 48000):
            times = [float(time_) for time_, _ in got[kind]]
            # A jump counts as no time, or as little as between two messages.
            assert abs(times[-1] - times[0] - (len(times) - 1) * step) < 0.2, (kind, times)


@test
def empty_nal_units_are_left_out():
    """empty NAL units at the start, between and at the end of frames change nothing; the log has one line"""
    def send(encoder, part, now):
        time_, kind, key, offset, frame = part
        if kind == 'video':
            frame = bytes(4) + frame + (bytes(8) if key else b'')
        encoder.media((time_, kind, key, offset, frame), now)

    with Rtmp({'/cam': LIVE}) as proxy, Encoder(proxy, send):
        proxy.wait_for_mount()
        check(proxy)
        assert len(matches(proxy, r' publisher \S+: its video has empty NAL units, which are left out')) == 1
        assert proxy.metric('rtmp_unusable_total') == 0


@test
def a_late_track_begins_the_stream_anew():
    """audio whose record comes after 4 s is heard from then on, and until then the log has a line"""
    def send(encoder, part, now):
        if part[1] == 'audio' and encoder.late <= now:
            encoder.publisher.media(AUDIO, aac_record(), now)
            encoder.late = 1000000
        encoder.media(part, now)

    with Rtmp({'/cam': LIVE}) as proxy:
        encoder = Encoder(proxy, send, records=False)
        encoder.late = 4000
        encoder.publisher.media(VIDEO, avc_record(), 0)
        with encoder:
            proxy.wait_for_mount(1)
            proxy.wait_for_line(r' publisher \S+: its audio is left out until the record of its codec comes$', 30)
            proxy.wait_for_line(ANEW + 'audio has begun after the other track$', 30)
            wait_until(lambda: proxy.get('/v1/mounts/cam')['tracks'] == 2, 30, 'the second track')
            check(proxy)
            assert not matches(proxy, r' publisher \S+ out: ')


def sizes(url):
    """Returns the sizes of 200 pictures that a reader decodes, and what its decoder complains about."""
    done = subprocess.run(
        ['ffprobe', '-v', 'error', '-rtsp_transport', 'tcp', '-select_streams', 'v', '-show_entries', 'frame=width,height',
         '-of', 'csv=p=0', '-read_intervals', '%+#200', url], capture_output=True, text=True, timeout=60 * SLOWER, check=True)
    return done.stdout.split(), done.stderr


@test
def another_size_of_picture_goes_on():
    """readers go on while a publisher changes the size of its picture again and again, without its connection's end"""
    def send(encoder, part, now):
        if part[1] == 'video' and part[2] and now // 2000 != encoder.shown:
            encoder.shown = now // 2000
            encoder.small = not encoder.small
            encoder.publisher.media(VIDEO, avc_record('160x120' if encoder.small else '320x240'), now)
        if part[1] == 'video' and encoder.small:
            part = encoder.others[part[0]]
        encoder.media(part, now)

    with Rtmp({'/cam': LIVE}) as proxy:
        encoder = Encoder(proxy, send)
        encoder.shown, encoder.small = 0, False
        encoder.others = {part[0]: part for part in film('160x120')[4] if part[1] == 'video'}
        with encoder:
            proxy.wait_for_mount()
            with Read(proxy.url(), duration=8) as read:
                shown, problems = sizes(proxy.url())
                # B-frames step back in time, which this reader does not take for good.
                for number, name, track in tracks(read.result(1)):
                    for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes'):
                        assert track[key] == 0, (number, name, key, track)
            # 200 pictures of which each 50 are of another size.
            counts = [sum(size in line for line in shown) for size in ('320,240', '160,120')]
            assert min(counts) > 60 and not problems, (counts, problems)
            assert len(matches(proxy, ANEW + 'video has other parameters now')) >= 3
            assert not matches(proxy, r' publisher \S+ out: |mount /cam waits')


@test
def another_rate_of_sound_goes_on():
    """a publisher that changes the rate of its sound stays, and readers find the new one"""
    def send(encoder, part, now):
        if now >= LEAD + LENGTH and not encoder.changed:
            encoder.publisher.media(AUDIO, aac_record(32000), now)
            encoder.changed = True
        encoder.media(part, now)

    with Rtmp({'/cam': LIVE}) as proxy:
        encoder = Encoder(proxy, send)
        encoder.changed, later = False, film(rate=32000)[4]
        with encoder:
            proxy.wait_for_mount()
            encoder.parts = later
            with Read(proxy.url(), duration=20) as reader:
                proxy.wait_for_line(ANEW + 'audio has other parameters now$', 30)
                reader.wait(30) # its description is wrong now
            check(proxy, rate=32000)
            assert not matches(proxy, r' publisher \S+ out: ')


@test
def a_repeated_record_changes_nothing():
    """records that are repeated, also with an extension behind that of AAC, change nothing"""
    def send(encoder, part, now):
        if part[2] and part[1] == 'video':
            encoder.publisher.media(VIDEO, avc_record(), now)
            encoder.publisher.media(AUDIO, aac_record() + (b'\x56\xe5\x00' if now // 1000 % 2 else b''), now)
        encoder.media(part, now)

    with Rtmp({'/cam': LIVE}) as proxy, Encoder(proxy, send):
        proxy.wait_for_mount()
        check(proxy)
        assert not matches(proxy, ANEW)


@test
def records_that_change_all_the_time_end_their_publisher():
    """a publisher that changes its record before each picture is closed with the reason"""
    def send(encoder, part, now):
        if part[1] == 'video':
            for size in ('160x120', '320x240') * 20:  # 1000 a second: no worker keeps up
                encoder.publisher.media(VIDEO, avc_record(size), now)
                encoder.media(part, now)

    with Rtmp({'/cam': LIVE, '/other': LIVE}) as proxy, proxy.send('/other'):
        proxy.wait_for_mount(path='/other')
        with Read(proxy.url('/other'), duration=5) as read, Encoder(proxy, send):
            proxy.wait_for_line(r' publisher \S+ out: /cam: its tracks change faster than they can be read$', 30)
            for number, name, track in tracks(read.result()):
                assert track['lost'] == 0 and track['packets'] > 20, (number, name, track)


@test
def aggregate_messages_are_taken_apart():
    """media in aggregate messages arrive whole, in their time"""
    def send(encoder, part, now):
        encoder.row.append((AUDIO if part[1] == 'audio' else VIDEO, body(part), now))
        if len(encoder.row) == 5:
            # The times within begin anywhere; that of the message counts.
            tags = [tag(kind, data, time_ - encoder.row[0][2] + 77) for kind, data, time_ in encoder.row]
            encoder.publisher.media(AGGREGATE, b''.join(tags), encoder.row[0][2])
            encoder.row = []

    with Rtmp({'/cam': LIVE}) as proxy:
        encoder = Encoder(proxy, send)
        encoder.row = []
        with encoder:
            proxy.wait_for_mount()
            check(proxy)
            assert proxy.metric('rtmp_unusable_total') == 0


@test
def extended_timestamps_with_and_without_repetition():
    """media go on after 4 h 39 min, whether the chunks of a message repeat the extended timestamp or not"""
    for repeats in True, False:
        def send(encoder, part, now, repeats=repeats):
            encoder.media(part, EXTENDED - 5000 + now, repeats=repeats)

        with Rtmp({'/cam': LIVE}) as proxy:
            encoder = Encoder(proxy, send)
            encoder.publisher.size = 128
            encoder.publisher.send(b'\2\0\0\0\0\0\4\1\0\0\0\0\0\0\0\x80') # chunks of 128 bytes
            with encoder:
                proxy.wait_for_mount()
                check(proxy, seconds=8)
                assert not matches(proxy, r' publisher \S+ out: ')


if __name__ == '__main__':
    run(at_once=4, shared=[film])
