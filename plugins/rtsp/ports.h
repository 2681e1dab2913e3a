// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The UDP sockets of a stream.

#include "weir-rtsp.h"

// Opens the sockets that gst-rtsp-server needs to serve a stream to readers over UDP, and for the
// sinks of readers over TCP: for IPv4, and with `ipv6` for IPv6 too. Has no effect if the stream
// has sockets. If no ports are free, the stream gets sockets that only make the sinks possible, and
// is offered over TCP only; see weir_stream_is_tcp_only(). Returns FALSE if it gets no sockets at
// all. Never waits; tries a bounded number of ports.
gboolean weir_ports_open (GstRTSPStream *stream, gboolean ipv6);
