// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits/bytes.h"
#include "codec/dependency.h"
#include "webrtc/receive_private.h"

#define MS INT64_C (1000000)
#define SILENCE_NS (1000 * MS) // after which a new SSRC may take the place of another one
#define EXTENDED 0x10          // in the first byte of an RTP header
#define EXTENSION_ID_MAX 14
#define ORIGINAL_SEQ 2 // bytes before the payload of a retransmission
#define AHEAD_MAX 100  // packets by which a retransmission may be the first of its stream to come

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
      || settings->twcc_id > EXTENSION_ID_MAX || settings->rid_id > EXTENSION_ID_MAX
      || settings->repaired_rid_id > EXTENSION_ID_MAX)
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

// Looks whether a keyframe begins with a packet.
static bool
begins_key (WeirReceiveMedia *track, const WeirReceivePayload *payload, const WeirReceived *packet)
{
  WeirLayer layer;
  WeirRtp rtp;

  if (track->layers.codec != payload->codec)
    track->layers = (WeirLayers) { .codec = payload->codec };
  return weir_rtp_parse (packet->data, packet->len, &rtp) == 0
         && weir_layers_read (
             &track->layers, packet->data + rtp.payload_offset, rtp.payload_length, &layer)
         && layer.keyframe;
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

// A text that a header extension has.
typedef struct {
  const uint8_t *bytes; // NULL: it has none
  size_t len;
} Word;

static Word
read_word (const uint8_t *data, const WeirRtp *rtp, uint8_t id)
{
  Word word = { NULL, 0 };

  if (id > 0)
    word.bytes = weir_rtp_extension (data, rtp, id, &word.len);
  return word;
}

static bool
is_word (Word word, const char *text)
{
  return word.bytes && strlen (text) == word.len && memcmp (text, word.bytes, word.len) == 0;
}

// Finds the track of a new SSRC. Returns false if there is none, or more than one.
static bool
find_track (const WeirReceive *self, const uint8_t *data, const WeirRtp *rtp, size_t *track)
{
  const WeirReceiveSettings *settings = &self->settings;
  const Word mid = read_word (data, rtp, settings->mid_id);
  Word rid = read_word (data, rtp, settings->rid_id);
  size_t n = 0;

  if (!rid.bytes)
    rid = read_word (data, rtp, settings->repaired_rid_id);
  for (size_t i = 0; i < settings->n_tracks; i++) {
    const WeirReceiveTrack *candidate = &settings->tracks[i];

    if ((mid.bytes ? is_word (mid, candidate->mid) : find_payload (candidate, rtp->pt) != NULL)
        && (candidate->rid[0] == '\0' || !rid.bytes || is_word (rid, candidate->rid))) {
      *track = i;
      n++;
    }
  }
  return n == 1;
}

void
weir_receive_forget (WeirReceive *self, WeirReceiveSource *source)
{
  self->stats.given_up += weir_nacks_clear (&source->nacks);
  source->used = false;
  if (self->tracks[source->track].current == source)
    self->tracks[source->track].current = NULL;
}

// Returns the place for a new SSRC; NULL if all others send.
static WeirReceiveSource *
find_place (WeirReceive *self, int64_t now_ns)
{
  WeirReceiveSource *oldest = &self->sources[0];

  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    WeirReceiveSource *source = &self->sources[i];

    if (!source->used)
      return source;
    if (source->heard_ns < oldest->heard_ns)
      oldest = source;
  }
  if (now_ns - oldest->heard_ns < SILENCE_NS)
    return NULL;
  weir_receive_forget (self, oldest);
  return oldest;
}

WeirReceiveSource *
weir_receive_find_source (WeirReceive *self, uint32_t ssrc)
{
  for (size_t i = 0; i < WEIR_RECEIVE_SOURCES; i++) {
    if (self->sources[i].used && self->sources[i].ssrc == ssrc)
      return &self->sources[i];
  }
  return NULL;
}

// Learns a new SSRC. Returns NULL, and why in `kind`, if it can't.
static WeirReceiveSource *
learn (WeirReceive *self, const uint8_t *data, const WeirRtp *rtp, int64_t now_ns,
    WeirReceiveKind *kind)
{
  WeirReceiveSource *source;
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
  *source = (WeirReceiveSource) { .used = true, .ssrc = rtp->ssrc, .track = track, .probe = -1 };
  weir_nacks_init (&source->nacks, self->settings.window_ns, self->settings.tracks[track].nack);
  return source;
}

// ---- numbers ----

static uint64_t *
word_of (WeirReceiveSource *source, int64_t seq)
{
  return &source->seen[(uint64_t) seq % WEIR_RECEIVE_WINDOW / 64];
}

static uint64_t
bit_of (int64_t seq)
{
  return UINT64_C (1) << (seq & 63);
}

static void
begin (WeirReceive *self, WeirReceiveSource *source, int64_t seq)
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
advance (WeirReceive *self, WeirReceiveSource *source, int64_t seq, int64_t now_ns)
{
  uint64_t gap = (uint64_t) (seq - source->newest) - 1;

  if (gap >= WEIR_RECEIVE_WINDOW) {
    memset (source->seen, 0, sizeof source->seen);
  } else {
    for (int64_t i = source->newest + 1; i <= seq; i++)
      *word_of (source, i) &= ~bit_of (i);
  }
  weir_receive_note_given_up (
      self, source->track, weir_nacks_miss (&source->nacks, source->newest + 1, gap, now_ns));
  source->newest = seq;
  source->probe = -1;
}

// Takes the number of a packet that came first-hand, or as a retransmission.
static WeirReceiveKind
take_number (WeirReceive *self, WeirReceiveSource *source, uint16_t number, bool first_hand,
    int64_t now_ns, bool *is_recovered)
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
  } else if (seq <= source->newest - WEIR_RECEIVE_WINDOW) {
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
deliver (WeirReceive *self, WeirReceiveSource *source, const WeirReceivePayload *payload,
    int64_t now_ns, WeirReceived *out)
{
  WeirReceiveMedia *track = &self->tracks[source->track];

  if (track->current && track->current != source)
    self->stats.given_up += weir_nacks_clear (&track->current->nacks);
  track->current = source;
  self->stats.recovered += out->is_recovered;
  if (out->is_recovered)
    self->stats.round_trip_ns = source->nacks.round_trip_ns;
  if (self->report_due_ns == WEIR_NEVER)
    self->report_due_ns = now_ns + WEIR_RECEIVE_REPORT_NS / 2;
  out->begins_key = begins_key (track, payload, out);
  track->key_wanted &= !out->begins_key;
}

static WeirReceiveKind
take_retransmission (WeirReceive *self, size_t track, const WeirReceivePayload *payload,
    const WeirRtp *rtp, int64_t now_ns, WeirReceived *out)
{
  WeirReceiveSource *source = self->tracks[track].current;
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
take_media (WeirReceive *self, WeirReceiveSource *source, const WeirReceivePayload *payload,
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
  WeirReceiveSource *source;
  WeirRtp rtp;

  if (weir_rtp_parse (out->data, out->len, &rtp) < 0)
    return WEIR_RECEIVE_MALFORMED;
  note_transport_number (self, out->data, &rtp, now_ns);
  source = weir_receive_find_source (self, rtp.ssrc);
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
weir_receive_take (
    WeirReceive *self, uint8_t *data, size_t len, int64_t arrival_ns, WeirReceived *out)
{
  *out = (WeirReceived) { .data = data, .len = len };
  out->kind = take (self, arrival_ns, out);
  self->stats.packets[out->kind]++;
}
