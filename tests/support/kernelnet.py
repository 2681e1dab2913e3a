# SPDX-License-Identifier: LGPL-2.1-or-later
"""For tests of the kernel path of fanoutsink: a sender and its readers.

Both have a network namespace each, with a veth pair between them.
"""

import os
import subprocess
import time

from kernelpath import PATIENCE, Reader, numbers
from netns import Namespace, NoRig
from tap import Skip

SENDER, READERS = '10.78.0.1', '10.78.0.2'


def packet(seq, timestamp, size, marker):
    """The packet that kernel-sender.c makes."""
    head = bytes([0x80, 96 | (0x80 if marker else 0)]) + seq.to_bytes(2, 'big')
    head += timestamp.to_bytes(4, 'big') + bytes([0x12, 0x34, 0x56, 0x78])
    return head + bytes((seq * 7 + i) & 0xff for i in range(12, size))


class Steered:
    """Readers of a program that takes commands from standard input, and their networks (`sides`).
    At the end, all of them go."""

    def __init__(self, *sides):
        self.process, self.all, self.sides = None, [], sides

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        for reader in self.all:
            reader.socket.close()
        for side in self.sides:
            side.close()

    def command(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


class Net(Steered):
    """A sender and the hosts of its readers, which have addresses of their own on one device."""

    def __init__(self, n_hosts=1):
        try:
            self.sender, self.readers = Namespace(), Namespace()
            self.sender.run('ip', 'link', 'add', 'veth', 'type', 'veth', 'peer', 'name', 'veth',
                            'netns', self.readers.path)
            for side, address in (self.sender, SENDER), (self.readers, READERS):
                side.run('ip', 'link', 'set', 'lo', 'up')
                side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'veth')
                side.run('ip', 'link', 'set', 'veth', 'up')
            for i in range(1, n_hosts):
                self.readers.run('ip', 'address', 'add', f'10.78.0.{2 + i}/24', 'dev', 'veth')
        except NoRig as why:
            raise Skip(str(why))
        super().__init__(self.sender, self.readers)
        self.thinned = False  # a reader lagged so far that it got less
        self.seq, self.timestamp, self.sent = 65000, 90000, []

    def start(self, kernel='on', enter=(), before=None, log=None, **properties):
        words = [f'{key.replace("_", "-")}={value}' for key, value in properties.items()]
        self.process = subprocess.Popen(
            [*self.sender.words, *enter, os.environ['WEIR_KERNEL_SENDER']], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=before)
        return self.command(' '.join(['start', f'kernel={kernel}', 'max-coalesce=0', *words]))

    def need(self, answer):
        """Skips the test if the kernel path is not there."""
        if 'no kernel path' in answer or 'too old' in answer or \
                ('CAP_BPF' in answer and os.geteuid() != 0):
            raise Skip(answer)
        assert answer == 'ok', answer

    def add(self, n=1, first_host=0, n_hosts=1):
        added = []
        for i in range(n):
            reader = Reader(self.readers, f'10.78.0.{2 + first_host + i % n_hosts}',
                            20000 + 2 * len(self.all))
            reader.first = len(self.sent)
            self.all.append(reader)
            added.append(reader)
            self.command(f'add {reader.address} {reader.port}')
        return added

    def add_again(self):
        """Adds the readers to a sender that was started anew."""
        for reader in self.all:
            self.command(f'add {reader.address} {reader.port}')

    def remove(self, reader):
        self.settle()
        self.command(f'remove {reader.address} {reader.port}')
        reader.read()
        reader.last = len(self.sent)

    def push(self, *sizes):
        for i, size in enumerate(sizes):
            self.sent.append(packet((self.seq + i) & 0xffff, self.timestamp, size,
                                    i + 1 == len(sizes)))
        answer = self.command(f'frame {self.seq} {self.timestamp} {" ".join(map(str, sizes))}')
        assert answer == 'ok', answer
        self.seq = (self.seq + len(sizes)) & 0xffff
        self.timestamp += 3600

    def stats(self):
        return numbers(self.command('stats'))

    def stats_of(self, reader):
        return numbers(self.command(f'reader {reader.address} {reader.port}'))

    def settle(self):
        """Waits until every packet is sent or dropped, and returns the statistics."""
        end = time.monotonic() + PATIENCE
        while True:
            stats = self.stats()
            readers = [self.stats_of(r) for r in self.all if not hasattr(r, 'last')]
            self.thinned |= any(reader['state'] != 'ok' for reader in readers)
            if sum(reader['lag-packets'] for reader in readers) == 0:
                stats = self.stats()
                assert stats['packets-due'] == stats['packets-sent'] + stats['dropped'], stats
                return stats
            assert time.monotonic() < end, stats
            time.sleep(0.01)

    def wait_for_clones(self, n, frame=(1000, 1000, 500)):
        """Pushes frames until `n` readers get clones. Routes and neighbours are looked up after a
        reader was added."""
        end = time.monotonic() + PATIENCE
        while True:
            self.push(*frame)
            stats = self.settle()
            if stats['kernel-readers'] == n:
                return stats
            assert time.monotonic() < end, stats
            time.sleep(0.01)

    def wait_for_reason(self, reason):
        """Pushes frames until every reader is served by sends for this reason."""
        end = time.monotonic() + PATIENCE
        while True:
            self.push(1000, 300)
            self.settle()
            reasons = {self.stats_of(reader)['kernel'] for reader in self.all}
            if reasons == {reason}:
                return
            assert time.monotonic() < end, reasons
            time.sleep(0.01)

    def check(self):
        """Every reader has got exactly what was sent, and has lost nothing."""
        stats = self.settle()
        assert stats['dropped'] == 0, stats
        for reader in self.all:
            want = self.sent[reader.first:getattr(reader, 'last', None)]
            reader.await_packets(len(want))
            assert len(reader.got) == len(want), (len(reader.got), len(want))
            assert reader.got == want, 'the packets differ'
            assert len(reader.sources) <= 1 and all(a == SENDER for a, _ in reader.sources), \
                reader.sources
        assert len(set().union(*(reader.sources for reader in self.all))) == 1
        return stats
