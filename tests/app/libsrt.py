# SPDX-License-Identifier: LGPL-2.1-or-later
"""An SRT caller that tells why it was refused: libsrt by its C interface."""

import ctypes
import ctypes.util
import socket
import struct
from functools import lru_cache

from tap import Skip

RCVSYN, PASSPHRASE, CONNECT_TIMEOUT, STREAM_ID = 2, 26, 36, 46
BAD_SECRET, UNSECURE = 10, 11
BROKEN = 6


@lru_cache
def library():
    for name in 'srt-gnutls', 'srt':
        path = ctypes.util.find_library(name)
        if path:
            lib = ctypes.CDLL(path)
            lib.srt_startup()
            lib.srt_setloglevel(2)
            return lib
    raise Skip('libsrt is missing')


class Caller:
    """Calls, and has `reason`: None, or the code with which the listener refused it."""

    def __init__(self, port, stream_id=None, passphrase=None):
        self.lib = library()
        self.socket = self.lib.srt_create_socket()
        for option, value in (STREAM_ID, stream_id), (PASSPHRASE, passphrase):
            if value is not None:
                value = value if isinstance(value, bytes) else value.encode()
                assert self.lib.srt_setsockflag(self.socket, option, value, len(value)) == 0, value
        timeout = ctypes.c_int(10000)
        self.lib.srt_setsockflag(self.socket, CONNECT_TIMEOUT, ctypes.byref(timeout), 4)
        address = struct.pack('=H', socket.AF_INET) + struct.pack('>H4s8x', port, socket.inet_aton('127.0.0.1'))
        self.reason = None
        if self.lib.srt_connect(self.socket, address, len(address)) < 0:
            self.reason = self.lib.srt_getrejectreason(self.socket)

    def send(self, data):
        return self.lib.srt_sendmsg(self.socket, data, len(data), -1, 0)

    def is_open(self):
        return self.lib.srt_getsockstate(self.socket) < BROKEN

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.lib.srt_close(self.socket)
