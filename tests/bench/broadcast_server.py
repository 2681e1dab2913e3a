# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of the paper on periodic broadcast and patching (Bradshaw et al.) on the parts of a
server: its disk, its threads, and how it answers requests. See broadcast_network.py."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from broadcast_network import HERE, RATE, Films, Part, network, prepare, result_of, run_in, title
from report import Column
from servers import BUILD, CACHE, PORT
from slowdisk import SlowDisk
from tap import Skip

os.environ.setdefault('WEIR_SLOWDISK', str(BUILD / 'tests/support/slowdisk/slowdisk'))


class Disk(Part):
    """Figure 4. The titles are read from an imitated disk that carries three of them. To be sent
    sooner, a title has half the length and twice the bit rate of the other parts."""

    NAME = 'broadcast-disk'
    LENGTH, KILOBITS, FIRST, CYCLE = 45, 6000, '1500ms', 24
    ACCESS_US, DISK_RATE = 17000, 20_000_000  # bytes a second: 110 Mb/s in blocks of a second
    CACHES = {'1 MB of cache': '1M', '4 MB of cache': '4M'}
    TITLE = f'What 30-GDB of titles of {LENGTH} s and 6 Mb/s sends from a disk that carries three (figure 4)'
    CASE, WHO = 'titles', 'rate'
    COLUMNS = (Column('rate', 'Mb/s', '{:.1f}'), Column('read', 'read Mb/s', '{:.1f}'),
               Column('missed', '% of frames not sent', '{:.1f}'))

    @classmethod
    def run(cls, _rig, quick):
        for titles in (5,) if quick else (1, 2, 3, 4, 5, 6):
            offered = None
            for name, cache in cls.CACHES.items():
                offered, sent = cls.measure(titles, cache)
                yield f'{titles}', name, sent
            yield f'{titles}', 'offered', {'rate': offered}

    @classmethod
    def measure(cls, titles, cache):
        with tempfile.TemporaryDirectory(dir=CACHE) as folder, SlowDisk(folder) as disk, network(1) as rig:
            with Films(rig, {'scheme': 'gdb', 'first': cls.FIRST, 'cache': cache}, titles,
                       title(cls.KILOBITS, cls.LENGTH), {'TMPDIR': str(disk.path)}) as server:
                prepare(rig, server)
                disk.set(access_us=cls.ACCESS_US, rate=cls.DISK_RATE)
                asks = run_in(rig.clients[0], 'describers.py', 2, 2 * cls.CYCLE + 5, 1, *server.urls())
                time.sleep(cls.CYCLE + 2)  # all segments have begun
                begin, before = time.monotonic(), server.figures()
                time.sleep(cls.CYCLE)
                took, after = time.monotonic() - begin, server.figures()
                disk.set(access_us=0, rate=0)
                result_of(asks)  # till now, the groups have clients
        change = {name: after[name] - before[name]
                  for name in ('sent-bytes', 'read-bytes', 'frames', 'missed-frames')}
        frames = change['frames'] + change['missed-frames']
        return after['rate'] / 1e6, {
            'rate': change['sent-bytes'] * 8e-6 / took, 'read': change['read-bytes'] * 8e-6 / took,
            'missed': 100 * change['missed-frames'] / frames}


def thread_seconds(pid, name):
    """Returns the CPU time that the threads of this name have taken."""
    taken = 0
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if (task / 'comm').read_text(encoding='utf-8').strip() == name:
                taken += int((task / 'schedstat').read_text(encoding='ascii').split()[0]) / 1e9
    return taken


class Threads(Part):
    """Table 3: titles on 24 groups, each of which sends 2 Mb/s all the time, from memory."""

    NAME = 'broadcast-threads'
    LENGTH, KILOBITS, GROUPS = 24, 2000, 24
    TITLE = f'CPU time of the thread that sends {GROUPS} groups of 2 Mb/s (table 3)'
    CASE, WHO = 'titles, groups of each', 'by'
    COLUMNS = (Column('network', 'ms of each frame', '{:.2f}'),
               Column('disk', 'disk ms of each second', '{:.2f}'), Column('sent', 'sent Mb/s', '{:.1f}'),
               Column('late', '% of frames 1 ms late', '{:.1f}'), Column('missed', 'frames not sent'))
    PAPER = {3: {'network': 1.60, 'disk': 6.16, 'sent': 48}, 1: {'network': 5.08, 'disk': 8.39, 'sent': 48}}

    @classmethod
    def run(cls, _rig, quick):
        for titles, paper in cls.PAPER.items():
            case = f'{titles}, {cls.GROUPS // titles}'
            yield case, 'paper', paper
            yield case, 'rtsp-proxy', cls.measure(titles, 6 if quick else 30)

    @classmethod
    def measure(cls, titles, seconds):
        first = 1000 * cls.LENGTH * titles // cls.GROUPS
        with network(1) as rig, Films(
                rig, {'scheme': 'staggered', 'first': f'{first}ms', 'cache': '64M'}, titles,
                title(cls.KILOBITS, cls.LENGTH)) as server:
            prepare(rig, server)
            asks = run_in(rig.clients[0], 'describers.py', 10, cls.LENGTH + seconds + 5, 4, *server.urls())
            time.sleep(cls.LENGTH + 2)  # all groups send
            begin, spent, before = time.monotonic(), thread_seconds(server.pid, 'broadcast'), server.figures()
            time.sleep(seconds)
            took, after = time.monotonic() - begin, server.figures()
            spent = thread_seconds(server.pid, 'broadcast') - spent
            result_of(asks)
        assert after['read-bytes'] == before['read-bytes'], 'not all is in memory'
        sent, late, missed = (after[name] - before[name] for name in ('frames', 'late-frames', 'missed-frames'))
        return {'network': 1000 * spent / took / RATE, 'late': 100 * late / sent, 'missed': missed,
                'sent': (after['sent-bytes'] - before['sent-bytes']) * 8e-6 / took}


class Signalling(Part):
    """Figure 8, by the kernel's events: when a request arrives, when a thread reads it, and when it
    answers."""

    NAME = 'broadcast-signalling'
    TITLE = 'Requests for schedules: how long they wait for a thread, and how long it works (figure 8)'
    CASE, WHO = 'requests a minute', 'part'
    COLUMNS = Column('ms', 'mean ms', '{:.3f}'), Column('p99', 'p99 ms', '{:.3f}')
    EVENTS = ('-e', 'tcp:tcp_probe', '--filter', f'sport=={PORT} && data_len>0',
              '-e', 'syscalls:sys_exit_recvfrom', '--filter', 'ret>0', '-e', 'syscalls:sys_enter_sendmsg')

    @classmethod
    def run(cls, _rig, quick):
        if not shutil.which('perf'):
            raise Skip('needs perf (Debian: linux-perf)')
        for requests in (600, 60000) if quick else (60, 600, 1670, 6000, 20000, 60000):
            for part, values in cls.measure(requests, 5 if quick else 20).items():
                yield f'{requests}', part, values

    @classmethod
    def measure(cls, requests, seconds):
        with network(1) as rig, Films(rig, {'scheme': 'gdb', 'first': '1s'}) as server, \
                tempfile.NamedTemporaryFile(dir=CACHE) as data:
            prepare(rig, server)
            time.sleep(1)  # the answers of the preparation are over
            done = subprocess.run(
                ['perf', 'record', '-q', '-a', '-o', data.name, *cls.EVENTS, '--', *rig.clients[0], sys.executable,
                 HERE / 'describers.py', str(requests / 60), str(seconds), '16', *server.urls()],
                capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Skip(f'perf cannot measure here: {done.stderr.strip()}')
            asked = json.loads(done.stdout)['asked']
            text = subprocess.run(['perf', 'script', '-i', data.name, '-F', 'pid,tid,time,event,trace'],
                                  capture_output=True, text=True, check=True).stdout
            waited, worked = request_times(text, server.pid, rig.server_address)
        assert 0.98 * asked <= len(waited) == len(worked) <= asked, f'of {asked} requests, {len(waited)} were seen to be read, and {len(worked)} to be answered'
        return {'waits for a thread': {'ms': statistics.mean(waited), 'p99': waited[len(waited) * 99 // 100]},
                'is answered': {'ms': statistics.mean(worked), 'p99': worked[len(worked) * 99 // 100]}}


def request_times(text, pid, address):
    """Returns the sorted ms that requests waited for a thread of process `pid`, and that it took to
    answer them, of the lines "pid/tid time: event: values" of perf."""
    arrived, reading, readers, waited, worked = [], [], set(), [], []
    for line in text.splitlines():
        match = re.match(r'\s*(\d+)/(\d+)\s+([\d.]+): +\S*?:(\w+): *(.*)', line)
        assert match, f'perf said: {line}'
        thread, at, event = match[2], 1000 * float(match[3]), match[4]
        # Requests are read and answered in the order in which they come, nearly.
        if event == 'tcp_probe' and f'src={address}:' in match[5]:
            arrived.append(at)
        elif event == 'sys_exit_recvfrom' and int(match[1]) == pid and arrived:
            waited.append(at - arrived.pop(0))
            reading.append(at)
            readers.add(thread)
        elif event == 'sys_enter_sendmsg' and thread in readers and reading:
            worked.append(at - reading.pop(0))
    return sorted(waited), sorted(worked)
