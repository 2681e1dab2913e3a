# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tells what other programs take of the machine while a bench runs: figures of a busy machine mean
little."""

import os
import pathlib
import time

from tap import Skip

MOST = 0.5     # processors that other programs may take
LOOK = 2       # seconds of a look
PATIENCE = 60  # seconds until a bench refuses


def processor_seconds(text, niced):
    """Returns what all programs have taken since the machine started, of the text of /proc/stat: the
    time of programs, of the kernel for them, and that which the machine's host gave to others. The
    time of interrupts is left out, as nobody knows whose they are; without `niced`, also that of
    programs that give way."""
    user, nice, system, _idle, _wait, _irq, _softirq, steal = map(int, text.split('\n')[0].split()[1:9])
    return (user + system + steal + niced * nice) / os.sysconf('SC_CLK_TCK')


def own_seconds():
    """Returns what this process and its children that have ended have taken."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Watch:
    """Measures how many processors other programs take, from its start on. Children of this process
    count as others until they have ended."""

    def __init__(self, niced=True, stat='/proc/stat', own=own_seconds, now=time.monotonic):
        self._niced, self._stat, self._own, self._now = niced, pathlib.Path(stat), own, now
        self._began = self._look()

    def _look(self):
        text = self._stat.read_text(encoding='ascii')
        return self._now(), processor_seconds(text, self._niced) - self._own()

    def others(self):
        at, taken = self._look()
        return max(0, taken - self._began[1]) / max(at - self._began[0], 1e-3)


def wait(patience=PATIENCE, watch=Watch, sleep=time.sleep):
    """Waits until the machine is quiet, but for programs that give way (nice). Raises Skip if it
    stays busy."""
    for _ in range(max(1, round(patience / LOOK))):
        look = watch(niced=False)
        sleep(LOOK)
        if (others := look.others()) <= MOST:
            return
    raise Skip(f'the machine is busy: other programs take {others:.1f} of its {os.cpu_count()} '
               f'processors, and {MOST} are too many to measure beside; end them and try again')
