# SPDX-License-Identifier: LGPL-2.1-or-later
"""CPU time of rtsp-proxy by function (figures 3 and 4 of the AMPS testbed), by perf's samples.

A function of the proxy belongs to the folder of its source, which the names of the build's object
files tell. A function of the kernel belongs to a group by its name.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

from load import Load
from relay_ends import Camera, Readers
from report import Column
from servers import BUILD, Weir
from tap import Skip

NAME = 'amps-functions'
TITLE = 'CPU time of rtsp-proxy by function: 600 streams of V300, and 600 sessions that come and go'
CASE, WHO, YARDSTICK, LOG = 'function', 'load', None, False
COLUMNS = (Column('part', '% of the CPU time', '{:.1f}'),)

STREAMS, SETTLE = 600, 2
RATE = 999  # samples a second of each processor
LEAST_SAMPLES = 300

# What a name of the kernel belongs to; the first that matches.
KERNEL = (
    ('kernel: copies', r'copy|rep_movs|clear_(page|user)|memset|memcpy|csum_partial'),
    ('kernel: network', r'udp|tcp|ip_|ipv4|inet|sk_|sock|skb|net|dev_|xmit|veth|loopback|nf_|nft_|napi'
                        r'|route|fib_|neigh|csum|gso|qdisc|eth_|arp|recvm|sendm|recvf|sendto|msghdr'),
    ('kernel: timers, threads, waiting', r'sched|futex|epoll|ep_|poll|hrtimer|timer|wake|switch|rcu|idle'
                                         r'|clock|ktime|nanosleep|enqueue|dequeue|pick_|update_|try_to'
                                         r'|spin|mutex|rwsem|cfs|vruntime|tick'),
    ('kernel: system calls', r'syscall|entry_|exit_to_user|ret_from|fdget|fget|__fput|x64_sys|srso'
                             r'|retbleed|audit|iovec|import_'),
)
# What a folder of the proxy's source does.
FOLDERS = {
    'ingest': 'receiving', 'net': 'receiving', 'relay': 'receiving', 'sources': 'receiving',
    'fanout': 'sending', 'kernel': 'sending', 'window': 'pipes (the window)', 'rtp': 'RTP and RTCP',
    'run': 'threads and timers', 'rtsp': 'RTSP', 'outlets': 'RTSP', 'readers': 'RTSP',
}
OTHERS = 'the proxy: other'


def folders():
    """Returns {function: folder of its source} of the proxy and its plugins."""
    found = {}
    for path in (*BUILD.glob('plugins/**/*.o'), *BUILD.glob('apps/rtsp-proxy/**/*.o')):
        done = subprocess.run(['nm', '--defined-only', path], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            if match := re.match(r'\w+ [tT] (\S+)', line):
                found[match[1]] = path.name.split('_')[0]  # of ingest_udp.c.o
    return found


def group_of(dso, name, where):
    """Returns what a function belongs to. `where` is that of folders()."""
    if dso == '[kernel.kallsyms]' or dso.startswith('[') and dso != '[vdso]':
        return next((group for group, words in KERNEL if re.search(words, name)), 'kernel: other')
    name = re.sub(r'\.(isra|part|constprop|cold).*', '', name)
    if name in where:
        what = FOLDERS.get(where[name])
        return f'the proxy: {what}' if what else OTHERS
    if re.search(r'mem(cpy|move|set|cmp)', name):
        return 'the proxy: copies'
    if re.search(r'libgst|libglib|libgobject|libgio', dso):
        return 'GStreamer and GLib'
    return 'libc and other libraries'


def parts_of(text, where):
    """Returns {group: samples} of the lines "percent samples dso [k] function" of a report."""
    parts = {}
    for line in text.splitlines():
        if match := re.match(r'\s*[\d.]+%\s+(\d+)\s+(\S+)\s+\[.\]\s+(.*\S)', line):
            group = group_of(match[2], match[3], where)
            parts[group] = parts.get(group, 0) + int(match[1])
    return parts


def profile(pid, seconds):
    """Returns {group: % of the CPU time} of a process."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, 'perf.data')
        done = subprocess.run(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', str(RATE), '-p', str(pid), '-o', data,
                               '--', 'sleep', str(seconds)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Skip(f'perf cannot measure here: {done.stderr.strip()}')
        report = subprocess.run(['perf', 'report', '-i', data, '-n', '--sort', 'dso,sym', '--stdio', '-q'],
                                capture_output=True, text=True, check=True).stdout
        samples = subprocess.run(['perf', 'script', '-i', data, '-F', 'ip'], capture_output=True, text=True,
                                 check=True).stdout.count('\n')
    assert samples >= LEAST_SAMPLES, f'only {samples} samples'
    parts = parts_of(report, folders())
    known = sum(parts.values())
    assert 0.95 * samples < known <= samples, f'{known} of {samples} samples have a function'
    return {group: 100 * n / samples for group, n in parts.items()}


def of_streams(rig, seconds):
    mounts = Camera.mounts(rig, STREAMS)
    with Camera(rig, 'V300', 'spread'), Weir(rig, mounts) as server, \
            Readers(rig, server, mounts, 1, 100, SETTLE, seconds + 1) as readers:
        readers.wait_to_measure()
        return profile(server.pid, seconds)


def of_clients(rig, seconds, arrivals, session):
    """Readers come and go; the rig drops what they would get."""
    duration = session + seconds + 8
    number = arrivals * duration
    rig.drop_all_but(0)
    with Camera(rig, 'V300', 'spread'), Weir(rig, Camera.mounts(rig, number)) as server, \
            Load(rig, '--mute', '--readers', number, '--arrivals', f'poisson:{arrivals}', '--session', session,
                 '--duration', duration, *(server.url(f's{n}') for n in range(number))):
        time.sleep(session + 2)
        return profile(server.pid, seconds)


def run(rig, quick):
    if not shutil.which('perf'):
        raise Skip('needs perf (Debian: linux-perf)')
    rig.let_all_through()
    seconds = 8 if quick else 20
    arrivals, session = (20, STREAMS // 20) if quick else (5, STREAMS // 5)
    found = {f'{STREAMS} streams': of_streams(rig, seconds),
             f'{arrivals} clients a second': of_clients(rig, seconds, arrivals, session)}
    groups = sorted({group for parts in found.values() for group in parts})
    for group in groups:
        for load, parts in found.items():
            yield group, load, {'part': parts.get(group, 0)}
