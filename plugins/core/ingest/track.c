// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/track_private.h"

#include <string.h>

#define MS INT64_C (1000000)
#define SILENCE (1000 * MS)         // default of settings.silence_ns
#define SAME_HOST_SILENCE (50 * MS) // the sender's program may have been restarted
#define OTHER_SSRC_SILENCE (100 * MS)
#define BESIDE (500 * MS) // an SSRC that was heard within this time sends beside the other one
#define NUMBERS_GO_ON 100 // packets missing at most
// Packets; further behind, a packet that was received before can't be told from a late one.
#define FAR_BEHIND WEIR_RTP_STATS_WINDOW

void
weir_track_init (
    WeirTrack *self, const WeirTrackSettings *settings, const WeirTrackOps *ops, void *data)
{
  *self = (WeirTrack) {
    .settings = *settings,
    .ops = ops,
    .data = data,
    .probe_seq = -1,
    .beside_probe = -1,
    .report_due_ns = WEIR_NEVER,
    .random = settings->ssrc | 1,
  };
  if (self->settings.silence_ns == 0)
    self->settings.silence_ns = SILENCE;
  weir_rtp_stats_init (&self->rtp_stats, settings->clock_rate);
  weir_reorder_init (&self->reorder, &settings->reorder);
  weir_steady_init (&self->steady, settings->clock_rate);
}

void
weir_track_clear (WeirTrack *self)
{
  self->stats.dropped[WEIR_INGEST_FLUSHED] += weir_reorder_clear (&self->reorder);
}

void
weir_track_stop (WeirTrack *self)
{
  atomic_store (&self->stopped, true);
}

void
weir_track_drop (WeirTrack *self, WeirIngestDrop reason)
{
  self->stats.dropped[reason]++;
  if (self->ops->dropped && !atomic_load_explicit (&self->stopped, memory_order_relaxed))
    self->ops->dropped (self->data, reason);
}

static void
repair (WeirTrack *self, WeirIngestRepair what)
{
  self->stats.repairs[what]++;
  if (self->ops->repaired && !atomic_load_explicit (&self->stopped, memory_order_relaxed))
    self->ops->repaired (self->data, what);
}

// ---- senders ----

bool
weir_track_same_host (const WeirAddress *a, const WeirAddress *b)
{
  if (a->any.sa_family != b->any.sa_family)
    return false;
  if (a->any.sa_family == AF_INET)
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
  return memcmp (&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0
         && a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

static in_port_t
port_of (const WeirAddress *address)
{
  return address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port;
}

static bool
admits (const WeirTrack *self, const WeirAddress *from, int64_t now_ns)
{
  int64_t silence_ns = self->settings.silence_ns;

  if (!from)
    return true;
  if (self->settings.host_known && !weir_track_same_host (from, &self->settings.host))
    return false;
  if (!self->locked)
    return true;
  if (weir_track_same_host (from, &self->sender)) {
    if (port_of (from) == port_of (&self->sender))
      return true;
    silence_ns = silence_ns < SAME_HOST_SILENCE ? silence_ns : SAME_HOST_SILENCE;
  }
  return now_ns - self->stats.heard_ns > silence_ns;
}

static bool
is_wanted_type (const WeirTrack *self, uint8_t pt)
{
  const uint64_t *types = self->settings.payload_types;

  return (types[0] | types[1]) == 0 || types[pt / 64] >> pt % 64 & 1;
}

// ---- delivery ----

static void
deliver (WeirTrack *self, const WeirIngestPacket *packet)
{
  if (atomic_load_explicit (&self->stopped, memory_order_relaxed)) {
    weir_track_drop (self, WEIR_INGEST_FLUSHED);
    return;
  }
  self->stats.delivered++;
  self->ops->packet (self->data, packet);
}

void
weir_track_expire (WeirTrack *self, int64_t now_ns)
{
  WeirIngestPacket packet;

  if (self->reorder.n_held == 0)
    return;
  while (weir_reorder_pop (&self->reorder, now_ns, &packet))
    deliver (self, &packet);
}

static void
put_in_order (WeirTrack *self, WeirIngestPacket *packet, int64_t now_ns)
{
  weir_reorder_make_room (&self->reorder, packet->seq, packet->len);
  weir_track_expire (self, now_ns);
  switch (weir_reorder_put (&self->reorder, packet)) {
    case WEIR_REORDER_PASS:
      deliver (self, packet);
      weir_track_expire (self, now_ns);
      break;
    case WEIR_REORDER_HELD:
      break;
    case WEIR_REORDER_LATE:
      weir_track_drop (self, WEIR_INGEST_LATE);
      break;
    case WEIR_REORDER_DUPLICATE:
      weir_track_drop (self, WEIR_INGEST_DUPLICATE);
      break;
    case WEIR_REORDER_NO_MEMORY:
      weir_track_drop (self, WEIR_INGEST_NO_MEMORY);
      break;
  }
}

// ---- runs ----

// Begins a run. The packets held leave first: the ones missing between them come no more.
static void
begin_run (WeirTrack *self, uint32_t ssrc)
{
  weir_track_expire (self, INT64_MAX);
  weir_reorder_clear (&self->reorder);
  weir_rtp_stats_restart (&self->rtp_stats);
  self->begun = true;
  self->stats.ssrc = ssrc;
  self->stats.runs++;
  self->max_seq = WEIR_UNWRAP_START;
  self->probe_seq = -1;
  self->goes_on = false;
}

static bool
is_restart (WeirTrack *self, uint16_t seq, int64_t silence_ns)
{
  bool follows = self->probe_seq == seq;

  self->probe_seq = (uint16_t) (seq + 1);
  return follows || silence_ns >= OTHER_SSRC_SILENCE;
}

static bool
is_sender (const WeirTrack *self, const WeirAddress *from)
{
  return !from || (self->locked && memcmp (&self->sender, from, sizeof *from) == 0);
}

static bool
keeps_order (const WeirTrack *self)
{
  return self->settings.interleaved && !self->settings.unordered;
}

static bool
numbers_go_on (const WeirTrack *self, uint16_t seq)
{
  int16_t ahead = (int16_t) (seq - (uint16_t) self->max_seq);

  return ahead > 0 && ahead <= NUMBERS_GO_ON;
}

// Reports whether a packet of another SSRC takes over. Remembers the SSRC that does not.
static bool
takes_over (WeirTrack *self, const WeirAddress *from, const WeirRtp *rtp, int64_t now_ns,
    int64_t silence_ns)
{
  bool beside = rtp->ssrc == self->beside;
  bool goes_on = keeps_order (self) || numbers_go_on (self, rtp->seq)
                 || (beside && rtp->seq == self->beside_probe);

  if (silence_ns >= OTHER_SSRC_SILENCE || self->stats.bye)
    return true;
  if (beside && self->beside_probe < 0 && now_ns - self->beside_ns < BESIDE)
    goes_on = false;
  if (goes_on && rtp->pt == self->pt && is_sender (self, from))
    return true;
  // A sender that was replaced gets no second chance as long as it sends.
  if (!beside || self->beside_probe >= 0 || now_ns - self->beside_ns >= BESIDE)
    self->beside_probe = (uint16_t) (rtp->seq + 1);
  self->beside = rtp->ssrc;
  self->beside_ns = now_ns;
  return false;
}

// Finds the number of a packet in its run, which it may begin. Returns false if the packet is
// counted as dropped.
static bool
find_seq (
    WeirTrack *self, const WeirAddress *from, const WeirRtp *rtp, int64_t now_ns, int64_t *seq)
{
  int64_t silence_ns = now_ns - self->stats.heard_ns, nearest;
  bool goes_on;

  if (!self->begun) {
    begin_run (self, rtp->ssrc);
  } else if (rtp->ssrc != self->stats.ssrc) {
    if (!takes_over (self, from, rtp, now_ns, silence_ns)) {
      weir_track_drop (self, WEIR_INGEST_OTHER_SSRC);
      return false;
    }
    self->beside = self->stats.ssrc;
    self->beside_ns = self->stats.heard_ns;
    self->beside_probe = -1;
    goes_on = is_sender (self, from) && numbers_go_on (self, rtp->seq);
    begin_run (self, rtp->ssrc);
    self->goes_on = goes_on;
  } else if (self->beside_probe >= 0) {
    self->beside = rtp->ssrc; // the other one's numbers are not in a row
    self->beside_probe = -1;
  }
  nearest = self->max_seq;
  *seq = weir_unwrap16 (&nearest, rtp->seq);
  if (self->max_seq == WEIR_UNWRAP_START) {
    self->first_seq = *seq;
  } else if (keeps_order (self) && *seq <= self->max_seq) {
    repair (self, WEIR_INGEST_RENUMBERED);
    begin_run (self, rtp->ssrc);
    self->first_seq = *seq = rtp->seq;
  } else if (*seq <= self->max_seq - FAR_BEHIND || rtp->seq == self->probe_seq) {
    if (!is_restart (self, rtp->seq, silence_ns)) {
      weir_track_drop (self, WEIR_INGEST_LATE);
      return false;
    }
    begin_run (self, rtp->ssrc);
    self->first_seq = *seq = rtp->seq;
  } else if (self->settings.steady && self->stats.runs > 1 && *seq < self->first_seq) {
    weir_track_drop (self, WEIR_INGEST_LATE); // its number is taken
    return false;
  }
  if (*seq > self->max_seq) {
    self->max_seq = *seq;
    self->probe_seq = -1;
  }
  return true;
}

static void
note_accepted (WeirTrack *self, const WeirAddress *from, const WeirRtp *rtp, int64_t now_ns)
{
  if (from && (!self->locked || memcmp (&self->sender, from, sizeof *from) != 0)) {
    self->locked = true;
    self->sender = *from;
    if (self->peer_known && !weir_track_same_host (&self->peer, from))
      self->peer_known = false;
  }
  self->pt = rtp->pt;
  self->stats.heard_ns = now_ns;
  self->stats.bye = false;
  self->packets_accepted++;
}

// Writes the numbers of a packet that leaves.
static void
write_numbers (const WeirIngestPacket *packet)
{
  weir_rtp_set_seq (packet->data, packet->rtp.seq);
  weir_rtp_set_timestamp (packet->data, packet->rtp.timestamp);
  weir_rtp_set_ssrc (packet->data, packet->rtp.ssrc);
}

// Counts a packet. Returns false if it came before.
static bool
count (WeirTrack *self, WeirIngestPacket *packet, bool begins)
{
  WeirSteady *steady = &self->steady;
  bool passes = !self->settings.steady
                || weir_steady_passes (steady, &packet->rtp, begins, packet->arrival_ns);
  WeirRtpArrival arrival;
  bool moved = false;

  if (!passes)
    weir_steady_take_timestamp (steady, &packet->rtp, begins, packet->arrival_ns, &moved);
  arrival = weir_rtp_stats_add (&self->rtp_stats, &packet->rtp, packet->arrival_ns);
  if (moved)
    repair (self, WEIR_INGEST_RESTAMPED);
  if (arrival == WEIR_RTP_DUPLICATE)
    return false;
  if (!passes) {
    weir_steady_take_seq (steady, &packet->rtp, begins && !self->goes_on);
    write_numbers (packet);
  }
  return true;
}

static void
take_media (WeirTrack *self, const WeirAddress *from, WeirIngestPacket *packet, int64_t now_ns)
{
  uint64_t former = self->stats.runs;

  if (weir_rtp_parse (packet->data, packet->len, &packet->rtp) < 0) {
    weir_track_drop (self, WEIR_INGEST_MALFORMED);
    return;
  }
  if (!is_wanted_type (self, packet->rtp.pt)) {
    weir_track_drop (self, WEIR_INGEST_PAYLOAD_TYPE);
    return;
  }
  if (!find_seq (self, from, &packet->rtp, now_ns, &packet->seq))
    return;
  packet->run = self->stats.runs;
  note_accepted (self, from, &packet->rtp, now_ns);
  if (!count (self, packet, packet->run != former))
    weir_track_drop (self, WEIR_INGEST_DUPLICATE);
  else if (weir_reorder_is_on (&self->reorder))
    put_in_order (self, packet, now_ns);
  else
    deliver (self, packet);
  weir_track_note_packet (self, now_ns);
}

void
weir_track_take (WeirTrack *self, const WeirAddress *from, uint8_t *data, size_t len,
    int64_t arrival_ns, int64_t now_ns)
{
  WeirIngestPacket packet = { .data = data, .len = len, .arrival_ns = arrival_ns };

  self->stats.datagrams++;
  self->stats.bytes += len;
  weir_track_expire (self, now_ns);
  if (!admits (self, from, now_ns))
    weir_track_drop (self, WEIR_INGEST_FOREIGN);
  else if (weir_rtp_is_rtcp (data, len))
    weir_track_read_rtcp (self, from, data, len, now_ns);
  else
    take_media (self, from, &packet, now_ns);
}

void
weir_track_stats (const WeirTrack *self, WeirIngestStats *out)
{
  *out = self->stats;
  out->held = self->reorder.n_held;
  out->lost = weir_rtp_stats_lost (&self->rtp_stats);
  out->reordered = self->rtp_stats.reordered;
  out->jitter_ns = weir_rtp_stats_jitter_ns (&self->rtp_stats);
}
