#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Relays UDP and loses, repeats, delays and reorders the packets that a script names.

    tests/bench/impair.py --listen 127.0.0.1:5004 --to 127.0.0.1:6004 \\
        --script 'drop 10-12; dup 20; delay 30-40 50ms; hold 50 53'

Packets are counted from 1 in order of arrival. `drop` loses a packet, `dup` sends it twice,
`delay` sends it later by a time in ms or s, and `hold 50 53` sends packet 50 right after packet
53. This works without netem, and every run has the same faults.
"""

import argparse
import heapq
import re
import select
import socket
import sys
import time

SCRIPT = re.compile(r'(drop|dup) (\d+)(?:-(\d+))?'
                    r'|(delay) (\d+)(?:-(\d+))? (\d+(?:\.\d+)?)(ms|s)'
                    r'|(hold) (\d+) (\d+)')


class BadScript(ValueError):
    pass


class Impairment:
    """Decides what happens to each packet. Has no clock and no socket."""

    def __init__(self, script):
        self.number = 0
        self._drop, self._dup, self._delay, self._hold = [], [], [], {}
        self._held = {}   # number of the packet that must come first: [data]
        self._late = []   # heap of (due, number, data)
        for line in filter(None, map(str.strip, script.split(';'))):
            self._read(line)

    def _read(self, line):
        match = SCRIPT.fullmatch(line)
        if not match:
            raise BadScript(f'"{line}" is not a fault; write it like drop 10-12, dup 20, '
                            'delay 30-40 50ms or hold 50 53')
        simple, first, last, delay, from_, to, amount, unit, hold, packet, until = match.groups()
        if simple:
            span = range(int(first), int(last or first) + 1)
            (self._drop if simple == 'drop' else self._dup).append(span)
        elif delay:
            seconds = float(amount) / (1000 if unit == 'ms' else 1)
            self._delay.append((range(int(from_), int(to or from_) + 1), seconds))
        elif int(until) <= int(packet):
            raise BadScript(f'"{line}": the second number must be higher')
        elif hold:
            self._hold[int(packet)] = int(until)

    def take(self, data, now):
        """Takes an arriving packet. Returns the packets to send now."""
        self.number += 1
        number = self.number
        if any(number in span for span in self._drop):
            ready = []
        elif number in self._hold:
            self._held.setdefault(self._hold[number], []).append(data)
            ready = []
        elif late := [seconds for span, seconds in self._delay if number in span]:
            heapq.heappush(self._late, (now + max(late), number, data))
            ready = []
        else:
            ready = [data] * (2 if any(number in span for span in self._dup) else 1)
        return ready + self._held.pop(number, [])

    def due(self, now):
        """Returns the delayed packets whose time has come."""
        ready = []
        while self._late and self._late[0][0] <= now:
            ready.append(heapq.heappop(self._late)[2])
        return ready

    def next_due(self):
        return self._late[0][0] if self._late else None


def address(text):
    host, _, port = text.rpartition(':')
    return host, int(port)


def relay(inside, target, impairment):
    outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        due = impairment.next_due()
        wait = None if due is None else max(0, due - time.monotonic())
        readable = select.select([inside], [], [], wait)[0]
        packets = impairment.due(time.monotonic())
        if readable:
            packets += impairment.take(inside.recv(65536), time.monotonic())
        for packet in packets:
            outside.sendto(packet, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog='impair.py',
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--listen', type=address, required=True, metavar='ADDR:PORT',
                        help='receive here; with port 0, the first line printed has the port')
    parser.add_argument('--to', type=address, required=True, metavar='ADDR:PORT',
                        help='send there')
    parser.add_argument('--script', default='',
                        help='faults, separated by semicolons; without any, all packets pass')
    options = parser.parse_args()
    try:
        impairment = Impairment(options.script)
    except BadScript as error:
        parser.error(str(error))
    inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inside.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    inside.bind(options.listen)
    print(f'READY {inside.getsockname()[1]}', flush=True)
    try:
        relay(inside, options.to, impairment)
    except KeyboardInterrupt:
        return 0


if __name__ == '__main__':
    sys.exit(main())
