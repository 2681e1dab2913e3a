# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers behind the live edge: by their URL, by a Range in PLAY, and after a PAUSE."""

import contextlib
import os
import pathlib
import re
import struct
import tempfile
from itertools import product

from clips import clip
from control import Controlled
from proc import Rtsp
from proxy import Origin, Proxy, matches, wait_until
from tap import run, test

CACHE = {'time': '30s', 'bytes': '16M'}
DELAY = 2
GOP = 1  # seconds from one keyframe of the clip to the next


def origin_of_clip():
    return Origin(clip=clip(GOP, size='640x360'))


def mount(origin, **settings):
    """Returns a mount whose live readers do not catch up, so that they get every packet."""
    return {'/cam': {'upstream': origin.url, 'on-demand': False, 'join': 'live', 'cache': CACHE,
                     **settings}}


def describe(rtsp, url):
    status, _, body = rtsp.request('DESCRIBE', url, {'Accept': 'application/sdp'})
    return status, body.decode()


def described_start(proxy, url=None):
    """Returns the start of the described range, as seconds of the day and as text."""
    with Rtsp(proxy.port) as rtsp:
        status, text = describe(rtsp, url or proxy.url())
    assert status == 200, status
    return clock(text)


def clock(text):
    found = re.search(r'clock=\d{8}T(\d\d)(\d\d)(\d\d\.\d+)Z-', text)
    assert found, text
    return 3600 * int(found[1]) + 60 * int(found[2]) + float(found[3]), found[0]


class Client(Rtsp):
    """A reader over TCP that keeps its packets: for each track a list of (seq, time, payload).

    `report` has the last sender report of each track, as (NTP time in seconds, RTP time).
    """

    def __init__(self, proxy, url=None):
        super().__init__(proxy.port)
        self.url = url or proxy.url()
        self.got = {0: [], 1: []}
        self.report = {}
        status, text = describe(self, self.url)
        assert status == 200, status
        self.rates = [int(rate) for rate in re.findall(r'a=rtpmap:\d+ [^/]+/(\d+)', text)]
        for n in 0, 1:
            transport = f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
            answer = self.request('SETUP', f'{self.url}/stream={n}', {'Transport': transport})
            assert answer[0] == 200, answer

    def play(self, **headers):
        """Plays. Returns the answer's headers, and (seq, rtptime) of each track that has both."""
        status, answer, _ = self.request('PLAY', self.url, headers)
        assert status == 200, (status, answer)
        info = re.findall(r'stream=(\d);seq=(\d+);rtptime=(\d+)', answer.get('rtp-info', ''))
        return answer, {int(track): (int(seq), int(time)) for track, seq, time in info}

    def pause(self):
        assert self.request('PAUSE', self.url)[0] == 200
        self.take_frames()

    def take_frames(self):
        """Keeps the packets that arrived before the last answer."""
        while self.frames:
            self._keep(*self.frames.pop(0))

    def _keep(self, channel, data):
        if channel % 2 == 0:
            seq, time = struct.unpack('>HI', data[2:8])
            self.got[channel // 2].append((seq, time, data[12:]))
        elif data[1] == 200:
            seconds, fraction, time = struct.unpack('>III', data[8:20])
            self.report[channel // 2] = (seconds + fraction / 2**32, time)

    def clock_of(self, track, time):
        """Returns the NTP time at which a player shows a packet, by the last sender report."""
        ntp, at = self.report[track]
        return ntp + ((time - at + 2**31) % 2**32 - 2**31) / self.rates[track]

    def read(self, video, audio=5):
        """Reads until it has this many more packets of each track."""
        video, audio = len(self.got[0]) + video, len(self.got[1]) + audio
        while len(self.got[0]) < video or len(self.got[1]) < audio:
            self._keep(*self.frame())

    def read_seconds(self, seconds):
        """Reads until its video has this length."""
        self.read(video=1)
        self._read_from(self.got[0][0][1], seconds)

    def read_seconds_more(self, seconds):
        self._read_from(self.got[0][-1][1], seconds)

    def read_to(self, other):
        """Reads up to the last packet of another reader, at the live edge or behind it."""
        for n in 0, 1:
            while (self.got[n][-1][1] - other.got[n][-1][1]) % 2**32 > 2**31:
                self.read(video=1, audio=1)

    def _read_from(self, first, seconds):
        while (self.got[0][-1][1] - first) % 2**32 < seconds * self.rates[0]:
            self.read(video=5)


def read_both(late, live):
    """Reads from both in turn, because the proxy thins a reader that does not read for long."""
    for _ in range(30):
        late.read(video=20, audio=4)
        live.read_to(late)


def shifts(live, packet, n):
    """Returns how far a packet's time is ahead of its live times. The clip loops, so there may be
    several."""
    return {(packet[1] - time) % 2**32 for _, time, payload in live.got[n] if payload == packet[2]}


def is_part(of, packets):
    """Returns whether the packets' payloads are consecutive in the track."""
    whole = [payload for _, _, payload in of]
    part = [payload for _, _, payload in packets]
    return any(whole[i:i + len(part)] == part for i in range(len(whole)))


def follows(before, after):
    """Returns whether the second packet has the next sequence number."""
    return after[0] == (before[0] + 1) % 65536


def live_and_late(stack, proxy):
    """Returns a live reader that has read data to compare with, and a delayed reader that does not
    play yet."""
    live = stack.enter_context(Client(proxy))
    live.play()
    live.read_seconds(DELAY + GOP + 1)
    return live, stack.enter_context(Client(proxy, proxy.url(f'/cam?delay={DELAY}')))


@test
def a_delayed_reader_gets_the_live_content_later():
    with origin_of_clip() as origin, Proxy(mount(origin)) as proxy, contextlib.ExitStack() as stack:
        live, late = live_and_late(stack, proxy)
        answer, info = late.play()
        assert answer['range'].startswith('npt=0.000-'), answer
        read_both(late, live)
        for n in 0, 1:
            assert late.got[n][0][:2] == info[n], (n, late.got[n][0][:2], info[n])
            # The late reader began at the keyframe before, and has caught up.
            for packet in late.got[n][-20:]:
                assert DELAY * live.rates[n] in shifts(live, packet, n), shifts(live, packet, n)
            for before, after in zip(late.got[n], late.got[n][1:]):
                assert follows(before, after), (n, before[0], after[0])


@test(timeout=60)
def tracks_stay_in_sync_at_a_delay():
    """by the sender reports, as players use them, both tracks are shown later by the same time"""
    with origin_of_clip() as origin, Proxy(mount(origin)) as proxy, contextlib.ExitStack() as stack:
        live, late = live_and_late(stack, proxy)
        late.play()
        for paused in False, True:
            if paused:
                late.pause()
                live.read_seconds_more(1)
                late.play()
            read_both(late, live)
            # The clip loops, so there may be several.
            later = [
                [late.clock_of(n, late.got[n][-1][1]) - live.clock_of(n, time)
                 for _, time, payload in live.got[n] if payload == late.got[n][-1][2]]
                for n in (0, 1)
            ]
            # At the clip's restart its audio steps by up to half a frame of 21.3 ms.
            both = [video for video, audio in product(*later) if abs(video - audio) < 0.012]
            assert any(each > DELAY - 0.012 if paused else abs(each - DELAY) < 0.012
                       for each in both), later


@test
def a_pause_keeps_the_position():
    with origin_of_clip() as origin, Proxy(mount(origin)) as proxy, contextlib.ExitStack() as stack:
        live, reader = (stack.enter_context(Client(proxy)) for _ in range(2))
        for client in live, reader:
            client.play()
            client.read(video=40)
        for _ in range(3):
            reader.pause()
            before = {n: len(reader.got[n]) for n in (0, 1)}
            live.read(video=40)
            answer, info = reader.play()
            assert re.match(r'npt=\d+\.\d+-', answer['range']), answer
            reader.read(video=40)
            for n in 0, 1:
                last, first = reader.got[n][before[n] - 1], reader.got[n][before[n]]
                assert first[:2] == info.get(n, first[:2]), (n, first[:2], info)
                assert follows(last, first), (n, last[0], first[0])
        live.read_to(reader)
        # Every packet follows as if there had been no pause.
        for n in 0, 1:
            assert is_part(live.got[n], reader.got[n]), n


@test
def a_seek_starts_where_the_answer_says():
    with origin_of_clip() as origin, Proxy(mount(origin)) as proxy, contextlib.ExitStack() as stack:
        live, reader = (stack.enter_context(Client(proxy)) for _ in range(2))
        for client in live, reader:
            client.play()
            client.read_seconds(4)
        oldest, text = described_start(proxy)
        live.read_seconds_more(6)
        for paused in False, True:
            # A position that the other reader has seen.
            count = {n: len(reader.got[n]) for n in (0, 1)}
            if paused:
                reader.pause()
            answer, info = reader.play(Range=text)
            reader.take_frames()
            begun = clock(answer['range'])[0]
            # Both are in whole ms, and made by two clocks that are read one after the other.
            assert -0.002 < begun - oldest < 1, (answer, text)
            reader.read(video=200, audio=150)
            for n in 0, 1:
                at = [packet[0] for packet in reader.got[n]].index(info[n][0])
                assert at >= count[n] and reader.got[n][at][1] == info[n][1], (n, at, count)
                assert follows(reader.got[n][at - 1], reader.got[n][at]), n
                assert is_part(live.got[n], reader.got[n][-50:]), n
                # Packets are in order, and none is from the time of the seek.
                assert not is_part(live.got[n][-20:], reader.got[n][-5:]), n
            answer, _ = reader.play(Range='npt=now-')
            reader.take_frames()
            reader.read(video=20)
        # Before the window's start, the reader gets the oldest position.
        answer, _ = reader.play(Range='clock=19990101T000000Z-')
        assert 0 <= clock(answer['range'])[0] - oldest < 5, answer
        answer, _ = reader.play(Range='npt=2.5-')
        assert 2.4 < float(re.match(r'npt=(\d+\.\d+)-', answer['range'])[1]) < 2.6, answer


@test
def the_api_shows_delayed_and_paused_readers():
    with origin_of_clip() as origin, Controlled(mount(origin)) as proxy, \
            contextlib.ExitStack() as stack:
        live, late = live_and_late(stack, proxy)
        late.play()
        late.read(video=20)

        def known():
            return proxy.get('/v1/readers')['readers']

        assert [(r['delay-seconds'], r['paused']) for r in known()] == [(0, False), (DELAY, False)]
        late.pause()
        before = known()[1]
        assert before['paused'] and before['state'] == 'ok' and before['packets'] > 0, before
        live.read_seconds_more(1)
        after = known()[1]
        assert after['delay-seconds'] > before['delay-seconds'] > DELAY - 0.1, (before, after)
        late.play()
        late.read(video=20)
        again = known()[1]
        assert again['delay-seconds'] >= after['delay-seconds'], (after, again)
        assert not again['paused'] and again['packets'] > after['packets'], (after, again)


@test
def a_delay_beyond_the_window_is_limited():
    with (origin_of_clip() as origin, tempfile.TemporaryDirectory() as folder,
          contextlib.ExitStack() as stack):
        # The window is in a file here; other tests have it in memory.
        proxy = stack.enter_context(Proxy(mount(origin, cache={**CACHE, 'spill': folder})))
        first = stack.enter_context(Client(proxy))
        first.play()
        first.read(video=400)
        for delay in '20m', '99999', '9' * 30:
            oldest = described_start(proxy)[0]
            late = stack.enter_context(Client(proxy, proxy.url(f'/cam?delay={delay}')))
            answer, _ = late.play()
            assert 0 <= clock(answer['range'])[0] - oldest < 1, (delay, answer)
            late.read(video=50)
            assert is_part(first.got[0], late.got[0][-30:])
        assert folder in pathlib.Path(f'/proc/{proxy.pid}/maps').read_text()
        assert not os.listdir(folder)


@test
def the_cache_does_not_wait_for_a_reader():
    with origin_of_clip() as origin, tempfile.TemporaryDirectory() as folder:
        with Proxy(mount(origin, cache={**CACHE, 'spill': folder})) as proxy:
            maps = pathlib.Path(f'/proc/{proxy.pid}/maps')
            wait_until(lambda: folder in maps.read_text(), 20, 'packets are in the file')


@test
def invalid_delays_are_refused():
    with origin_of_clip() as origin:
        mounts = {**mount(origin), '/plain': {'upstream': origin.url}}
        with Proxy(mounts) as proxy, Rtsp(proxy.port) as rtsp:
            for url in '/cam?delay=x', '/cam?delay=-1', '/cam?delay=1&delay=2', '/cam?delay=1e3', \
                    '/cam?delay=', '/plain?delay=1':
                assert describe(rtsp, proxy.url(url))[0] == 404, url
            assert 'range:clock' not in describe(rtsp, proxy.url('/plain'))[1]
            for wrong, wanted in (('clock=x', 400), ('npt=', 400), ('smpte=10:07:00-', 457),
                                  ('clock=20261340T999999Z-', 457), ('npt=20-10', 457),
                                  ('npt=nan-', 457), ('npt=1e30-', 457), ('npt=-3', 457)):
                with Client(proxy) as client:
                    status = client.request('PLAY', client.url, {'Range': wrong})[0]
                    assert status == wanted, (wrong, status)
                    client.play(Range='npt=now-')
            proxy.check_alive()


@test(timeout=90)
def a_reader_paused_for_too_long_moves_to_the_windows_start():
    with origin_of_clip() as origin:
        settings = {'cache': {'time': '1s', 'bytes': '1M'}}
        with Proxy(mount(origin, **settings)) as proxy, contextlib.ExitStack() as stack:
            live, reader = (stack.enter_context(Client(proxy)) for _ in range(2))
            for client in live, reader:
                client.play()
                client.read(video=40)
            reader.pause()
            start = described_start(proxy)[0]
            count = len(reader.got[0])

            def is_gone():
                live.read(video=20)
                return described_start(proxy)[0] > start + 5

            wait_until(is_gone, 60, "the window has passed the reader's position")
            reader.play()
            reader.read(video=40)
            assert matches(proxy, r'reader \S+ moved: its position is no longer in the window')
            # The sequence numbers show the gap.
            assert not follows(reader.got[0][count - 1], reader.got[0][count])
            assert is_part(live.got[0], reader.got[0][count:])


run()
