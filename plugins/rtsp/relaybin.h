// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stands in for `rtpbin` in a media that only sends (WEIR_TYPE_RELAY_MEDIA, weir_sender_bin_new()):
// it passes packets on, and sends a sender report behind the first packet of each second. It has
// the pads, properties and signals that GstRTSPStream uses, and neither a thread nor an RTP
// session. RTCP that comes to its pads is dropped.

#include <gst/gst.h>

#include "relaysession.h"

// Writes an RTCP report of the stream `index` to `out`, where `room` bytes are. Returns its length
// in bytes, or 0 for none. Called on the streaming thread, without a lock.
typedef gsize (*WeirRelayReportFunc) (
    gpointer data, guint index, const WeirRelayCounts *counts, guint8 *out, gsize room);

// Returns a new element (floating). `data` must be valid while the element is not in state NULL; if
// it is NULL, `report` gets the element. `may_block`: the pipeline is paused at times, so reports
// are pushed by a thread of GStreamer's pool.
GstElement *weir_relay_bin_new (WeirRelayReportFunc report, gpointer data, gboolean may_block);

gboolean weir_is_relay_bin (GstElement *element);

// Asks upstream for a keyframe of the stream `index`, if the RTCP packet says so. Call from any
// thread.
void weir_relay_bin_take_feedback (GstElement *self, guint index, const guint8 *data, gsize len);
