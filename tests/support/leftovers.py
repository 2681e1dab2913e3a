# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that a process keeps no descriptors, threads or memory of what has ended."""

import os
import time

SANITIZED = bool(os.environ.get('WEIR_SANITIZER_RUNTIME'))
# How many processes are killed at least, after the first ones.
KILLS = int(os.environ.get('WEIR_WORKER_KILLS', 12))
# The heaps of the threads grow by some MiB with the first sessions, also if nothing is killed. A leak
# would keep over 100 KiB of each title or stage, which shows after more kills.
KILLS_THAT_SHOW, SLACK_KIB = 150, 8192


def _kept(pid):
    """Returns the numbers of descriptors and threads, and the resident memory in KiB."""
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        status = dict(line.split(':', 1) for line in file)
    return (len(os.listdir(f'/proc/{pid}/fd')), int(status['Threads']),
            int(status['VmRSS'].split()[0]))


def check_kills(pid, kill, patience=30):
    """Calls `kill`, which returns how many it has killed. After the last call, the process must have
    no more descriptors and threads than after the first ones, and after many kills, unless it is
    sanitized, not much more memory."""
    for _ in range(2):
        kill()
    time.sleep(1)  # for what ends later, such as threads
    before, killed = _kept(pid), 0
    while killed < KILLS:
        killed += kill()
    deadline = time.monotonic() + patience
    while any(now > then for now, then in zip(_kept(pid)[:2], before)):
        assert time.monotonic() < deadline, f'{before} before, {_kept(pid)} after'
        time.sleep(0.1)
    after = _kept(pid)
    print(f'# {killed} kills: descriptors, threads and KiB were {before}, are {after}')
    if killed >= KILLS_THAT_SHOW and not SANITIZED:
        assert after[2] <= before[2] + SLACK_KIB, (before, after)
