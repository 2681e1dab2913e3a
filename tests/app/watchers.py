# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers over TCP that lose no packet, and a player over HLS that loses no part."""

import http.client
import re
import selectors
import struct
import threading
import time

from control import Watch

PATIENCE = 30


class Watchers(threading.Thread):
    """Readers on one thread, which note each gap in the sequence numbers."""

    def __init__(self, proxy, number):
        super().__init__(daemon=True)
        self.readers = [Watch(proxy) for _ in range(number)]
        self.wrong, self.packets, self.over = [], 0, threading.Event()
        self.start()

    def _take(self, reader, state):
        """Takes all frames of the bytes received."""
        buffer = state['bytes']
        while len(buffer) >= 4:
            size = 4 + struct.unpack_from('>H', buffer, 2)[0]
            if buffer[:1] != b'$' or len(buffer) < size:
                break
            if buffer[1] == 0:
                seq = struct.unpack_from('>H', buffer, 6)[0]
                if state['last'] is not None and seq != (state['last'] + 1) & 0xffff:
                    self.wrong.append(f'{seq} came after {state["last"]}')
                state['last'] = seq
                self.packets += 1
            del buffer[:size]

    def run(self):
        with selectors.DefaultSelector() as selector:
            for reader in self.readers:
                state = {'last': None, 'bytes': bytearray(reader._buffer)}
                reader.socket.setblocking(False)
                selector.register(reader.socket, selectors.EVENT_READ, (reader, state))
            while not self.over.is_set():
                for key, _ in selector.select(0.2):
                    reader, state = key.data
                    try:
                        data = key.fileobj.recv(1 << 18)
                    except OSError as error:
                        data = self.wrong.append(repr(error))
                    if not data:
                        self.wrong.append('a good reader was closed')
                        selector.unregister(key.fileobj)
                        continue
                    state['bytes'] += data
                    self._take(reader, state)

    def check(self):
        self.over.set()
        self.join(10)
        for reader in self.readers:
            reader.socket.close()
        assert not self.wrong, self.wrong[:5]
        print(f'# {len(self.readers)} readers got {self.packets} packets, none was lost', flush=True)


class Player(threading.Thread):
    """Plays /cam over HLS with low latency on one connection: it gets each part, as soon as that is there."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.wrong, self.parts, self.over = None, 0, threading.Event()
        self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        self._folder = '/hls/cam/' + re.search(r'^(~.*)/live.m3u8', self._get('/hls/cam/index.m3u8'), re.M)[1]
        self._first = int(re.search(r'HINT:TYPE=PART,URI="part(\d+)', self._get(f'{self._folder}/live.m3u8'))[1])
        self.start()

    def _get(self, path):
        """Returns a body. 503 says that the stream waits for its upstream."""
        deadline, status = time.monotonic() + PATIENCE, 503
        while status == 503 and time.monotonic() < deadline:
            self._connection.request('GET', path)
            answer = self._connection.getresponse()
            status, body = answer.status, answer.read().decode('latin-1')
        assert status == 200 and body, (path, status, body)
        return body

    def run(self):
        try:
            while not self.over.is_set():
                self._get(f'{self._folder}/part{self._first + self.parts}.mp4')
                self.parts += 1
        except (AssertionError, OSError, http.client.HTTPException) as error:
            self.wrong = error

    def check(self):
        self.over.set()
        self.join(2 * PATIENCE)
        assert not self.wrong and self.parts > 0, (self.wrong, self.parts)
        assert '#EXT-X-DISCONTINUITY\n' not in self._get(f'{self._folder}/live.m3u8')
        self._connection.close()
        print(f'# a player over HLS got {self.parts} parts, none was lost', flush=True)
