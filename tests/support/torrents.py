# SPDX-License-Identifier: LGPL-2.1-or-later
"""Peers of tests: libtorrent's own, and one that misbehaves."""

import socket
import struct
import threading
import time

import libtorrent as lt

PATIENCE = 30  # s


class Peer:
    """A session of libtorrent that seeds, or downloads into `folder`. It has looked at the folder:
    before that, it refuses connections, and who was refused tries again only after seconds."""

    def __init__(self, torrent, folder, upload=0, connect=None):
        self.session = lt.session({
            'listen_interfaces': '127.0.0.1:0', 'enable_dht': False, 'enable_lsd': False,
            'enable_upnp': False, 'enable_natpmp': False, 'allow_multiple_connections_per_ip': True,
            'enable_incoming_utp': False, 'enable_outgoing_utp': False,
            'alert_mask': lt.alert.category_t.status_notification})
        info = lt.torrent_info(str(torrent))
        self.handle = self.session.add_torrent({'ti': info, 'save_path': str(folder)})
        if upload:
            self.handle.set_upload_limit(upload)
        self._wait_until_checked()
        if connect:
            self.handle.connect_peer(('127.0.0.1', connect))

    def _wait_until_checked(self):
        end = time.monotonic() + PATIENCE
        while not any(isinstance(alert, lt.torrent_checked_alert)
                      for alert in self.session.pop_alerts()):
            assert time.monotonic() < end, 'libtorrent has not checked the files in time'
            self.session.wait_for_alert(1000)

    @property
    def address(self):
        return f'127.0.0.1:{self.session.listen_port()}'

    def have(self):
        return self.handle.status().num_pieces

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.remove_torrent(self.handle)
        self.session.pause()


class BadPeer:
    """A peer that says it has all pieces, the first `has` of them, or nothing. It answers requests
    with wrong bytes ('lies'), not at all ('stalls'), or by closing the connection ('leaves'). With
    `rejects`, it says that it answers what it does not send (BEP 6). It begins to take requests at
    the event `unchokes`. `messages` has (number, body) of what came, number 20 that of extensions;
    `accepted` and `ended` count the connections, and `connection` is the last one."""

    def __init__(self, torrent, manner, rejects=False, has=None, unchokes=None):
        info = lt.torrent_info(str(torrent))
        self.hash = bytes.fromhex(str(info.info_hash()))
        self.pieces = info.num_pieces()
        self.has = self.pieces if has is None else has
        self.unchokes = unchokes
        self.manner = manner
        # It knows the messages of extensions (BEP 10).
        self.reserved = bytes(5) + b'\x10\0' + (b'\4' if rejects else b'\0')
        self.messages = []
        self.connection = None
        self.accepted = self.ended = 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f'127.0.0.1:{self.listener.getsockname()[1]}'

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    @staticmethod
    def _read(connection, n):
        data = b''
        while len(data) < n:
            part = connection.recv(n - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    def _serve(self, connection):
        with connection:
            try:
                self._talk(connection)
            except OSError:
                pass
        self.ended += 1

    def _unchoke(self, connection):
        if not self.unchokes or self.unchokes.wait(PATIENCE):
            connection.sendall(struct.pack('>IB', 1, 1))

    def _talk(self, connection):
        self._read(connection, 68)
        connection.sendall(b'\x13BitTorrent protocol' + self.reserved + self.hash
                           + f'-XX0000-{self.listener.getsockname()[1]:012}'.encode())
        if self.manner != 'empty':
            bits = int('1' * self.has + '0' * (self.pieces - self.has + -self.pieces % 8), 2)
            field = bits.to_bytes((self.pieces + 7) // 8, 'big')
            connection.sendall(struct.pack('>IB', 1 + len(field), 5) + field)
        self.connection = connection
        if self.unchokes:
            threading.Thread(target=self._unchoke, args=(connection,), daemon=True).start()
        else:
            self._unchoke(connection)
        while True:
            length, = struct.unpack('>I', self._read(connection, 4))
            if not length:
                continue
            body = self._read(connection, length)
            self.messages.append((body[0], body[1:]))
            if body[0] != 6:
                continue
            piece, start, n = struct.unpack('>III', body[1:])
            if self.manner == 'lies':
                connection.sendall(struct.pack('>IBII', 9 + n, 7, piece, start) + b'x' * n)
            elif self.manner == 'leaves':
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
