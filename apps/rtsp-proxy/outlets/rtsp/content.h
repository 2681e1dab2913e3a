// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What an RTSP client plays: a live presentation with its RTSP media, or a stored title. It is in
// use as long as a reference exists. Reference counted; call from any thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "mounts/mounts.h"
#include "outlets/rtsp/live_media.h"

typedef struct {
  Presentation *presentation; // shared by the clients that request the same path; or NULL
  LiveMedia *live;            // of the presentation; NULL if it is being withdrawn
  Title *title;               // the client's own, or NULL
} Content;

// Starts or joins the target of a request. `points` has the media of presentations. Returns NULL
// and sets `error` on failure, see mounts_use() and mounts_open_title(). (transfer full)
Content *content_new (GstRTSPMountPoints *points, const Resolved *target, GError **error);
Content *content_ref (Content *self);
void content_unref (Content *self);

// Reports whether the content is the target. `self` may be NULL.
gboolean content_is (const Content *self, const Resolved *target);

// Returns the state. Sets `error` if it is DOWN.
PresentationState content_ask (Content *self, GError **error);

// Calls `done` once: at once if the content is not starting, else when its start has succeeded or
// failed. Only one caller may wait for a title at a time. Call with no lock held.
void content_wait (Content *self, PresentationDoneFunc done, gpointer data);

// From now on gst-rtsp-server holds the media, for the client or for a session.
void content_hand_over (Content *self);

const gchar *content_get_path (const Content *self); // the mount's path, or a path below it
const gchar *content_get_mount_path (const Content *self);
const gchar *content_get_label (const Content *self); // for the log; "?" if `self` is NULL
