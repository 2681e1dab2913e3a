// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The content that one RTSP connection asks for and uses. Call from the client's thread, where
// nothing else is said.

#include <gst/rtsp-server/rtsp-server.h>

#include "mounts/mounts.h"

typedef struct {
  GstRTSPClient *client; // which owns this
  Mounts *mounts;
  gchar *peer;         // "127.0.0.1:5004"
  Demand *demand;      // of the newest URL
  gchar *used;         // the URL of the content in use, without the track
  WeirLayerSet layers; // that the URL chooses
  gint64 delay_ns;     // that the URL asks for, or -1

  GMutex lock;
  Content *content; // in use, or NULL; guarded by the lock
} Asker;

void asker_init (Asker *self, GstRTSPClient *client, Mounts *mounts);
void asker_clear (Asker *self);

// Checks a DESCRIBE or SETUP before gst-rtsp-server handles it, so that the library neither makes
// media for a path that is not served nor waits for an upstream. Returns OK if the content is in
// use and ready, or else the status to answer. May put the request aside until the content is
// ready.
GstRTSPStatusCode asker_check (Asker *self, GstRTSPContext *ctx);

// Returns the path under which gst-rtsp-server knows the content of a URL, with the track (transfer
// full).
gchar *asker_make_path (Asker *self, const GstRTSPUrl *url);

// Replaces the content in use. Takes ownership of a reference to `content`, which may be NULL.
void asker_use (Asker *self, Content *content);

// Returns the content in use (transfer full), or NULL. Call from any thread.
Content *asker_dup_content (Asker *self);
