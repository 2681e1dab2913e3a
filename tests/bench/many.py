# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures fanoutsink alone, with more readers than there are file descriptors."""

import os
import subprocess
import sys

from report import Column
from rig import FIRST_PORT
from servers import BUILD, PLUGINS, ROOT, clip_of

NAME = 'many'
TITLE = 'fanoutsink with a 4 Mb/s clip in real time, and with 2 Mb/s of H.264 SVC'
CASE, WHO, YARDSTICK = 'readers', 'sink', 'gso=off'
LOG = True
COLUMNS = (
    Column('ns', 'ns/packet', spread=True),
    Column('cpu', 'CPU %'),
    Column('sent', 'packets sent'),
    Column('segments', 'packets per send', '{:.1f}'),
    Column('dropped', 'dropped'),
    Column('memory', 'bytes per reader'),
    Column('longest', 'longest trigger, µs', '{:.0f}'),
    Column('pause', 'longest pause of the machine, µs', '{:.0f}'),
)

SECONDS = 5
WAYS = {'auto': 'gso=auto', 'off': 'gso=off', 'kernel': 'kernel=on'}
LAYERS = {'all': 'all layers', '1.1': 'layers 1.1', '9': 'nine sets'}


def has_kernel_path(rig):
    done = subprocess.run(
        [*rig.server, 'gst-launch-1.0', '-q', 'videotestsrc', 'num-buffers=1', '!', 'fanoutsink',
         'kernel=on', 'sync=false'], env=environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print('many: no kernel path here: ' + done.stderr.strip().splitlines()[0], file=sys.stderr)
    return done.returncode == 0


def environment():
    return {**os.environ, **PLUGINS, 'WEIR_DATA': str(ROOT / 'tests/data')}


def measure(rig, program, *arguments):
    done = subprocess.run([*rig.server, BUILD / 'tests/bench' / program, *arguments],
                          env=environment(), capture_output=True, text=True, check=True)
    return figures(done.stdout)


def figures(text):
    return {name: float(value) for name, value in map(str.split, text.splitlines())}


def microseconds(program):
    return float(subprocess.run([BUILD / 'tests/bench' / program], check=True, capture_output=True,
                                text=True).stdout)


def measure_kernel(rig, *arguments):
    """Measures the kernel path, for how long at most one message turned softirqs off, and for how long the
    machine ran nothing at all."""
    with subprocess.Popen([*rig.server, BUILD / 'tests/bench/many_bench', 'kernel', *arguments],
                          env=environment(), stdout=subprocess.PIPE, text=True) as bench:
        text, longest = '', None
        for line in bench.stdout:  # it prints the first line when it has measured
            longest = longest or microseconds('longest_trigger')
            text += line
    return {**figures(text), 'longest': longest, 'pause': microseconds('machine_pauses')}


def run(rig, quick):
    rig.drop_all_but(0)
    ways = [way for way in WAYS if way != 'kernel' or has_kernel_path(rig)]
    for readers in (1000, 10000):
        for _ in range(1 if quick else 3):
            for way in ways:
                if way == 'off' and readers > 1000:
                    continue  # about 300 of these readers fill a core
                job = (clip_of(4), rig.readers_address, str(FIRST_PORT), str(readers), str(SECONDS))
                yield str(readers), WAYS[way], (
                    measure_kernel(rig, *job) if way == 'kernel' else
                    measure(rig, 'many_bench', way, *job))
    for _ in range(1 if quick else 3):
        for layers, name in LAYERS.items():
            for kernel in ('off', 'on') if 'kernel' in ways else ('off',):
                yield f'1000 of SVC, {name}', WAYS['kernel' if kernel == 'on' else 'auto'], measure(
                    rig, 'many_layers_bench', kernel, layers, rig.readers_address,
                    str(FIRST_PORT), '1000', str(SECONDS))
