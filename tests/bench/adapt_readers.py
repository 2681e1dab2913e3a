# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plays a path with N readers for adapt.py, on the readers' side. Each reader sends a report every
five seconds. Prints the totals of all readers every second as a line of JSON.

    adapt_readers.py N HOST PORT PATH
"""

import json
import random
import struct
import sys
import time

from layerreader import LayerReader

REPORT_SECONDS = 5


class Tally:
    """Counts the pictures of one reader. After a loss, every picture up to the next key picture
    counts as broken."""

    def __init__(self):
        self.pictures, self.broken, self.lost = 0, 0, 0
        self._next, self._is_broken, self._begins = None, False, True

    def add(self, packet):
        _, second, seq = struct.unpack_from('>BBH', packet)
        if self._next is not None and (gap := (seq - self._next) % 65536):
            self.lost += gap if gap < 32768 else 0
            self._is_broken = True
        self._next = (seq + 1) % 65536
        # A key picture begins with parameter sets.
        if self._begins and packet[12] & 31 == 7:
            self._is_broken = False
        self._begins = second >> 7
        if second >> 7:
            self.pictures += 1
            self.broken += self._is_broken


def main():
    n, host, port, path = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    readers = [LayerReader(port, f'rtsp://{host}:{port}{path}', host=host, assembler=Tally())
               for _ in range(n)]
    due = [time.monotonic() + random.uniform(0, REPORT_SECONDS) for _ in readers]
    while True:
        time.sleep(0.2)
        now = time.monotonic()
        for at, reader in enumerate(readers):
            if now >= due[at]:
                reader.report()
                due[at] += REPORT_SECONDS
        if int(now / 0.2) % 5 == 0:
            print(json.dumps({key: sum(getattr(reader.assembler, key) for reader in readers)
                              for key in ('pictures', 'broken', 'lost')}
                             | {'packets': sum(reader.packets for reader in readers)}), flush=True)


if __name__ == '__main__':
    main()
