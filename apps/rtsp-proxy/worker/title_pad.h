// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The end of a title's track in a worker process: a pad whose packets and events go to the proxy.

#include <gst/gst.h>

#include "worker/title_outbox.h"

typedef struct _TitlePad TitlePad;

typedef struct {
  guint number;
  // WEIR_FRAGMENTS_H264 or …H265: the payloader gives a packet of any length for each NAL unit, and
  // the pad splits it. That costs far less than a buffer for each packet. 0: packets are as they
  // are.
  guint codec;
  guint mtu;           // bytes, with a codec
  TitleOutbox *outbox; // not owned; it has the track
  // Returns, for this track, what title_file_get_lead() says.
  GstClockTime (*get_lead) (gpointer owner, guint track);
  // The track begins to flush. Returns FALSE if nobody has asked for a seek.
  gboolean (*flushes) (gpointer owner, guint32 *serial);
  // The track has been read far from where it began, or the proxy takes it more slowly than that.
  void (*far) (gpointer owner);
  gpointer owner;
} TitlePadConfig;

// Returns a pad that is linked to `src`.
TitlePad *title_pad_new (const TitlePadConfig *config, GstPad *src);

// Sends an event to the track's elements. Takes ownership of `event`.
gboolean title_pad_push_event (TitlePad *self, GstEvent *event);

// Sends a gap, which lies at the start of the segment, if nothing of the track is kept. Takes no
// lock of the track's elements: the thread that reads the file may hold those without anything to
// send. Call from any thread.
void title_pad_fill_gap (TitlePad *self);

// Sets the MTU of a track with a codec. Call from any thread.
void title_pad_set_mtu (TitlePad *self, guint mtu);

// Call after the track's elements have stopped.
void title_pad_free (TitlePad *self);
