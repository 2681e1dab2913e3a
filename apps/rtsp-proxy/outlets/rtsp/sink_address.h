// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The fanoutsink of each track of a session, and the host and port by which the sink knows the
// session's reader.

#include <gst/rtsp-server/rtsp-server.h>

typedef struct {
  GstRTSPStreamTransport *transport; // NULL from sink_addresses_new_for_media()
  GstRTSPStream *stream;             // owned by the media
  GstElement *sink;                  // the fanoutsink
  gchar *host;
  gint port;
} SinkAddress;

// Returns a SinkAddress for each track that is set up and that a fanoutsink serves (transfer full).
GPtrArray *sink_addresses_new (GstRTSPSessionMedia *media);

// Returns a SinkAddress for each stream of the media that has a fanoutsink (transfer full), with
// `name` as the host and port 0. No reader has that address.
GPtrArray *sink_addresses_new_for_media (GstRTSPMedia *media, const gchar *name);

gboolean sink_address_is_video (const SinkAddress *self);
