# SPDX-License-Identifier: LGPL-2.1-or-later
"""A reader that joins in the middle of a group of pictures: its first packets and its way to the
live edge."""

import re
import struct
import subprocess
import threading
import time

from proc import Rtsp
from proxy import CLIP, Proxy
from tap import SLOWER, run, test

# The clip has one keyframe, at its beginning, and lasts 5.3 s.
MIDDLE = 2.5


class Player(threading.Thread):
    """Plays the first track over TCP and records each RTP packet as (seq, time, payload)."""

    def __init__(self, proxy, seconds=4):
        super().__init__(daemon=True)
        self.packets = []
        self._rtsp = Rtsp(proxy.port)
        url = proxy.url()
        assert self._rtsp.request('DESCRIBE', url)[0] == 200
        answer = self._rtsp.request('SETUP', f'{url}/stream=0',
                                    {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'})
        assert answer[0] == 200, answer
        status, headers, _ = self._rtsp.request('PLAY', url)
        assert status == 200, status
        self.info = headers.get('rtp-info', '')
        self._ends = time.monotonic() + seconds
        self.start()

    def run(self):
        while time.monotonic() < self._ends:
            channel, data = self._rtsp.frame()
            if channel == 0:
                seq, at = struct.unpack('!HI', data[2:8])
                self.packets.append((seq, at, data[12:]))
        self._rtsp.socket.close()

    def played(self):
        self.join(10)
        assert self.packets
        return self.packets


def ahead(a, b):
    """Returns how far RTP time a is ahead of b."""
    return (a - b + (1 << 31)) % (1 << 32) - (1 << 31)


def by_payload(packets):
    """Returns {payload: its times}; the clip loops, so a payload may have several."""
    times = {}
    for _, at, payload in packets:
        times.setdefault(payload, []).append(at)
    return times


def at_its_time(packets, known):
    """Returns, for each packet that is also in `known`, whether it has one of its known times.
    Leaves out packets after the end of `known`, because the clip loops, and the last frame,
    which may be cut."""
    times, end = by_payload(known), known[-1][1]
    return [at in times[payload] for _, at, payload in packets
            if payload in times and ahead(end, at) > 0]


def begins_with_key_picture(packets):
    """Returns whether the first frame has an IDR slice (RFC 6184), after any parameter sets."""
    first = packets[0][1]
    for _, at, payload in packets:
        if at != first:
            return False
        kind = payload[0] & 31
        if kind == 5 or (kind == 28 and payload[1] & 31 == 5) or (kind == 24 and b'\x65' in payload):
            return True
    return False


@test
def a_late_reader_starts_at_the_newest_keyframe():
    with Proxy({'/cam': f'file://{CLIP}'}) as proxy:
        first = Player(proxy, seconds=MIDDLE + 4)
        time.sleep(MIDDLE)
        late = Player(proxy)
        packets, known = late.played(), first.played()

    assert begins_with_key_picture(packets), packets[0]
    info = re.search(r'/stream=0;seq=(\d+);rtptime=(\d+)', late.info)
    assert info, late.info
    assert packets[0][:2] == (int(info[1]), int(info[2])), (late.info, packets[0][:2])

    # The reader began with an old packet that the first reader knows, at that packet's time.
    times = by_payload(known)
    assert packets[0][2] in times
    assert ahead(packets[0][1], times[packets[0][2]][0]) > (MIDDLE - 0.5) * 90000, late.info

    # No number is missing, frames are in order, and after a while timestamps equal the first
    # reader's.
    for (seq, at, _), (after, then, _) in zip(packets, packets[1:]):
        assert after == (seq + 1) % 65536, (seq, after)
        assert ahead(then, at) > -90000, (at, then)
    common = at_its_time(packets, known)
    assert not common[0] and all(common[-50:]), common


@test
def catch_up_delay_leaves_the_timestamps():
    with Proxy({'/cam': {'upstream': f'file://{CLIP}', 'catch-up': 'delay'}}) as proxy:
        first = Player(proxy, seconds=MIDDLE + 4)
        time.sleep(MIDDLE)
        late = Player(proxy)
        packets, known = late.played(), first.played()
    assert begins_with_key_picture(packets), packets[0]
    common = at_its_time(packets, known)
    assert len(common) > 50 and all(common)


@test
def join_live_waits_for_the_keyframe():
    with Proxy({'/cam': {'upstream': f'file://{CLIP}', 'join': 'live'}}) as proxy:
        Player(proxy)
        time.sleep(MIDDLE)
        assert not begins_with_key_picture(Player(proxy).played())


def decode(url, transport):
    """Returns what FFmpeg prints about 2 s of video."""
    done = subprocess.run(
        ['ffmpeg', '-nostdin', '-v', 'warning', '-rtsp_transport', transport, '-i', url, '-t', '2',
         '-an', '-f', 'null', '-'],
        capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@test
def ffmpeg_decodes_a_late_join_without_an_error():
    with Proxy({'/cam': {'upstream': f'file://{CLIP}', 'on-demand': 'no'}}) as proxy:
        proxy.wait_for_line(' mount /cam up')
        time.sleep(MIDDLE)
        for transport in 'udp', 'tcp':
            printed = decode(proxy.url(), transport)
            # On a busy machine FFmpeg reads its sockets so late that the kernel drops packets. This
            # says nothing about the join, so FFmpeg joins again.
            for _ in range(10):
                if transport == 'tcp' or 'RTP: missed' not in printed:
                    break
                printed = decode(proxy.url(), transport)
            for word in 'error', 'missing', 'missed', 'decode_slice', 'concealing', 'non-existing':
                assert word not in printed, printed


if __name__ == '__main__':
    run()
