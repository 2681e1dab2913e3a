// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a connection asks for, and what it uses of that. In the client's thread, but for what says
// otherwise.

#include <gst/rtsp-server/rtsp-server.h>

#include "mounts/mounts.h"

typedef struct {
  GstRTSPClient *client; // whose part it is
  Mounts *mounts;
  gchar *peer;         // "127.0.0.1:5004"
  Demand *demand;      // of the request at hand
  gchar *used;         // the URL that began what is in use, without the track
  WeirLayerSet layers; // that its URLs choose
  gint64 delay_ns;     // that its URL asks for, or -1

  GMutex lock;
  Content *content; // in use, or NULL
} Asker;

void asker_init (Asker *self, GstRTSPClient *client, Mounts *mounts);
void asker_clear (Asker *self);

// Before the library looks at a DESCRIBE or a SETUP, so that neither can build anything for a path
// that is not served, nor wait inside of the library for an upstream: what is asked for is in use
// and ready, or this is what to answer. The request may be put aside.
GstRTSPStatusCode asker_check (Asker *self, GstRTSPContext *ctx);

// The path under which the library knows what is asked for, with the track.
gchar *asker_make_path (Asker *self, const GstRTSPUrl *url);

// Uses this, which is taken over, in place of what it used; NULL: nothing.
void asker_use (Asker *self, Content *content);

// A reference to what it uses, or NULL. Any thread.
Content *asker_dup_content (Asker *self);
