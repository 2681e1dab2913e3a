// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A fanoutsink that sends to one multicast group.

#include <gst/gst.h>

typedef struct {
  const gchar *label; // of whose packets these are, for the log
  gchar group[64];    // address
  guint16 port;       // of track 0; track N is sent to port + 2 N
  guint ttl;
  const gchar *iface; // NULL: the system's choice
} MulticastAddress;

// Makes a sink (transfer full) that is to send track `track` to its port; the owner adds the group.
// Packets leave from the address that descriptions name, because clients join for it. Failures to
// send are logged. Returns NULL and sets `error` if GStreamer lacks the element.
GstElement *multicast_sink_new (const MulticastAddress *to, guint track, GError **error);

// Starts the sink, which is linked to `src`: opens its sockets, begins a stream of `caps`, and adds
// the group. Returns FALSE and sets `error` on failure.
gboolean multicast_sink_start (GstElement *sink, GstPad *src, GstCaps *caps,
    const MulticastAddress *to, guint track, GError **error);
