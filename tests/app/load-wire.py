# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-load's counts match to the packet what the kernel saw on the wire.

Runs in its own network namespace, where no other traffic is. Needs root.
"""

import ctypes
import os
import socket
import struct
import subprocess
import threading

from loads import check, load
from proxy import CLIP, Origin, Proxy
from tap import Skip, run, test

CLONE_NEWNET = 0x40000000
SOL_PACKET, PACKET_STATISTICS, PACKET_VNET_HDR = 263, 6, 15
ETH_P_IP = 0x0800
VNET_HEADER, ETHERNET, UDP, RTP = 10, 14, 8, 12


def enter_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise Skip(f'no network namespace: {os.strerror(ctypes.get_errno())}')
    try:
        subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    except FileNotFoundError:
        raise Skip('needs ip (iproute2)') from None


class Sniffer:
    """Counts the datagrams that arrive at each UDP port, and their bytes."""

    def __init__(self):
        self.packets, self.bytes = {}, {}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        # Gives the number of segments into which a packet will be cut.
        self._socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(('lo', 0))
        self._socket.settimeout(0.2)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            try:
                data, address = self._socket.recvfrom(1 << 17)
            except TimeoutError:
                if self._done.is_set():
                    return
                continue
            if address[2] == socket.PACKET_HOST:
                self._take(data)

    def _take(self, data):
        segment = struct.unpack_from('=H', data, 4)[0]
        packet = data[VNET_HEADER + ETHERNET:]
        if packet[9] != socket.IPPROTO_UDP:
            return
        header = (packet[0] & 15) * 4
        port = struct.unpack_from('>H', packet, header + 2)[0]
        size = struct.unpack_from('>H', packet, 2)[0] - header - UDP
        number = -(-size // segment) if segment else 1
        self.packets[port] = self.packets.get(port, 0) + number
        self.bytes[port] = self.bytes.get(port, 0) + size

    def stop(self):
        """Stops after the last waiting packet."""
        self._done.set()
        self._thread.join()
        missed = struct.unpack('II', self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self._socket.close()
        assert missed == 0, f'the sniffer missed {missed}'


def check_wire(url, readers):
    sniffer = Sniffer()
    result = load('--readers', readers, '--duration', 3, '--verbose', url)
    sniffer.stop()
    check(result, connected=readers, lost=0, reordered=0, duplicates=0, invalid=0, socket_drops=0)
    for reader in result['per_reader']:
        for track in reader['tracks']:
            port = track['port']
            assert track['packets'] == sniffer.packets[port] > 50, (track, sniffer.packets[port])
            assert track['bytes'] == sniffer.bytes[port], (track, sniffer.bytes[port])


@test
def counts_match_the_wire_with_another_server():
    enter_namespace()
    with Origin() as origin:
        check_wire(origin.url, 10)


@test
def counts_match_the_wire_with_segmented_sends():
    enter_namespace()
    with Proxy(('--mount', f'/demo=file://{CLIP}')) as proxy:
        check_wire(proxy.url('/demo'), 10)


if __name__ == '__main__':
    run(at_once=2)
