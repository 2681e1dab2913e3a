# SPDX-License-Identifier: LGPL-2.1-or-later
"""gortmplib, which shares no code with GStreamer or FFmpeg, publishes over RTMP, and takes what the proxy pushes."""

import signal
import tempfile

from control import Controlled
from goprogram import go_program
from hlsweb import PATIENT, clip
from proc import Proc
from proxy import matches, wait_until
from tap import run, test

TRACKS = 'video', 'audio'
PICTURES = 60  # to take
MOVED = r': track \d+ moves by -?\d+ ms, by the sender reports$'


def units(program, track):
    """Returns (PTS in ms, DTS in ms, bytes, hash) of each access unit that a program has printed."""
    found = [line.split() for line in program.lines if line.startswith(f'{track} ')]
    return [(int(pts), int(dts), int(size), digest) for _, pts, dts, size, digest in found]


def place(taken, sent, track):
    """Returns which of the sent access units was taken first."""
    got, source = units(taken, track), units(sent, track)
    return [digest for *_, digest in source].index(got[0][3]) if got else len(source)


def is_complete(taken, sent):
    """Reports whether all was taken to the end, but for what waits for the other track."""
    return all(len(units(sent, track)) - place(taken, sent, track) - len(units(taken, track)) <= 3 for track in TRACKS)


def check(taken, sent):
    """Checks that access units were taken as they were sent, from one on, at their times."""
    shifts = []
    for track in TRACKS:
        got, source, first = units(taken, track), units(sent, track), place(taken, sent, track)
        source = source[first:first + len(got)]
        print(f'# {track}: {len(got)} units from number {first} on, {sum(size for *_, size, _ in got)} bytes')
        assert [unit[2:] for unit in got] == [unit[2:] for unit in source], track
        moved = [a[0] - b[0] for a, b in zip(got, source)]
        assert max(moved) - min(moved) <= 1, (track, min(moved), max(moved))
        decoded = [dts for _, dts, *_ in got]
        assert decoded == sorted(decoded) and all(dts <= pts for pts, dts, *_ in got), (track, got)
        shifts.append(moved[0])
    assert abs(shifts[0] - shifts[1]) <= 5, shifts


def pass_on(program):
    """Has the program publish, and take what the proxy pushes. Returns the taker, the sender, and whether the proxy moved
    a track meanwhile, as it does when the machine delays its sender reports by 2 s: then units are left out."""
    with Proc(program, 'serve') as server:
        push = server.wait_for_line(r'^READY (\S+)$', 30)[1]
        mount = {'upstream': 'publish', **PATIENT, 'push': [push]}
        with Controlled({'/live/cam': mount}, rtmp={'listen': '127.0.0.1:0'}) as proxy:
            base = proxy.wait_for_line(r' takes publishers at (rtmp://\S+)$')[1]
            with Proc(program, 'publish', clip('h264-reordered'), f'{base}/live#cam') as sender:
                wait_until(lambda: len(units(server, 'video')) >= PICTURES, 30, f'{PICTURES} pictures')
                sender.signal(signal.SIGTERM)
                sender.wait_for_line('^END$', 30)
            wait_until(lambda: is_complete(server, sender) or matches(proxy, MOVED), 30, 'the last units')
        server.wait_for_line('^END$', 30)
    return server, sender, bool(matches(proxy, MOVED))


@test(timeout=120)
def access_units_of_a_go_client_reach_a_go_server_unchanged():
    """H.264 and AAC that gortmplib publishes are pushed to gortmplib unchanged, at their times"""
    with tempfile.TemporaryDirectory() as folder:
        program = go_program('rtmp', folder)
        for _ in range(4):
            server, sender, moved = pass_on(program)
            if not moved:
                break
        check(server, sender)


if __name__ == '__main__':
    run()
