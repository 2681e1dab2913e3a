// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "track.h"

#define STALL_NS (500 * INT64_C (1000000))

static gint64
ticks_to_ns (const Track *self, gint64 ticks)
{
  gint64 rate = self->clock_rate;

  return ticks / rate * 1000000000 + ticks % rate * 1000000000 / rate;
}

static gint64
ntp_to_ns (guint64 ntp)
{
  return (gint64) ((ntp >> 32) * 1000000000 + (((ntp & G_MAXUINT32) * 1000000000) >> 32));
}

static void
begin_stream (Track *self, guint32 timestamp, gint64 arrival_ns)
{
  self->restarts = self->stats.restarts;
  self->first_ts = self->last_ts = self->max_ts = timestamp;
  self->first_transit_ns = arrival_ns;
  self->frame_ns = arrival_ns;
  self->frame_gap_ns = 0;
  self->late_known = FALSE;
  self->map.known = self->map.known && self->map.ssrc == self->stats.ssrc;
  if (self->first_ns == 0)
    self->first_ns = arrival_ns;
}

static void
note_frame (Track *self, Results *results, gint64 ts, gint64 arrival_ns)
{
  gint64 gap = arrival_ns - self->frame_ns;

  self->frame_gap_ns = ts > self->max_ts ? ticks_to_ns (self, ts - self->max_ts) : 0;
  self->last_ts = ts;
  self->max_ts = MAX (self->max_ts, ts);
  self->n_frames++;
  self->frame_ns = arrival_ns;
  if (self->video) {
    weir_histogram_add (&results->frame_gap, gap);
    self->stalls += gap > self->frame_gap_ns + STALL_NS;
  }
  if (self->map.known) {
    gint32 ticks = (gint32) ((guint32) ts - self->map.timestamp);

    self->late_ns = arrival_ns - ntp_to_ns (self->map.ntp) - ticks_to_ns (self, ticks);
    self->late_known = TRUE;
  }
}

static void
measure (Track *self, Results *results, const WeirRtp *rtp, WeirRtpArrival how, gint64 arrival_ns)
{
  gint64 nearest = self->max_ts, ts, late;

  if (self->first_ns == 0 || self->restarts != self->stats.restarts) {
    begin_stream (self, rtp->timestamp, arrival_ns);
    return;
  }
  ts = weir_unwrap32 (&nearest, rtp->timestamp);
  late = arrival_ns - ticks_to_ns (self, ts - self->first_ts) - self->first_transit_ns;
  self->playout_ns = MAX (self->playout_ns, late);
  if (how == WEIR_RTP_NEWEST && ts != self->last_ts)
    note_frame (self, results, ts, arrival_ns);
}

static void
find_first_frame (Track *self, const WeirRtp *rtp, const guint8 *data, gint64 arrival_ns)
{
  WeirLayer layer;

  if (!self->video || self->first_frame_ns)
    return;
  if (weir_layers_read (&self->layers, data + rtp->payload_offset, rtp->payload_length, &layer)
      && layer.keyframe)
    self->first_frame_ns = arrival_ns;
}

void
track_rtp (Track *self, Results *results, const WeirRtp *rtp, const guint8 *data, gsize len,
    gint64 arrival_ns)
{
  WeirRtpArrival how = weir_rtp_stats_add (&self->stats, rtp, arrival_ns);

  self->bytes += len;
  if (!results || how == WEIR_RTP_DUPLICATE)
    return;
  measure (self, results, rtp, how, arrival_ns);
  find_first_frame (self, rtp, data, arrival_ns);
}

void
track_rtcp (Track *self, const guint8 *data, gsize len, gint64 arrival_ns)
{
  WeirNtpMap map;

  if (weir_rtcp_find_sr (data, len, &map) != 0)
    return;
  self->map = map;
  self->map_ns = arrival_ns;
}

void
track_end (Track *self, Results *results, gint64 now)
{
  if (self->first_ns == 0)
    return;
  if (now && self->video && now - self->frame_ns > self->frame_gap_ns + STALL_NS)
    self->stalls++;
  weir_histogram_add (&results->jitter, weir_rtp_stats_jitter_ns (&self->stats));
  weir_histogram_add (&results->playout_delay, self->playout_ns);
}

void
track_report (Track *self, gint64 now, WeirRtcpBlock *out)
{
  weir_rtp_stats_report (&self->stats, out);
  if (self->map.known && self->map_ns) {
    out->last_sr = (guint32) (self->map.ntp >> 16);
    out->delay_sr = (guint32) ((now - self->map_ns) / 1000 * 65536 / 1000000);
  }
}
