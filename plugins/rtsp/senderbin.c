// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relaybin.h"

#include "rtp/rtcp_write.h"
#include "weir-rtsp.h"

// Returns the wall-clock time in ns at which a packet with this running time leaves.
static guint64
find_time (GstElement *bin, const WeirRelayCounts *counts)
{
  GstClock *clock = gst_element_get_clock (bin);
  gint64 unix_ns = counts->arrival * 1000;

  if (clock && GST_CLOCK_TIME_IS_VALID (counts->running))
    unix_ns = g_get_real_time () * 1000
              + (gint64) (gst_element_get_base_time (bin) + counts->running)
              - (gint64) gst_clock_get_time (clock);
  gst_clear_object (&clock);
  return (guint64) MAX (unix_ns, 0);
}

static gsize
write_report (gpointer bin, guint index, const WeirRelayCounts *counts, guint8 *out, gsize room)
{
  WeirNtpMap at = { .known = TRUE, .timestamp = counts->timestamp, .ssrc = counts->ssrc };
  gsize len;

  at.ntp = weir_ntp_from_unix ((gint64) find_time (bin, counts));
  len = weir_rtcp_write_sr (
      out, room, &at, counts->n_packets, counts->n_octets, weir_relay_session_get_cname ());
  if (len > 0 && counts->ends)
    len += weir_rtcp_write_bye (out + len, room - len, counts->ssrc);
  return len;
}

GstElement *
weir_sender_bin_new (void)
{
  return weir_relay_bin_new (write_report, NULL, TRUE);
}
