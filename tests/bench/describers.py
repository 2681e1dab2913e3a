#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that ask for schedules and receive nothing: describers.py RATE SECONDS CONNECTIONS URL...

They come in a Poisson process of RATE a second, to the URLs in turn, over a number of connections.
Prints JSON: how many asked and how many got a schedule, the time to the answer, and how many answers
took 0 to 0.5 ms, 0.5 to 1 ms, ... up to 49.5 ms or more.
"""

import json
import random
import socket
import sys
import threading
import time
import urllib.parse


IDLE, LIFE = 5, 50  # seconds; the server closes connections without a session after more


class Connection:
    def __init__(self, url):
        place = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port))
        self.socket.settimeout(30)
        self.held = b''

    def describe(self, url, number):
        """Returns the status and the description."""
        self.socket.sendall(f'DESCRIBE {url} RTSP/1.0\r\nCSeq: {number}\r\n'
                            'Accept: application/sdp\r\nSupported: x-weir-schedule\r\n\r\n'.encode())
        head = self._until(b'\r\n\r\n').decode()
        length = [line.split(':')[1] for line in head.splitlines()
                  if line.lower().startswith('content-length:')]
        return int(head.split()[1]), self._bytes(int(length[0]) if length else 0).decode()

    def _until(self, mark):
        while mark not in self.held:
            self._more()
        head, _, self.held = self.held.partition(mark)
        return head

    def _bytes(self, length):
        while len(self.held) < length:
            self._more()
        body, self.held = self.held[:length], self.held[length:]
        return body

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError('the server has closed the connection')
        self.held += data


def ask(rate, end, urls, results):
    """Asks as one of the connections; `rate` is its part."""
    connection, due, number, ends = None, time.monotonic(), 0, 0
    while (due := due + random.expovariate(rate)) < end:
        time.sleep(max(0, due - time.monotonic()))
        number += 1
        begin = time.monotonic()
        if begin >= ends:
            connection, born = Connection(urls[0]), begin
        ends = min(begin + IDLE, born + LIFE)
        status, text = connection.describe(random.choice(urls), number)
        results.append((status == 200 and 'a=x-weir-receive' in text, time.monotonic() - begin))


def main():
    rate, seconds, connections = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    results, end = [], time.monotonic() + seconds
    threads = [threading.Thread(target=ask, args=(rate / connections, end, sys.argv[4:], results))
               for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(1000 * took for _, took in results)
    bins = [0] * 100
    for took in times:
        bins[min(99, int(2 * took))] += 1
    print(json.dumps({'asked': len(results), 'got': sum(got for got, _ in results),
                      'p50': times[len(times) // 2], 'p99': times[len(times) * 99 // 100],
                      'bins': bins}))


if __name__ == '__main__':
    main()
