# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stage late: the whole stream of a mount comes later."""

import socket
import threading
import time

from arrivals import Player
from proxy import Origin, Proxy
from tap import run, test

DELAY = 12 # s; longer than the default window of intervalcache, and than a stage may be silent
TRACKS = 0, 1
LOOP = 5.3 # s of the clip


class Listener(Player):
    """Notes when each payload comes, which a clip in a loop repeats."""

    def __init__(self, proxy, path):
        super().__init__(proxy.port, proxy.url(path), 'tcp', TRACKS)
        self.at = {track: {} for track in TRACKS}
        assert self.request('PLAY', self.url)[0] == 200

    def take(self):
        channel, packet = self.frame()
        if channel % 2 == 0:
            self.at[channel // 2].setdefault(packet[12:], []).append(time.monotonic())

    def take_all(self):
        try:
            while True:
                self.take()
        except OSError: # it was closed
            pass


def delays(now, late, track):
    """Returns for each payload how much later it came, by the nearest possible loop."""
    found = []
    for payload, times in list(late.at[track].items()):
        at = list(now.at[track].get(payload, []))
        if any(after - before < LOOP - 1 for before, after in zip(at, at[1:])):
            continue # the clip has it twice, such as silence
        before = [times[0] - each for each in at if times[0] - each > DELAY - 1]
        found += [min(before)] if before else []
    return found


@test
def pictures_and_sound_come_later_alike():
    stage = {'pipeline': ['pull', {'late': {'delay': f'{DELAY}s'}}], 'start-timeout': '60s'}
    with Origin() as origin, \
            Proxy({'/now': origin.url, '/late': {'upstream': origin.url, **stage}}) as proxy, \
            Listener(proxy, '/now') as now:
        thread = threading.Thread(target=now.take_all, daemon=True)
        thread.start()
        with Listener(proxy, '/late') as late: # its DESCRIBE waits for the first packet
            # The sound from before the first picture comes at once.
            for _ in range(600):
                late.take()
            late.at = {track: {} for track in TRACKS}
            while not all(len(delays(now, late, track)) > 20 for track in TRACKS):
                late.take()
            for track in TRACKS:
                least = min(delays(now, late, track))
                assert DELAY - 0.1 < least < DELAY + 3, (track, least)
        now.socket.shutdown(socket.SHUT_RDWR)
        thread.join()


@test
def the_delay_of_a_stage_has_a_range():
    for delay in '0s', '11m', 'soon':
        try:
            with Proxy({'/cam': {'upstream': 'rtsp://127.0.0.1:9/x', 'pipeline': ['pull', {'late': {'delay': delay}}]}}):
                raise AssertionError(delay)
        except AssertionError as refused:
            assert str(refused) != delay


if __name__ == '__main__':
    run()
