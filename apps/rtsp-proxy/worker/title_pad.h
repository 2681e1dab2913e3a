// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The end of a title's track in a worker process: a pad whose packets and events go to the proxy,
// over the track's socket. While the socket is full, the track waits.

#include <gst/gst.h>

typedef struct _TitlePad TitlePad;

typedef struct {
  guint number;
  gint socket; // taken by the pad
  // Returns, for this track, what title_file_get_lead() says.
  GstClockTime (*get_lead) (gpointer owner, guint track);
  // The track begins to flush. Returns FALSE if nobody has asked for a seek.
  gboolean (*flushes) (gpointer owner, guint32 *serial);
  gpointer owner;
} TitlePadConfig;

// Returns a pad that is linked to `src`, or NULL if the system has no descriptors left.
TitlePad *title_pad_new (const TitlePadConfig *config, GstPad *src);

// Sends an event to the track's elements. Takes ownership of `event`.
gboolean title_pad_push_event (TitlePad *self, GstEvent *event);

// Ends the wait for the socket; nothing more is sent.
void title_pad_stop (TitlePad *self);

// Call after the track's elements have stopped.
void title_pad_free (TitlePad *self);
