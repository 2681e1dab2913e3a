// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where the tracks of a session are sent from, and under which name the sinks know their reader.

#include <gst/rtsp-server/rtsp-server.h>

typedef struct {
  GstRTSPStreamTransport *transport; // NULL: of a stream that nobody plays
  GstRTSPStream *stream;             // the media's
  GstElement *sink;                  // the fanoutsink
  gchar *host;
  gint port;
} Place;

// Of those tracks that are set up and that the engine serves; to be freed with g_ptr_array_unref().
GPtrArray *places_new (GstRTSPSessionMedia *media);

// Of all streams of a media, in the name of a reader that there is not.
GPtrArray *places_new_for_media (GstRTSPMedia *media, const gchar *name);

gboolean place_is_video (const Place *self);
