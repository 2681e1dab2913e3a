#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adds a reader to a running intervalcache; after 3 s the reader reads the last 2 s again."""
import gi

gi.require_version('Gst', '1.0')
from gi.repository import GLib, Gst  # noqa: E402


def add_reader():
    pad = cache.request_pad_simple('src_%u')
    pad.set_property('start', 'join-point')  # before the pad is linked
    sink = Gst.ElementFactory.make('fakesink')
    sink.set_property('sync', False)
    pipeline.add(sink)
    sink.sync_state_with_parent()
    pad.link(sink.get_static_pad('sink'))
    return pad


def seek_back(pad):
    query = Gst.Query.new_seeking(Gst.Format.TIME)
    pad.query(query)
    _, _, oldest, newest = query.parse_seeking()  # the window, in ns of the cache's time
    target = max(oldest, newest - 2 * Gst.SECOND)
    pad.send_event(Gst.Event.new_seek(1.0, Gst.Format.TIME, Gst.SeekFlags.FLUSH,
                                      Gst.SeekType.SET, target, Gst.SeekType.NONE, 0))
    print('window', (newest - oldest) // Gst.MSECOND, 'ms, seek to', target // Gst.MSECOND, 'ms')


def print_statistics(pad):
    stats = pad.get_property('stats')
    print('in', stats.get_value('in'), 'out', stats.get_value('out'), 'buffers, behind',
          stats.get_value('behind') // Gst.MSECOND, 'ms', flush=True)
    return GLib.SOURCE_CONTINUE


def on_message(_bus, message):
    if message.type == Gst.MessageType.ERROR:
        error, debug = message.parse_error()
        print(message.src.get_name(), error.message, debug)
        loop.quit()
    elif message.type == Gst.MessageType.ELEMENT:
        fields = message.get_structure()
        if fields.get_name() == 'cache-miss':
            print('cache-miss', fields.get_value('pad'), fields.get_value('skipped'), 'skipped')


Gst.init(None)
pipeline = Gst.parse_launch(
    'videotestsrc is-live=true ! vp8enc deadline=1 keyframe-max-dist=30 '
    '! intervalcache name=cache max-time=20000000000')
cache = pipeline.get_by_name('cache')
loop = GLib.MainLoop()
bus = pipeline.get_bus()
bus.add_signal_watch()
bus.connect('message', on_message)
pipeline.set_state(Gst.State.PLAYING)
reader = add_reader()
GLib.timeout_add_seconds(1, print_statistics, reader)
GLib.timeout_add_seconds(3, seek_back, reader)
loop.run()
