# SPDX-License-Identifier: LGPL-2.1-or-later
"""A line between a publisher and an RTSP server that sends the first 0.6 s at once. FFmpeg from 6.1 on sends 0.5 s."""

import socket
import struct
import threading
import time

AHEAD = 0.6 # s
RATE = 90000 # Hz, of the track on channel 0


class Burst:
    """Passes on what one publisher that does not wait sends over TCP, AHEAD of its own time. The
    context's value is the port to publish to."""

    def __init__(self, port):
        self.target, self.begun = ('127.0.0.1', port), None
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.sockets = [self.listener]

    def __enter__(self):
        threading.Thread(target=self.run, daemon=True).start()
        return self.listener.getsockname()[1]

    def __exit__(self, *_):
        for each in self.sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError: # its peer has left, or it never had one
                pass
            each.close()

    def run(self):
        try:
            publisher = self.listener.accept()[0]
            server = socket.create_connection(self.target)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets += [publisher, server]
            threading.Thread(target=self.copy, args=(server, publisher), daemon=True).start()
            with publisher.makefile('rb') as file:
                while piece := self.read(file):
                    server.sendall(piece)
            server.shutdown(socket.SHUT_RDWR)
        except OSError: # one of them has left
            pass

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass

    def read(self, file):
        """Reads a line of a request, some of its body, or a packet when its time has come."""
        first = file.peek(1)[:1]
        if first != b'$':
            return file.readline(4096)
        head = file.read(4)
        data = file.read(struct.unpack('>H', head[2:])[0])
        if head[1] == 0:
            self.wait(struct.unpack('>I', data[4:8])[0])
        return head + data

    def wait(self, stamp):
        now = time.monotonic()
        if self.begun is None:
            self.begun = now - AHEAD, stamp
        at, first = self.begun
        time.sleep(max(at + (stamp - first) % 2 ** 32 / RATE - now, 0))
