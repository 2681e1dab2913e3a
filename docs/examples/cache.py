#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads 25 MB from an intervalcache with 8 MiB of memory: one reader reads the first 5 MB over and
over, a second one everything. Prints the statistics for each policy: cache.py [POLICY ...]"""
import sys

import gi

gi.require_version('Gst', '1.0')
from gi.repository import Gst  # noqa: E402

N_BUFFERS, SIZE, FRAME = 300, 86400, Gst.SECOND // 30
N_OFTEN, PASSES = 60, 4


def fill(source):
    for n in range(N_BUFFERS):
        buffer = Gst.Buffer.new_wrapped(bytes(SIZE))
        buffer.pts, buffer.duration = n * FRAME, FRAME
        source.emit('push-buffer', buffer)


class Reader:
    def __init__(self, sink, length):
        self.sink, self.length, self.n = sink, length, 0

    def read(self):
        """Reads the next buffer, and goes back to the beginning after the last one."""
        assert self.sink.emit('pull-sample')
        self.n += 1
        if self.n == self.length:
            self.n = 0
            self.sink.seek_simple(Gst.Format.TIME, Gst.SeekFlags.FLUSH, 0)


def measure(policy):
    pipeline = Gst.parse_launch(
        'appsrc name=source format=time block=true ! '
        f'intervalcache name=cache policy={policy} spill-dir=/var/tmp spill-bytes=67108864 '
        'max-bytes=8388608 max-time=0 src_0::start=oldest src_1::start=oldest '
        'cache.src_0 ! appsink name=often sync=false max-buffers=1 '
        'cache.src_1 ! appsink name=all sync=false max-buffers=1')
    cache = pipeline.get_by_name('cache')
    pipeline.set_state(Gst.State.PLAYING)
    fill(pipeline.get_by_name('source'))
    readers = [Reader(pipeline.get_by_name('often'), N_OFTEN),
               Reader(pipeline.get_by_name('all'), N_BUFFERS)]
    for _ in range(PASSES * N_BUFFERS):
        for reader in readers:
            reader.read()
    stats = cache.get_property('stats')
    print(f'{policy:9} hit-ratio {stats.get_value("hit-ratio"):.2f}, read-from-file '
          f'{stats.get_value("read-from-file") / 1e6:.0f} MB')
    pipeline.set_state(Gst.State.NULL)


Gst.init(None)
for name in sys.argv[1:] or ['lru', 'lfu']:
    measure(name)
