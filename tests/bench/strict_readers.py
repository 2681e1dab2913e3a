# SPDX-License-Identifier: LGPL-2.1-or-later
"""Players over HTTP that forgive nothing: ADDRESS PORT PATH,... READERS RATE SLICE ARRIVE SECONDS. Each
begins to play when a slice of SLICE seconds of its title has come, plays at RATE bits a second, and
never waits: a byte that comes after its time is late, and so are all behind it, until the server has
made up for the delay. They come within ARRIVE seconds, take the paths in turn, and stay for SECONDS
more. Prints REFUSED with the number of those who got 503, LATE with the number of late bytes, and LEAST
with the shortest time in s that a player had left to play."""

import select
import socket
import sys
import time


class Player:
    def __init__(self, address, path, rate, piece):
        self.rate, self.piece = rate / 8, piece  # bytes a second, bytes of a slice
        self.got, self.begun, self.late, self.least = 0, None, 0, float('inf')
        self.socket = socket.create_connection(address, timeout=20)
        self.socket.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            more = self.socket.recv(1)
            assert more, head
            head += more
        self.refused = head.startswith(b'HTTP/1.1 503 ')
        assert self.refused or head.startswith(b'HTTP/1.1 200 '), head
        self.socket.setblocking(False)

    def look(self, now):
        """Notes how much there is to play, before further bytes are taken. Returns the bytes played."""
        if self.begun is None:
            return 0
        played = (now - self.begun) * self.rate
        self.least = min(self.least, (self.got - played) / self.rate)
        return played

    def take(self, buffer, now):
        n = self.socket.recv_into(buffer)
        assert n > 0, 'the title has ended'
        self.late += int(min(max(self.look(now) - self.got, 0), n))
        self.got += n
        if self.begun is None and self.got >= self.piece:
            self.begun = now


def main():
    address, port, paths, *numbers = sys.argv[1:]
    paths = paths.split(',')
    readers, rate, slice_s, arrive, seconds = (float(word) for word in numbers)
    poll, players, buffer, came = select.epoll(), {}, bytearray(1 << 20), 0
    begin = time.monotonic()
    while (now := time.monotonic()) < begin + arrive + seconds:
        if came < readers and now >= begin + arrive * came / readers:
            player = Player((address, port), paths[came % len(paths)], rate, rate / 8 * slice_s)
            came += 1
            if not player.refused:
                players[player.socket.fileno()] = player
                poll.register(player.socket.fileno(), select.EPOLLIN)
        for fd, _ in poll.poll(0.02):
            players[fd].take(buffer, time.monotonic())
    for player in players.values():
        player.look(time.monotonic())
    print('REFUSED', came - len(players))
    print('LATE', sum(player.late for player in players.values()))
    print('LEAST', min((player.least for player in players.values()), default=0), flush=True)


main()
