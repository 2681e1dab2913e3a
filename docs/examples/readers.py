#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sends a test picture to readers on this machine, delays the first one by 2 s, and prints the
statistics: readers.py [READERS [SECONDS]]"""
import socket
import sys

import gi

gi.require_version('Gst', '1.0')
from gi.repository import Gst  # noqa: E402

DELAY = 2 * Gst.SECOND
n_readers = int(sys.argv[1]) if len(sys.argv) > 1 else 500
seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 10


def show(title, stats):
    print(title)
    for name in map(stats.nth_field_name, range(stats.n_fields())):
        is_array, _ = stats.get_array(name)
        if not is_array:
            print(f'  {name:20} {stats.get_value(name)}')


def wait(time):
    pipeline.get_bus().timed_pop_filtered(int(time * Gst.SECOND), Gst.MessageType.ERROR)


# Each reader is a UDP socket. Nobody reads from it: the kernel drops what does not fit.
readers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(n_readers)]
for reader in readers:
    reader.bind(('127.0.0.1', 0))
ports = [reader.getsockname()[1] for reader in readers]

Gst.init(None)
pipeline = Gst.parse_launch(
    'videotestsrc is-live=true ! vp8enc deadline=1 keyframe-max-dist=30 target-bitrate=1000000 '
    '! rtpvp8pay ! fanoutsink name=sink window-time=10000000000')
sink = pipeline.get_by_name('sink')
sink.set_property('clients', ','.join(f'127.0.0.1:{port}' for port in ports))
pipeline.set_state(Gst.State.PLAYING)
wait(seconds / 2)
sink.emit('set-delay', '127.0.0.1', ports[0], DELAY)  # the window now goes back that far
wait(seconds / 2)
show('all readers', sink.get_property('fanout-stats'))
show('the delayed reader', sink.emit('get-stats', '127.0.0.1', ports[0]))
pipeline.set_state(Gst.State.NULL)
