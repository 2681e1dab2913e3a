// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "reader_steps.h"

#include "load.h"
#include "reader_io.h"
#include "rtp/rtcp_write.h"

#define REPORT_NS (5 * INT64_C (1000000000))

gint64
reader_report_gap (Reader *self)
{
  return (gint64) (REPORT_NS * g_rand_double_range (self->load->random, 0.5, 1.5));
}

static void
claim_loss (const Reader *self, const Track *track, WeirRtcpBlock *block)
{
  gdouble loss = self->load->options->loss / 100;
  const WeirRtpStats *stats = &track->stats;

  if (loss < 0)
    return;
  if (!stats->started)
    block->ssrc = track->announced_ssrc;
  block->fraction_lost = (guint8) MIN (loss * 256, 255);
  block->lost =
      stats->started ? (gint32) MIN (loss * (stats->max_seq - stats->first_seq + 1), 0x7fffff) : 0;
}

void
reader_report (Reader *self, gint64 now)
{
  gchar cname[32];

  g_snprintf (cname, sizeof cname, "rtsp-load-%u", self->index);
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];
    WeirRtcpBlock block;
    guint8 packet[128];
    gsize len;

    track_report (track, now, &block);
    claim_loss (self, track, &block);
    len =
        weir_rtcp_write_rr (packet, sizeof packet, self->ssrc + i, &block, block.ssrc != 0, cname);
    reader_io_send_rtcp (self, track, packet, len);
  }
}
