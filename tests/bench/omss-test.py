# SPDX-License-Identifier: LGPL-2.1-or-later
"""Relays of the bench `omss` send each reader the packets that came, whole and in order; the search
for the largest number finds it."""

import os
import select
import socket
import subprocess
import sys

from proc import Proc
from processor_group import ProcessorGroup
from search import most
from servers import BUILD, PLUGINS
from tap import run, test

WAYS = 'daemon', 'connected', 'zerocopy', 'splice', 'sendfile'
PACKETS, READERS = 200, 3


def free_ports(number):
    """Returns the first of `number` ports in a row, whose sockets it opens."""
    for first in range(41000, 60000, number):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(number)]
        try:
            for n, each in enumerate(sockets):
                each.bind(('127.0.0.1', first + n))
        except OSError:
            for each in sockets:
                each.close()
            continue
        return first, sockets
    raise AssertionError('no free ports')


def packets():
    """Packets of all sizes, each with bytes of its own."""
    return [bytes((n + i * 7) % 256 for i in range(1 + n * 37 % 1450)) for n in range(PACKETS)]


def from_datagram(reader):
    return reader.recv(2048)


def from_stream(reader):
    data = b''
    while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], 'big'):
        data += reader.recv(2 + int.from_bytes(data[:2], 'big') - len(data) if len(data) > 1 else 2 - len(data))
    return data[2:]


def relay(way, transport):
    """Relays packets, and returns the relay's figures."""
    upstream, sockets = free_ports(1)
    first, readers = free_ports(READERS)
    sockets[0].close()
    if transport == 'tcp':
        for each in readers:
            each.close()
    with Proc(BUILD / 'tests/bench/omss_bench', way, transport, '127.0.0.1', first, READERS, upstream, 2,
              env={**os.environ, **PLUGINS}) as bench:
        if transport == 'tcp':
            bench.wait_for_line('^LISTENING')
            readers = [socket.create_connection(('127.0.0.1', first)) for _ in range(READERS)]
        for each in readers:
            each.settimeout(20)
        bench.wait_for_line('^READY')
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        take = from_stream if transport == 'tcp' else from_datagram
        for packet in packets():  # one after the other, so that no buffer is full
            out.sendto(packet, ('127.0.0.1', upstream))
            for n, reader in enumerate(readers):
                assert take(reader) == packet, (way, transport, n, len(packet))
        # The relay measures from one second after its first packet on, for two.
        while bench.running():
            out.sendto(b'more', ('127.0.0.1', upstream))
            for reader in select.select(readers, [], [], 0.01)[0]:
                reader.recv(65536)
        assert bench.wait(10) == 0, bench.output()
        figures = dict(line.split() for line in bench.lines if ' ' in line)
    for each in (*readers, out):
        each.close()
    return figures


@test
def each_way_sends_each_reader_the_packets_that_came():
    for transport in 'udp', 'tcp':
        for way in WAYS:
            figures = relay(way, transport)
            assert float(figures['sent']) > 0 and float(figures['copied']) <= 100, (way, transport, figures)


@test
def the_search_finds_the_largest_number_that_works():
    for limit in 1, 7, 100, 1000, 4321:
        for start in 1, 50, 2000, 9000:
            tried = []

            def trial(n, limit=limit, tried=tried):
                tried.append(n)
                return {'n': n} if n <= limit else None

            number, figures, worst = most(trial, start, 10000, 1.01)
            assert number <= limit < worst <= max(number * 1.01, number + 1), (limit, start, number, worst)
            assert figures == {'n': number} and len(tried) == len(set(tried)) < 40, tried
    assert most(lambda n: {'n': n}, 5, 300, 1.1) == (300, {'n': 300}, None)
    assert most(lambda n: None, 5, 300, 1.1) == (0, None, 1)


@test
def a_group_has_a_part_of_a_processor():
    spin = 'import time; end = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nprint(time.process_time())'
    with ProcessorGroup() as group:
        group.limit(0.1)
        done = subprocess.run([*group.words, sys.executable, '-c', spin], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.25, f'{done.stdout} s of a second'


if __name__ == '__main__':
    run()
