// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the content that an RTSP connection requests, and holds the content that it uses. Call from
// the client's thread only, unless the function says otherwise.

#include <gst/rtsp-server/rtsp-server.h>

#include "access/access.h"
#include "mounts/mounts.h"
#include "outlets/rtsp/content.h"

typedef struct {
  GstRTSPClient *client; // the owner of this structure
  Mounts *mounts;
  Access *access;
  gchar *peer;                // "127.0.0.1:5004"
  gchar *url;                 // the last URL; it may contain a token
  AccessPeer *visitor;        // the connection, for the door
  AccessCase *asked;          // of the last request that the door was asked about, or NULL
  gboolean waits_for_content; // the request that is put aside waits for this, not for the door
  Demand *demand;             // of `url`
  gchar *token;               // of the last URL that had one, or NULL
  gchar *used;                // the URL of the content in use, without the track
  WeirLayerSet layers;        // chosen by the URL
  gint64 delay_ns;            // requested by the URL, or -1
  gchar *full;                // why the answer to come is 453, or NULL

  LiveMedia *live; // of the content in use; NULL for a title

  GMutex lock;
  Content *content; // in use, or NULL; use with `lock` held
} Asker;

void asker_init (Asker *self, GstRTSPClient *client, Mounts *mounts, Access *access);
void asker_clear (Asker *self);

// Returns the demand of a URL; valid until the next call.
const Demand *asker_get_demand (Asker *self, const GstRTSPUrl *url);

// Checks an admitted DESCRIBE or SETUP for `url` before gst-rtsp-server handles it, so that the
// library neither makes media for an unknown path nor waits for an upstream. Returns OK if the
// content is in use and ready, else the status to answer. May put the request aside until the
// content is ready.
GstRTSPStatusCode asker_check (Asker *self, GstRTSPContext *ctx, const GstRTSPUrl *url);

// Puts the reason into an answer of status 453.
void asker_explain (Asker *self, GstRTSPContext *ctx);

// Logs a SETUP that gst-rtsp-server refuses with 461 because the stream has no UDP ports, and puts
// the reason into the answer. Has no effect if the stream has ports.
void asker_explain_ports (Asker *self, GstRTSPContext *ctx);

// Logs that a request was answered with 454.
void asker_note_session (Asker *self, GstRTSPContext *ctx);

// Returns the path by which gst-rtsp-server knows the content of a URL, with the track. (transfer
// full)
gchar *asker_make_path (Asker *self, const GstRTSPUrl *url);

// Replaces the content in use. Takes ownership of a reference to `content`, which may be NULL.
void asker_use (Asker *self, Content *content);

// Hands the media of the content in use over: from now on gst-rtsp-server holds it, for the client
// or for a session.
void asker_hand_over (Asker *self);

// Returns the content in use (transfer full), or NULL. Call from any thread.
Content *asker_dup_content (Asker *self);
