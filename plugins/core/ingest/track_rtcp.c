// SPDX-License-Identifier: LGPL-2.1-or-later

// A track's RTCP: reads sender reports and BYE, writes receiver reports and keyframe requests.

#include <errno.h>

#include "ingest/track_private.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtcp_write.h"
#include "run/random.h"

#define INTERVALS_HEARD 5 // a sender silent for so many report intervals has left (RFC 3550, 6.3.5)

// ---- reading ----

static bool
is_stopped (const WeirTrack *self)
{
  return atomic_load_explicit (&self->stopped, memory_order_relaxed);
}

static void
pass_report (WeirTrack *self)
{
  WeirNtpMap map = self->waiting;

  self->stats.ntp = map;
  self->waiting.known = false;
  if (self->settings.steady) {
    map.ssrc = self->steady.ssrc;
    map.timestamp = weir_steady_timestamp (&self->steady, map.timestamp);
  }
  if (self->ops->report && !is_stopped (self))
    self->ops->report (self->data, &map);
}

static void
take_sender_report (WeirTrack *self, const WeirNtpMap *map, int64_t now_ns)
{
  self->waiting = *map;
  self->reported_ns = now_ns;
  if (self->begun && map->ssrc == self->stats.ssrc)
    pass_report (self);
}

// Finds the report on the stream that comes, or if there is none, one on a stream that may come.
static bool
find_sender_report (const WeirTrack *self, const uint8_t *data, size_t len, WeirNtpMap *map)
{
  return (self->begun && weir_rtcp_find_sr_of (data, len, self->stats.ssrc, map) == 0)
         || weir_rtcp_find_sr (data, len, map) == 0;
}

static void
take_bye (WeirTrack *self, uint32_t ssrc)
{
  if (!self->begun || ssrc != self->stats.ssrc)
    return;
  self->stats.bye = true;
  if (self->ops->bye && !is_stopped (self))
    self->ops->bye (self->data);
}

void
weir_track_read_rtcp (
    WeirTrack *self, const WeirAddress *from, const uint8_t *data, size_t len, int64_t now_ns)
{
  WeirRtcpReport report;
  WeirNtpMap map;
  int result = weir_rtcp_read (data, len, &report);

  if (result == -EBADMSG) {
    weir_track_drop (self, WEIR_INGEST_MALFORMED);
    return;
  }
  self->stats.rtcp++;
  if (from) {
    self->peer_known = true;
    self->peer = *from;
  }
  if (find_sender_report (self, data, len, &map))
    take_sender_report (self, &map, now_ns);
  if (result == 0 && report.bye)
    take_bye (self, report.ssrc);
}

// RTCP may come from any port of the sender's host.
static bool
admits (const WeirTrack *self, const WeirAddress *from)
{
  if (!from)
    return true;
  if (self->settings.host_known && !weir_track_same_host (from, &self->settings.host))
    return false;
  return !self->locked || weir_track_same_host (from, &self->sender);
}

void
weir_track_take_rtcp (
    WeirTrack *self, const WeirAddress *from, const uint8_t *data, size_t len, int64_t now_ns)
{
  self->stats.datagrams++;
  self->stats.bytes += len;
  if (!admits (self, from))
    weir_track_drop (self, WEIR_INGEST_FOREIGN);
  else if (!weir_rtp_is_rtcp (data, len))
    weir_track_drop (self, WEIR_INGEST_MALFORMED);
  else
    weir_track_read_rtcp (self, from, data, len, now_ns);
}

// ---- times ----

// Returns 0.5 to 1.5 times the interval, so that receivers do not report in step (RFC 3550, 6.2).
static int64_t
next_interval (WeirTrack *self)
{
  int64_t interval_ns = self->settings.report_interval_ns;

  return interval_ns / 2 + interval_ns / 1024 * (weir_random_draw (&self->random) % 1024);
}

void
weir_track_note_packet (WeirTrack *self, int64_t now_ns)
{
  if (self->report_due_ns == WEIR_NEVER && self->settings.report_interval_ns > 0)
    self->report_due_ns = now_ns + next_interval (self) / 2;
  if (self->waiting.known && self->waiting.ssrc == self->stats.ssrc)
    pass_report (self);
}

int64_t
weir_track_due (const WeirTrack *self)
{
  int64_t due_ns = weir_reorder_due (&self->reorder);

  if (self->report_due_ns < due_ns)
    due_ns = self->report_due_ns;
  return self->key_asked ? INT64_MIN : due_ns;
}

// ---- writing ----

void
weir_track_ask_key (WeirTrack *self)
{
  self->key_asked = true;
}

const WeirAddress *
weir_track_rtcp_to (const WeirTrack *self)
{
  if (self->settings.rtcp_to_known)
    return &self->settings.rtcp_to;
  if (self->peer_known)
    return &self->peer;
  return self->settings.rtcp_mux && self->locked ? &self->sender : NULL;
}

static void
set_report_due (WeirTrack *self, int64_t now_ns)
{
  self->report_due_ns = now_ns + next_interval (self);
  if (now_ns - self->stats.heard_ns > INTERVALS_HEARD * self->settings.report_interval_ns)
    self->report_due_ns = WEIR_NEVER;
}

static size_t
write_report (WeirTrack *self, int64_t now_ns, uint8_t *out)
{
  const WeirTrackSettings *settings = &self->settings;
  bool any = self->packets_accepted != self->packets_reported;
  WeirRtcpBlock block;

  self->packets_reported = self->packets_accepted;
  if (any)
    weir_rtp_stats_report (&self->rtp_stats, &block);
  if (any && self->stats.ntp.known && self->stats.ntp.ssrc == block.ssrc) {
    uint64_t since_ns = (uint64_t) (now_ns - self->reported_ns);

    block.last_sr = (uint32_t) (self->stats.ntp.ntp >> 16);
    block.delay_sr = (uint32_t) (since_ns / 1000000000 << 16)
                     + (uint32_t) ((since_ns % 1000000000 << 16) / 1000000000);
  }
  self->stats.reports_sent++;
  return weir_rtcp_write_rr (
      out, WEIR_TRACK_RTCP_MAX, settings->ssrc, &block, any, settings->cname);
}

static size_t
write_key_request (WeirTrack *self, uint8_t *out, size_t room)
{
  self->stats.keys_asked++;
  if (self->settings.key == WEIR_KEY_FIR)
    return weir_rtcp_write_fir (out, room, self->settings.ssrc, self->stats.ssrc, self->fir_seq++);
  return weir_rtcp_write_pli (out, room, self->settings.ssrc, self->stats.ssrc);
}

size_t
weir_track_write_rtcp (WeirTrack *self, int64_t now_ns, uint8_t *out)
{
  bool report = now_ns >= self->report_due_ns;
  bool key = self->key_asked && self->begun && self->settings.key != WEIR_KEY_NONE;
  size_t len;

  self->key_asked = false;
  if (report)
    set_report_due (self, now_ns);
  if ((!report && !key) || (!self->settings.interleaved && !weir_track_rtcp_to (self)))
    return 0;
  if (report)
    len = write_report (self, now_ns, out);
  else // between two regular reports: without a block
    len = weir_rtcp_write_rr (
        out, WEIR_TRACK_RTCP_MAX, self->settings.ssrc, NULL, 0, self->settings.cname);
  if (key)
    len += write_key_request (self, out + len, WEIR_TRACK_RTCP_MAX - len);
  return len;
}
