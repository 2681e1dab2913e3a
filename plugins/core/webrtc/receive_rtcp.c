// SPDX-License-Identifier: LGPL-2.1-or-later

// A receiver's RTCP: reads sender reports and BYE, writes reports and requests.

#include <errno.h>

#include "rtp/rtcp_header.h"
#include "rtp/rtcp_write.h"
#include "webrtc/receive_private.h"

#define KEY_NS INT64_C (500000000)
#define KEY_TRIES 20

// ---- reading ----

static bool
is_sound (const uint8_t *data, size_t len)
{
  WeirBytes b = weir_bytes (data, len);
  WeirRtcpHeader header;

  while (weir_bytes_left (&b) > 0) {
    if (!weir_rtcp_header_read (&b, &header) || !weir_bytes_skip (&b, header.size - 4))
      return false;
  }
  return len > 0;
}

static void
take_sender_report (WeirReceive *self, WeirBytes b, int64_t arrival_ns)
{
  uint32_t ssrc;
  uint64_t ntp;
  WeirReceiveSource *source;

  weir_bytes_u32 (&b, &ssrc);
  if (!weir_bytes_u64 (&b, &ntp))
    return;
  source = weir_receive_find_source (self, ssrc);
  if (!source)
    return;
  source->last_sr = (uint32_t) (ntp >> 16);
  source->sr_ns = arrival_ns;
}

static void
take_bye (WeirReceive *self, WeirBytes b, unsigned n)
{
  uint32_t ssrc;

  while (n-- > 0 && weir_bytes_u32 (&b, &ssrc)) {
    WeirReceiveSource *source = weir_receive_find_source (self, ssrc);

    if (source)
      weir_receive_forget (self, source);
  }
}

int
weir_receive_take_rtcp (WeirReceive *self, const uint8_t *data, size_t len, int64_t arrival_ns)
{
  WeirBytes b = weir_bytes (data, len);
  WeirRtcpHeader header;
  const uint8_t *body;

  if (!is_sound (data, len))
    return -EBADMSG;
  while (weir_bytes_left (&b) > 0) {
    weir_rtcp_header_read (&b, &header);
    weir_bytes_take (&b, header.size - 4, &body);
    if (header.type == WEIR_RTCP_SR)
      take_sender_report (self, weir_bytes (body, header.size - 4), arrival_ns);
    else if (header.type == WEIR_RTCP_BYE)
      take_bye (self, weir_bytes (body, header.size - 4), header.flags & 31);
  }
  return 0;
}

// ---- writing ----

void
weir_receive_ask_key (WeirReceive *self, size_t track)
{
  if (track >= self->settings.n_tracks || !self->settings.tracks[track].pli)
    return;
  self->tracks[track].key_wanted = true;
  self->tracks[track].key_tries = 0;
}

void
weir_receive_note_given_up (WeirReceive *self, size_t track, uint64_t n)
{
  self->stats.given_up += n;
  if (n > 0)
    weir_receive_ask_key (self, track);
}

static int64_t
key_due (const WeirReceiveMedia *track)
{
  return track->key_wanted && track->current ? track->key_asked_ns + KEY_NS : WEIR_NEVER;
}

static int64_t
earlier (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

int64_t
weir_receive_due (const WeirReceive *self)
{
  int64_t due_ns = earlier (self->report_due_ns, self->twcc.due_ns);

  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    if (self->sources[i].used)
      due_ns = earlier (due_ns, self->sources[i].nacks.due_ns);
  }
  for (size_t i = 0; i < self->settings.n_tracks; i++)
    due_ns = earlier (due_ns, key_due (&self->tracks[i]));
  return due_ns;
}

static void
expire (WeirReceive *self, int64_t now_ns)
{
  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    WeirReceiveSource *source = &self->sources[i];

    if (source->used)
      weir_receive_note_given_up (self, source->track, weir_nacks_expire (&source->nacks, now_ns));
  }
}

static bool
report_on (WeirReceiveSource *source, int64_t now_ns, WeirRtcpBlock *block)
{
  // Another thread's packet may be a moment younger than this call's time.
  uint64_t since_ns = now_ns > source->sr_ns ? (uint64_t) (now_ns - source->sr_ns) : 0;

  if (!source->used || !source->begun || source->stats.packets == source->packets_reported)
    return false;
  source->packets_reported = source->stats.packets;
  weir_rtp_stats_report (&source->stats, block);
  block->last_sr = source->last_sr;
  if (source->last_sr != 0)
    block->delay_sr = (uint32_t) (since_ns / 1000000000 << 16)
                      + (uint32_t) ((since_ns % 1000000000 << 16) / 1000000000);
  return true;
}

// Writes what a compound packet begins with: a report, if it is due or the packet needs one.
static size_t
write_report (WeirReceive *self, int64_t now_ns, uint8_t *out)
{
  const WeirReceiveSettings *settings = &self->settings;
  WeirRtcpBlock blocks[WEIR_RECEIVE_SOURCES];
  bool is_due = now_ns >= self->report_due_ns;
  size_t n = 0;

  if (!is_due && settings->reduced_size)
    return 0;
  for (size_t i = 0; is_due && i < WEIR_RECEIVE_SOURCES; i++)
    n += report_on (&self->sources[i], now_ns, &blocks[n]);
  // Nothing came for a second: the next packet starts reports again.
  if (is_due)
    self->report_due_ns = n > 0 ? now_ns + WEIR_RECEIVE_REPORT_NS : WEIR_NEVER;
  return weir_rtcp_write_rr (
      out, WEIR_RECEIVE_RTCP_MAX, settings->ssrc, blocks, n, settings->cname);
}

static size_t
write_remb (WeirReceive *self, uint8_t *out, size_t room)
{
  uint32_t medias[WEIR_RECEIVE_TRACKS];
  size_t n = 0;

  for (size_t i = 0; i < self->settings.n_tracks; i++) {
    if (self->tracks[i].current)
      medias[n++] = self->tracks[i].current->ssrc;
  }
  if (self->settings.remb_bps == 0 || n == 0)
    return 0;
  return weir_rtcp_write_remb (out, room, self->settings.ssrc, self->settings.remb_bps, medias, n);
}

static size_t
write_key_requests (WeirReceive *self, int64_t now_ns, uint8_t *out, size_t room)
{
  size_t len = 0;

  for (size_t i = 0; i < self->settings.n_tracks; i++) {
    WeirReceiveMedia *track = &self->tracks[i];

    if (now_ns < key_due (track))
      continue;
    len += weir_rtcp_write_pli (out + len, room - len, self->settings.ssrc, track->current->ssrc);
    track->key_asked_ns = now_ns;
    track->key_wanted = ++track->key_tries < KEY_TRIES;
    self->stats.keys_asked++;
  }
  return len;
}

static size_t
write_nacks (WeirReceive *self, int64_t now_ns, uint8_t *out, size_t room)
{
  size_t len = 0;

  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    WeirReceiveSource *source = &self->sources[i];

    if (source->used)
      len += weir_nacks_write (&source->nacks, out + len, room - len, self->settings.ssrc,
          source->ssrc, now_ns, &self->stats.nacked);
  }
  return len;
}

static size_t
write_transport_feedback (WeirReceive *self, int64_t now_ns, uint8_t *out, size_t room)
{
  size_t len;

  if (now_ns < self->twcc.due_ns)
    return 0;
  len = weir_twcc_write (&self->twcc, out, room, self->settings.ssrc, self->media_ssrc);
  self->stats.feedback += len > 0;
  return len;
}

size_t
weir_receive_write_rtcp (WeirReceive *self, int64_t now_ns, uint8_t *out)
{
  bool reports = now_ns >= self->report_due_ns;
  size_t len;

  if (now_ns < weir_receive_due (self))
    return 0;
  expire (self, now_ns);
  if (now_ns < weir_receive_due (self)) // nothing but the end of waits was due
    return 0;
  len = write_report (self, now_ns, out);
  if (reports)
    len += write_remb (self, out + len, WEIR_RECEIVE_RTCP_MAX - len);
  len += write_key_requests (self, now_ns, out + len, WEIR_RECEIVE_RTCP_MAX - len);
  len += write_nacks (self, now_ns, out + len, WEIR_RECEIVE_RTCP_MAX - len);
  return len + write_transport_feedback (self, now_ns, out + len, WEIR_RECEIVE_RTCP_MAX - len);
}
