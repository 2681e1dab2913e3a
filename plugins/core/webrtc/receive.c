// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/dependency.h"
#include "rtp/rtcp_header.h"
#include "rtp/rtcp_write.h"
#include "rtp/rtp.h"
#include "rtp/rtp_stats.h"
#include "webrtc/nacks.h"
#include "webrtc/twcc.h"

#define MS INT64_C (1000000)
#define REPORT_NS (1000 * MS)
#define KEY_NS (500 * MS)
#define KEY_TRIES 20
#define SILENCE_NS (1000 * MS) // after which a new SSRC may take the place of another one
#define EXTENDED 0x10          // in the first byte of an RTP header
#define EXTENSION_ID_MAX 14
#define ORIGINAL_SEQ 2 // bytes before the payload of a retransmission
#define AHEAD_MAX 100  // packets by which a retransmission may be the first of its stream to come
#define WINDOW WEIR_RTP_STATS_WINDOW

// An SSRC. Those of retransmissions have a track and nothing else.
typedef struct {
  bool used;
  uint32_t ssrc;
  size_t track;
  int64_t heard_ns;
  // Of media.
  bool begun;
  uint8_t pt;
  int64_t newest; // highest number, unwrapped; numbers that retransmissions brought count
  int32_t probe;  // the number that confirms a restart; -1: none
  uint64_t seen[WINDOW / 64];
  WeirRtpStats stats;
  uint64_t packets_reported;
  uint32_t last_sr; // the middle of its last sender report's NTP time; 0: none came
  int64_t sr_ns;    // when that came
  WeirNacks nacks;
} Source;

typedef struct {
  Source *current; // whose media came last; NULL: none
  bool key_wanted;
  unsigned key_tries;
  int64_t key_asked_ns;
  WeirLayers layers;
} Track;

struct weir_receive {
  WeirReceiveSettings settings;
  Source sources[WEIR_RECEIVE_SOURCES];
  Track tracks[WEIR_RECEIVE_TRACKS];
  WeirTwcc twcc;
  int64_t report_due_ns;
  uint32_t media_ssrc; // of the last packet
  WeirReceiveStats stats;
};

static bool
is_sound_track (const WeirReceiveTrack *track)
{
  bool used[128] = { false };

  if (track->n_payloads > WEIR_RECEIVE_PAYLOADS)
    return false;
  for (size_t i = 0; i < track->n_payloads; i++) {
    const WeirReceivePayload *payload = &track->payloads[i];

    if (payload->pt > 127 || payload->rtx_pt > 127 || payload->clock_rate == 0 || used[payload->pt])
      return false;
    used[payload->pt] = true;
    if (payload->rtx_pt == 0)
      continue;
    if (used[payload->rtx_pt])
      return false;
    used[payload->rtx_pt] = true;
  }
  return true;
}

int
weir_receive_new (const WeirReceiveSettings *settings, WeirReceive **out)
{
  WeirReceive *self;

  if (settings->n_tracks > WEIR_RECEIVE_TRACKS || settings->mid_id > EXTENSION_ID_MAX
      || settings->twcc_id > EXTENSION_ID_MAX)
    return -EINVAL;
  for (size_t i = 0; i < settings->n_tracks; i++) {
    if (!is_sound_track (&settings->tracks[i]))
      return -EINVAL;
  }
  self = calloc (1, sizeof *self);
  if (!self)
    return -ENOMEM;
  self->settings = *settings;
  self->report_due_ns = WEIR_NEVER;
  weir_twcc_init (&self->twcc);
  for (size_t i = 0; i < WEIR_RECEIVE_TRACKS; i++)
    self->tracks[i].key_asked_ns = INT64_MIN / 2;
  *out = self;
  return 0;
}

void
weir_receive_free (WeirReceive *self)
{
  free (self);
}

void
weir_receive_stats (const WeirReceive *self, WeirReceiveStats *out)
{
  *out = self->stats;
}

// ---- keyframes ----

void
weir_receive_ask_key (WeirReceive *self, size_t track)
{
  if (track >= self->settings.n_tracks || !self->settings.tracks[track].pli)
    return;
  self->tracks[track].key_wanted = true;
  self->tracks[track].key_tries = 0;
}

static void
note_given_up (WeirReceive *self, size_t track, uint64_t n)
{
  self->stats.given_up += n;
  if (n > 0)
    weir_receive_ask_key (self, track);
}

// Looks whether a keyframe that is wanted begins with a packet.
static void
look_for_key (
    Track *track, const WeirReceivePayload *payload, const uint8_t *data, const WeirRtp *rtp)
{
  WeirLayer layer;

  if (!track->key_wanted)
    return;
  if (track->layers.codec != payload->codec)
    track->layers = (WeirLayers) { .codec = payload->codec };
  if (weir_layers_read (&track->layers, data + rtp->payload_offset, rtp->payload_length, &layer)
      && layer.keyframe)
    track->key_wanted = false;
}

// ---- streams ----

static const WeirReceivePayload *
find_payload (const WeirReceiveTrack *track, uint8_t pt)
{
  for (size_t i = 0; i < track->n_payloads; i++) {
    const WeirReceivePayload *payload = &track->payloads[i];

    if (payload->pt == pt || (payload->rtx_pt == pt && pt > 0))
      return payload;
  }
  return NULL;
}

// Finds the track of a new SSRC. Returns false if there is none, or more than one.
static bool
find_track (const WeirReceive *self, const uint8_t *data, const WeirRtp *rtp, size_t *track)
{
  const WeirReceiveSettings *settings = &self->settings;
  const uint8_t *mid = NULL;
  size_t len = 0, n = 0;

  if (settings->mid_id > 0)
    mid = weir_rtp_extension (data, rtp, settings->mid_id, &len);
  for (size_t i = 0; i < settings->n_tracks; i++) {
    const WeirReceiveTrack *candidate = &settings->tracks[i];

    if (mid ? strlen (candidate->mid) == len && memcmp (candidate->mid, mid, len) == 0
            : find_payload (candidate, rtp->pt) != NULL) {
      *track = i;
      n++;
    }
  }
  return n == 1;
}

static void
forget (WeirReceive *self, Source *source)
{
  self->stats.given_up += weir_nacks_clear (&source->nacks);
  source->used = false;
  if (self->tracks[source->track].current == source)
    self->tracks[source->track].current = NULL;
}

// Returns the place for a new SSRC; NULL if all others send.
static Source *
find_place (WeirReceive *self, int64_t now_ns)
{
  Source *oldest = &self->sources[0];

  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    Source *source = &self->sources[i];

    if (!source->used)
      return source;
    if (source->heard_ns < oldest->heard_ns)
      oldest = source;
  }
  if (now_ns - oldest->heard_ns < SILENCE_NS)
    return NULL;
  forget (self, oldest);
  return oldest;
}

static Source *
find_source (WeirReceive *self, uint32_t ssrc)
{
  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    if (self->sources[i].used && self->sources[i].ssrc == ssrc)
      return &self->sources[i];
  }
  return NULL;
}

// Learns a new SSRC. Returns NULL, and why in `kind`, if it can't.
static Source *
learn (WeirReceive *self, const uint8_t *data, const WeirRtp *rtp, int64_t now_ns,
    WeirReceiveKind *kind)
{
  Source *source;
  size_t track;

  if (!find_track (self, data, rtp, &track)
      || !find_payload (&self->settings.tracks[track], rtp->pt)) {
    *kind = WEIR_RECEIVE_STRAY;
    return NULL;
  }
  source = find_place (self, now_ns);
  if (!source) {
    *kind = WEIR_RECEIVE_CROWDED;
    return NULL;
  }
  *source = (Source) { .used = true, .ssrc = rtp->ssrc, .track = track, .probe = -1 };
  weir_nacks_init (&source->nacks, self->settings.window_ns, self->settings.tracks[track].nack);
  return source;
}

// ---- numbers ----

static uint64_t *
word_of (Source *source, int64_t seq)
{
  return &source->seen[(uint64_t) seq % WINDOW / 64];
}

static uint64_t
bit_of (int64_t seq)
{
  return UINT64_C (1) << (seq & 63);
}

static void
begin (WeirReceive *self, Source *source, int64_t seq)
{
  self->stats.given_up += weir_nacks_clear (&source->nacks);
  weir_rtp_stats_restart (&source->stats);
  memset (source->seen, 0, sizeof source->seen);
  source->begun = true;
  source->newest = seq;
  source->probe = -1;
}

// Goes ahead to a number. The ones between are missing.
static void
advance (WeirReceive *self, Source *source, int64_t seq, int64_t now_ns)
{
  uint64_t gap = (uint64_t) (seq - source->newest) - 1;

  if (gap >= WINDOW) {
    memset (source->seen, 0, sizeof source->seen);
  } else {
    for (int64_t i = source->newest + 1; i <= seq; i++)
      *word_of (source, i) &= ~bit_of (i);
  }
  note_given_up (
      self, source->track, weir_nacks_miss (&source->nacks, source->newest + 1, gap, now_ns));
  source->newest = seq;
  source->probe = -1;
}

// Takes the number of a packet that came first-hand, or as a retransmission.
static WeirReceiveKind
take_number (WeirReceive *self, Source *source, uint16_t number, bool first_hand, int64_t now_ns,
    bool *is_recovered)
{
  int64_t nearest = source->begun ? source->newest : WEIR_UNWRAP_START;
  int64_t seq = weir_unwrap16 (&nearest, number);
  bool confirms = source->probe == number;

  if (!source->begun) {
    begin (self, source, seq);
  } else if (!first_hand && seq > source->newest + AHEAD_MAX) {
    return WEIR_RECEIVE_STRAY;
  } else if (seq > source->newest) {
    advance (self, source, seq, now_ns);
  } else if (seq <= source->newest - WINDOW) {
    if (!first_hand)
      return WEIR_RECEIVE_LATE;
    source->probe = (uint16_t) (number + 1);
    if (!confirms)
      return WEIR_RECEIVE_LATE;
    begin (self, source, seq);
  } else if (*word_of (source, seq) & bit_of (seq)) {
    return WEIR_RECEIVE_DUPLICATE;
  } else {
    *is_recovered = weir_nacks_take (&source->nacks, seq, now_ns);
  }
  *word_of (source, seq) |= bit_of (seq);
  return WEIR_RECEIVE_MEDIA;
}

// ---- packets ----

// Moves the header of a packet over its extension and `skip` bytes of its payload.
static void
cut_header (WeirReceived *out, const WeirRtp *rtp, size_t skip)
{
  size_t header = WEIR_RTP_HEADER + 4u * rtp->n_csrc;
  size_t cut = rtp->payload_offset + skip - header;

  if (cut == 0)
    return;
  memmove (out->data + cut, out->data, header);
  out->data += cut;
  out->len -= cut;
  out->data[0] &= (uint8_t) ~EXTENDED;
}

static void
deliver (WeirReceive *self, Source *source, const WeirReceivePayload *payload, int64_t now_ns,
    WeirReceived *out)
{
  Track *track = &self->tracks[source->track];
  WeirRtp rtp;

  if (track->current && track->current != source)
    self->stats.given_up += weir_nacks_clear (&track->current->nacks);
  track->current = source;
  self->stats.recovered += out->is_recovered;
  if (out->is_recovered)
    self->stats.round_trip_ns = source->nacks.round_trip_ns;
  if (self->report_due_ns == WEIR_NEVER)
    self->report_due_ns = now_ns + REPORT_NS / 2;
  if (weir_rtp_parse (out->data, out->len, &rtp) == 0)
    look_for_key (track, payload, out->data, &rtp);
}

static WeirReceiveKind
take_retransmission (WeirReceive *self, size_t track, const WeirReceivePayload *payload,
    const WeirRtp *rtp, int64_t now_ns, WeirReceived *out)
{
  Source *source = self->tracks[track].current;
  WeirBytes b = weir_bytes (out->data + rtp->payload_offset, rtp->payload_length);
  WeirReceiveKind kind;
  uint16_t seq;

  if (!weir_bytes_u16 (&b, &seq))
    return WEIR_RECEIVE_PADDING;
  if (!source)
    return WEIR_RECEIVE_STRAY;
  kind = take_number (self, source, seq, false, now_ns, &out->is_recovered);
  if (kind != WEIR_RECEIVE_MEDIA)
    return kind;
  cut_header (out, rtp, ORIGINAL_SEQ);
  weir_rtp_set_seq (out->data, seq);
  weir_rtp_set_ssrc (out->data, source->ssrc);
  weir_rtp_set_pt (out->data, payload->pt);
  self->stats.retransmitted++;
  deliver (self, source, payload, now_ns, out);
  return WEIR_RECEIVE_MEDIA;
}

static WeirReceiveKind
take_media (WeirReceive *self, Source *source, const WeirReceivePayload *payload,
    const WeirRtp *rtp, int64_t now_ns, WeirReceived *out)
{
  WeirReceiveKind kind;

  if (!source->begun || (source->pt != rtp->pt && source->stats.clock_rate != payload->clock_rate))
    weir_rtp_stats_init (&source->stats, payload->clock_rate);
  source->pt = rtp->pt;
  kind = take_number (self, source, rtp->seq, true, now_ns, &out->is_recovered);
  if (kind != WEIR_RECEIVE_LATE)
    weir_rtp_stats_add (&source->stats, rtp, now_ns);
  if (kind != WEIR_RECEIVE_MEDIA)
    return kind;
  cut_header (out, rtp, 0);
  deliver (self, source, payload, now_ns, out);
  return WEIR_RECEIVE_MEDIA;
}

static void
note_transport_number (WeirReceive *self, const uint8_t *data, const WeirRtp *rtp, int64_t now_ns)
{
  const uint8_t *element;
  WeirBytes b;
  uint16_t seq;
  size_t len;

  if (self->settings.twcc_id == 0)
    return;
  element = weir_rtp_extension (data, rtp, self->settings.twcc_id, &len);
  b = weir_bytes (element, element ? len : 0);
  if (weir_bytes_u16 (&b, &seq)) {
    weir_twcc_take (&self->twcc, seq, now_ns);
    self->media_ssrc = rtp->ssrc;
  }
}

static WeirReceiveKind
take (WeirReceive *self, int64_t now_ns, WeirReceived *out)
{
  WeirReceiveKind kind;
  const WeirReceivePayload *payload;
  Source *source;
  WeirRtp rtp;

  if (weir_rtp_parse (out->data, out->len, &rtp) < 0)
    return WEIR_RECEIVE_MALFORMED;
  note_transport_number (self, out->data, &rtp, now_ns);
  source = find_source (self, rtp.ssrc);
  if (!source)
    source = learn (self, out->data, &rtp, now_ns, &kind);
  if (!source)
    return kind;
  payload = find_payload (&self->settings.tracks[source->track], rtp.pt);
  if (!payload)
    return WEIR_RECEIVE_STRAY;
  source->heard_ns = now_ns;
  out->track = source->track;
  if (payload->pt != rtp.pt)
    return take_retransmission (self, source->track, payload, &rtp, now_ns, out);
  return take_media (self, source, payload, &rtp, now_ns, out);
}

void
weir_receive_take (WeirReceive *self, uint8_t *data, size_t len, int64_t now_ns, WeirReceived *out)
{
  *out = (WeirReceived) { .data = data, .len = len };
  out->kind = take (self, now_ns, out);
  self->stats.packets[out->kind]++;
}

// ---- RTCP ----

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
take_sender_report (WeirReceive *self, WeirBytes b, int64_t now_ns)
{
  uint32_t ssrc;
  uint64_t ntp;
  Source *source;

  weir_bytes_u32 (&b, &ssrc);
  if (!weir_bytes_u64 (&b, &ntp))
    return;
  source = find_source (self, ssrc);
  if (!source)
    return;
  source->last_sr = (uint32_t) (ntp >> 16);
  source->sr_ns = now_ns;
}

static void
take_bye (WeirReceive *self, WeirBytes b, unsigned n)
{
  uint32_t ssrc;

  while (n-- > 0 && weir_bytes_u32 (&b, &ssrc)) {
    Source *source = find_source (self, ssrc);

    if (source)
      forget (self, source);
  }
}

int
weir_receive_take_rtcp (WeirReceive *self, const uint8_t *data, size_t len, int64_t now_ns)
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
      take_sender_report (self, weir_bytes (body, header.size - 4), now_ns);
    else if (header.type == WEIR_RTCP_BYE)
      take_bye (self, weir_bytes (body, header.size - 4), header.flags & 31);
  }
  return 0;
}

// ---- feedback ----

static int64_t
key_due (const Track *track)
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
    Source *source = &self->sources[i];

    if (source->used)
      note_given_up (self, source->track, weir_nacks_expire (&source->nacks, now_ns));
  }
}

static bool
report_on (Source *source, int64_t now_ns, WeirRtcpBlock *block)
{
  uint64_t since_ns = (uint64_t) (now_ns - source->sr_ns);

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
    self->report_due_ns = n > 0 ? now_ns + REPORT_NS : WEIR_NEVER;
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
    Track *track = &self->tracks[i];

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
    Source *source = &self->sources[i];

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
