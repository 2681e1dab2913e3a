# SPDX-License-Identifier: LGPL-2.1-or-later
"""For tests of BPF programs in network namespaces."""

import ctypes
import errno
import os
import select
import socket
import struct
import threading
import time

SO_RCVBUFFORCE = 33
SYS_BPF = {'x86_64': 321, 'aarch64': 280}.get(os.uname().machine)
PATIENCE = 60
libc = ctypes.CDLL(None, use_errno=True)


def inside(namespace, function):
    """Returns what `function` returns in a thread inside the namespace."""
    result = []

    def call():
        if libc.setns(namespace.descriptor, 0) != 0:
            raise OSError(ctypes.get_errno(), 'setns')
        result.append(function())

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return result[0]


def refuse_bpf(command, error=errno.EINVAL):
    """Makes the system call bpf fail for a command from now on: with EINVAL, as an old kernel does,
    or with another error."""
    program = b''.join(struct.pack('=HBBI', *line) for line in (
        (0x20, 0, 0, 0),            # load the number of the call
        (0x15, 0, 3, SYS_BPF),      # another: allow
        (0x20, 0, 0, 16),           # load the first argument
        (0x15, 0, 1, command),      # another: allow
        (0x06, 0, 0, 0x00050000 | error),
        (0x06, 0, 0, 0x7fff0000)))
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack('@HP', len(program) // 8, ctypes.addressof(buffer))
    libc.prctl(38, 1, 0, 0, 0)                  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, header, 0, 0) != 0:    # PR_SET_SECCOMP, a filter
        raise OSError(ctypes.get_errno(), 'seccomp')


def bpf_exists(kind, number):
    """Reports whether the system has the BPF object with this id."""
    commands = {'prog': 13, 'map': 14, 'link': 30}  # BPF_..._GET_FD_BY_ID
    attributes = (ctypes.c_uint32 * 32)(number)
    descriptor = libc.syscall(SYS_BPF, commands[kind], attributes, ctypes.sizeof(attributes))
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def without_tcx():
    """Makes this process run as on a kernel without tcx."""
    refuse_bpf(28)  # BPF_LINK_CREATE


def bpf_ids(process):
    """Returns (kind, id) of the BPF programs, links and maps that a process holds."""
    ids = set()
    for descriptor in os.listdir(f'/proc/{process.pid}/fdinfo'):
        try:
            with open(f'/proc/{process.pid}/fdinfo/{descriptor}', encoding='ascii') as f:
                fields = dict(line.split(':', 1) for line in f if ':' in line)
        except FileNotFoundError:
            continue # it is closed
        ids |= {(kind, int(fields[f'{kind}_id'])) for kind in ('prog', 'link', 'map')
                if f'{kind}_id' in fields}
    return ids


def numbers(line):
    fields = dict(field.split('=') for field in line.split())
    return {name: int(value) if value.isdigit() else value for name, value in fields.items()}


class Reader:
    def __init__(self, namespace, address, port):
        self.address, self.port = address, port
        self.socket = inside(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        self.socket.bind((address, port))
        self.socket.setblocking(False)
        self.got, self.sources = [], set()

    def read(self):
        while True:
            try:
                data, source = self.socket.recvfrom(65536)
            except BlockingIOError:
                return self.got
            self.got.append(data)
            self.sources.add(source)

    def await_packets(self, n):
        end = time.monotonic() + PATIENCE
        while len(self.read()) < n and time.monotonic() < end:
            select.select([self.socket], [], [], 0.1)
