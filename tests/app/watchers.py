# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers over TCP that lose no packet."""

import selectors
import struct
import threading

from control import Watch


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
