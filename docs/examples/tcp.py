#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Serves a test picture to TCP clients, as RTP packets with a two-byte length: tcp.py [PORT]"""
import sys

import gi

gi.require_version('Gst', '1.0')
from gi.repository import Gio, GLib, Gst  # noqa: E402

FRAMING_RFC4571 = 1


def on_connection(listener, result):
    socket, _ = listener.accept_socket_finish(result)
    token = sink.emit('add-socket', socket, FRAMING_RFC4571, 0)
    print('added', token, flush=True)
    listener.accept_socket_async(None, on_connection)


def on_removed(_sink, token, channel):
    stats = sink.emit('get-stats', token, channel)
    print('removed', token, 'packets-sent', stats.get_value('packets-sent'), flush=True)


Gst.init(None)
pipeline = Gst.parse_launch(
    'videotestsrc is-live=true ! vp8enc deadline=1 keyframe-max-dist=30 ! rtpvp8pay '
    '! fanoutsink name=sink join=keyframe')
sink = pipeline.get_by_name('sink')
sink.connect('client-removed', on_removed)
server = Gio.SocketListener.new()
server.add_inet_port(int(sys.argv[1]) if len(sys.argv) > 1 else 5555, None)
server.accept_socket_async(None, on_connection)
pipeline.set_state(Gst.State.PLAYING)
GLib.MainLoop().run()
