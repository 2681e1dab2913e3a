# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what a reader over TLS or with SRTP costs the proxy, beside readers over TCP and UDP."""

import contextlib
import os
import pathlib
import subprocess
import sys

from proc import Proc
from report import Column
from servers import BUILD, PORT, Origin, Weir

NAME = 'tls'
TITLE = 'readers over TCP, TLS (1.3, AES-256-GCM) and UDP of one stream, with and without SRTP'
CASE, WHO, YARDSTICK = 'stream, readers', 'transport', 'TCP'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU % a reader', '{:.3f}', spread=True),
    Column('all', 'CPU % in all'),
    Column('delivered', 'delivered %'),
    Column('memory', 'KiB a reader'),
)

TLS_PORT = 8322
KINDS = (('tcp', 'TCP'), ('tls', 'TLS'), ('tls-srtp', 'SRTP in TLS'), ('udp', 'UDP'),
         ('srtp', 'SRTP over UDP'))
READERS = 40
SECONDS = 20  # the length of the clip, whose rate varies
READER = pathlib.Path(__file__).with_name('tls_readers.py')


class Secure(Weir):
    def words(self, mounts):
        pem = os.path.join(self._folder.name, 'proxy.pem')
        subprocess.run([BUILD / 'apps/rtsp-proxy/rtsp-proxy', 'make-certificate', pem], check=True,
                       capture_output=True)
        self.whole = {'tls': {'listen': f'{self.address}:{TLS_PORT}', 'certificate': pem}}
        return super().words(mounts)


def one(rig, megabits, kind):
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin(rig, megabits))
        server = stack.enter_context(Secure(rig, {'s': origin.url}))
        before = server.usage()
        readers = stack.enter_context(
            Proc(*rig.readers, sys.executable, READER, kind, server.address,
                 PORT if kind in ('tcp', 'udp') else TLS_PORT, READERS, SECONDS))
        readers.wait_for_line('^PLAYING', timeout=60)
        begin = server.usage()
        got = int(readers.wait_for_line(r'^BYTES (\d+)', timeout=SECONDS + 20)[1])
        end = server.usage()
    cpu = 100 * (end.cpu - begin.cpu) / (end.at - begin.at)
    row = {'cpu': cpu / READERS, 'all': cpu, 'memory': (end.rss - before.rss) / 1024 / READERS}
    if got:
        row['delivered'] = 100 * got * 8 / (megabits * 1e6 * READERS * SECONDS)
    return row


def run(rig, quick):
    for megabits in 1, 4:
        for _ in range(1 if quick else 3):
            for kind, name in KINDS:
                yield f'{megabits} Mb/s, {READERS}', name, one(rig, megabits, kind)
