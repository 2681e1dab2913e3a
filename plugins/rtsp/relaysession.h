// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Stands in for the RTP session of a stream in relaybin.h: it has the properties and signals of one
// that GstRTSPStream uses. It never emits a signal, as reports.c keeps the RTSP sessions of readers
// alive. Call from any thread.

#include <gst/gst.h>

// Counts of a stream's packets, and its newest packet.
typedef struct {
  guint32 n_packets, n_octets; // of payload; they wrap
  guint32 ssrc, timestamp;     // of the newest packet
  gint64 arrival;              // of the newest packet, g_get_real_time()
  GstClockTime running;        // running time of the newest packet; GST_CLOCK_TIME_NONE: unknown
  gboolean ends;               // the stream has ended: no packets follow, unless it is sought
} WeirRelayCounts;

typedef struct _WeirRelaySession WeirRelaySession; // a GObject

WeirRelaySession *weir_relay_session_new (void);

// Counts the packets of a buffer that arrives at `now`, g_get_real_time(); there may be several
// (weir_buffer_set_packets()). Returns FALSE at one that is not RTP.
gboolean weir_relay_session_count (WeirRelaySession *self, GstBuffer *buffer, gint64 now);

// Sets the SSRC until the next packet.
void weir_relay_session_set_ssrc (WeirRelaySession *self, guint32 ssrc);

void weir_relay_session_get_counts (WeirRelaySession *self, WeirRelayCounts *counts);

// Returns the CNAME of all streams, which reports and descriptions have. Call from any thread.
const gchar *weir_relay_session_get_cname (void);
