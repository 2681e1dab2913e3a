// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/receive.h"

#include <errno.h>
#include <stdlib.h>

#include "packets.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtp.h"
#include "tap.h"
#include "webrtc/nacks.h"

#define MS INT64_C (1000000)
#define VIDEO 0x11111111
#define VIDEO_RTX 0x22222222
#define AUDIO 0x33333333
#define OWN 0xdeadbeef
#define MID 4
#define TWCC 5
#define PACKET 100

// Sound with Opus as 111, and a picture with H.264 as 102 and 103 for retransmissions.
static const WeirReceiveSettings usual = {
  .tracks = {
    { "0", { { 111, 0, WEIR_CODEC_AUDIO, 48000 } }, 1, false, false },
    { "1", { { 102, 103, WEIR_CODEC_H264, 90000 } }, 1, true, true },
  },
  .n_tracks = 2,
  .mid_id = MID,
  .twcc_id = TWCC,
  .window_ns = 500 * MS,
  .reduced_size = true,
  .ssrc = OWN,
  .cname = "a@bc",
};

static WeirReceive *
make (const WeirReceiveSettings *settings)
{
  WeirReceive *self = NULL;

  CHECK_INT (weir_receive_new (settings, &self), 0);
  return self;
}

static WeirReceiveSettings
without_twcc (void)
{
  WeirReceiveSettings settings = usual;

  settings.twcc_id = 0;
  return settings;
}

typedef struct {
  uint8_t data[PACKET];
  size_t len;
  WeirReceived got;
} Packet;

static Packet
packet_of (uint32_t ssrc, uint8_t pt, uint16_t seq, const uint8_t *payload, size_t len)
{
  Packet packet = { .len = RTP_HEADER + len };

  put_rtp (packet.data, seq, 3000u * seq, false);
  packet.data[1] = pt;
  weir_rtp_set_ssrc (packet.data, ssrc);
  memcpy (packet.data + RTP_HEADER, payload, len);
  return packet;
}

// Puts a header extension with two elements in: the MID, and a transport-wide number.
static void
extend (Packet *packet, char mid, uint16_t number)
{
  const uint8_t extension[] = { 0xbe, 0xde, 0, 2, MID << 4, (uint8_t) mid, TWCC << 4 | 1,
    (uint8_t) (number >> 8), (uint8_t) number, 0, 0, 0 };

  packet->data[0] |= 0x10;
  memmove (packet->data + RTP_HEADER + sizeof extension, packet->data + RTP_HEADER,
      packet->len - RTP_HEADER);
  memcpy (packet->data + RTP_HEADER, extension, sizeof extension);
  packet->len += sizeof extension;
}

static WeirReceiveKind
take_packet (WeirReceive *self, Packet *packet, int64_t now_ns)
{
  weir_receive_take (self, packet->data, packet->len, now_ns, &packet->got);
  return packet->got.kind;
}

static const uint8_t slice[] = { 0x41, 0x9a, 1, 2 };

static WeirReceiveKind
take (WeirReceive *self, uint32_t ssrc, uint8_t pt, uint16_t seq, int64_t now_ns)
{
  Packet packet = packet_of (ssrc, pt, seq, slice, sizeof slice);

  return take_packet (self, &packet, now_ns);
}

static WeirReceiveKind
take_video (WeirReceive *self, uint16_t seq, int64_t now_ns)
{
  return take (self, VIDEO, 102, seq, now_ns);
}

// Takes a retransmission. What it gives is at the beginning of the packet that is returned.
static Packet
take_again (WeirReceive *self, uint16_t seq, int64_t now_ns)
{
  const uint8_t payload[] = { (uint8_t) (seq >> 8), (uint8_t) seq, 0x41, 0x9a, 1, 2 };
  Packet packet = packet_of (VIDEO_RTX, 103, 7, payload, sizeof payload);

  take_packet (self, &packet, now_ns);
  memmove (packet.data, packet.got.data, packet.got.len);
  packet.got.data = NULL;
  return packet;
}

static WeirReceiveStats
stats_of (const WeirReceive *self)
{
  WeirReceiveStats stats;

  weir_receive_stats (self, &stats);
  return stats;
}

static void
streams_are_told_apart (void)
{
  WeirReceive *self = make (&usual);
  Packet audio = packet_of (AUDIO, 111, 9, slice, sizeof slice);
  Packet video = packet_of (VIDEO, 102, 7, slice, sizeof slice), plain = video;

  CHECK_INT (take_packet (self, &audio, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (audio.got.track, 0);
  extend (&video, '1', 1);
  CHECK_INT (take_packet (self, &video, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (video.got.track, 1);
  // Without its extension.
  CHECK_INT (video.got.len, plain.len);
  CHECK (!memcmp (video.got.data, plain.data, plain.len));
  CHECK_INT (take (self, AUDIO + 1, 96, 1, 0), WEIR_RECEIVE_STRAY); // of no payload type
  CHECK_INT (take (self, AUDIO, 102, 1, 0), WEIR_RECEIVE_STRAY);    // of another track's
  CHECK_INT (stats_of (self).packets[WEIR_RECEIVE_MEDIA], 2);
  CHECK_INT (stats_of (self).packets[WEIR_RECEIVE_STRAY], 2);
  weir_receive_free (self);
}

#define RID 6
#define REPAIRED 7

// Two layers of one line: "h" and "lo".
static WeirReceiveSettings
with_layers (void)
{
  WeirReceiveSettings settings = without_twcc ();

  settings.tracks[2] = settings.tracks[1];
  strcpy (settings.tracks[1].rid, "h");
  strcpy (settings.tracks[2].rid, "lo");
  settings.n_tracks = 3;
  settings.rid_id = RID;
  settings.repaired_rid_id = REPAIRED;
  return settings;
}

// Puts a header extension with the MID 1 and a RID of two characters, or of one, in.
static Packet
layer_packet (uint32_t ssrc, uint8_t pt, uint16_t seq, uint8_t id, const char *rid)
{
  const uint8_t payload[] = { 0, 20, 0x41, 0x9a }; // of a retransmission: number 20
  Packet packet = packet_of (ssrc, pt, seq, payload, sizeof payload);
  uint8_t len = (uint8_t) strlen (rid);
  uint8_t extension[] = { 0xbe, 0xde, 0, 2, MID << 4, '1', (uint8_t) (id << 4 | (len - 1)),
    (uint8_t) rid[0], (uint8_t) rid[1], 0, 0, 0 };

  packet.data[0] |= 0x10;
  memmove (packet.data + RTP_HEADER + sizeof extension, packet.data + RTP_HEADER, sizeof payload);
  memcpy (packet.data + RTP_HEADER, extension, sizeof extension);
  packet.len += sizeof extension;
  return packet;
}

static void
layers_are_told_apart_by_their_rid_until_their_ssrc_is_known (void)
{
  WeirReceiveSettings settings = with_layers ();
  WeirReceive *self = make (&settings);
  Packet high = layer_packet (VIDEO, 102, 19, RID, "h");
  Packet low = layer_packet (VIDEO + 1, 102, 900, RID, "lo");
  Packet again = layer_packet (VIDEO_RTX, 103, 7, REPAIRED, "h");
  Packet unknown = layer_packet (VIDEO + 2, 102, 1, RID, "m");

  CHECK_INT (take (self, VIDEO, 102, 19, 0), WEIR_RECEIVE_STRAY); // of which layer?
  CHECK_INT (take_packet (self, &unknown, 0), WEIR_RECEIVE_STRAY);
  CHECK_INT (take_packet (self, &high, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (high.got.track, 1);
  CHECK_INT (take_packet (self, &low, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (low.got.track, 2);
  // Number 20 of the first one is lost. The other one's numbers are far from it.
  CHECK_INT (take (self, VIDEO, 102, 21, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take (self, VIDEO + 1, 102, 901, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take_packet (self, &again, 10 * MS), WEIR_RECEIVE_MEDIA);
  CHECK_INT (again.got.track, 1);
  CHECK_INT (weir_rtp_get_ssrc (again.got.data), VIDEO);
  CHECK_INT (weir_rtp_get_seq (again.got.data), 20);
  CHECK (again.got.is_recovered);
  // Its SSRC is known by now.
  again = packet_of (VIDEO_RTX, 103, 8, (const uint8_t[]) { 0, 22, 0x41 }, 3);
  CHECK_INT (take_packet (self, &again, 10 * MS), WEIR_RECEIVE_MEDIA);
  CHECK_INT (again.got.track, 1);
  weir_receive_free (self);
}

static void
the_only_layer_needs_no_rid (void)
{
  WeirReceiveSettings settings = with_layers ();
  Packet other = layer_packet (VIDEO + 1, 102, 900, RID, "lo");
  WeirReceive *self;

  settings.n_tracks = 2;
  self = make (&settings);
  CHECK_INT (take_packet (self, &other, 0), WEIR_RECEIVE_STRAY);
  CHECK_INT (take (self, VIDEO, 102, 19, 0), WEIR_RECEIVE_MEDIA);
  weir_receive_free (self);
}

static void
each_layer_is_asked_for_its_own_keyframe_and_packets (void)
{
  WeirReceiveSettings settings = with_layers ();
  WeirReceive *self = make (&settings);
  Packet high = layer_packet (VIDEO, 102, 19, RID, "h");
  Packet low = layer_packet (VIDEO + 1, 102, 900, RID, "lo");
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];
  uint16_t seqs[4];
  size_t len;

  take_packet (self, &high, 0);
  take_packet (self, &low, 0);
  take (self, VIDEO + 1, 102, 902, 0);
  weir_receive_ask_key (self, 1);
  len = weir_receive_write_rtcp (self, 5 * MS, out);
  CHECK_INT (weir_rtcp_read_nacks (out, len, VIDEO, seqs, 4), 0);
  CHECK_INT (weir_rtcp_read_nacks (out, len, VIDEO + 1, seqs, 4), 1);
  CHECK_INT (seqs[0], 901);
  // The request comes first: a PLI, from us, of the first layer.
  CHECK (len == 12 + 16 && out[1] == 206);
  CHECK (!memcmp (out + 8, (const uint8_t[]) { 0x11, 0x11, 0x11, 0x11 }, 4));
  weir_receive_free (self);
}

static void
a_retransmission_is_the_packet_that_it_repeats (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  Packet lost = packet_of (VIDEO, 102, 65535, slice, sizeof slice), again;

  CHECK_INT (take_again (self, 65535, 0).got.kind, WEIR_RECEIVE_STRAY); // of what?
  take_video (self, 65534, 0);
  take_video (self, 0, 0);
  again = take_again (self, 65535, 0);
  CHECK_INT (again.got.kind, WEIR_RECEIVE_MEDIA);
  CHECK_INT (again.got.track, 1);
  CHECK (again.got.is_recovered);
  weir_rtp_set_timestamp (lost.data, 3000 * 7); // as take_again() has it
  CHECK_INT (again.got.len, lost.len);
  CHECK (!memcmp (again.data, lost.data, lost.len));
  CHECK_INT (take_again (self, 65535, 0).got.kind, WEIR_RECEIVE_DUPLICATE);
  CHECK_INT (take_video (self, 65535, 0), WEIR_RECEIVE_DUPLICATE);
  CHECK_INT (take (self, VIDEO_RTX, 103, 8, 0), WEIR_RECEIVE_STRAY); // 0x419a
  again = packet_of (VIDEO_RTX, 103, 9, slice, 1);
  CHECK_INT (take_packet (self, &again, 0), WEIR_RECEIVE_PADDING);
  CHECK_INT (stats_of (self).retransmitted, 1);
  CHECK_INT (stats_of (self).recovered, 1);
  weir_receive_free (self);
}

// The requests of one call, as the numbers asked for.
static size_t
nacks_at (WeirReceive *self, int64_t now_ns, uint16_t *seqs, size_t max)
{
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];
  size_t len = weir_receive_write_rtcp (self, now_ns, out);

  return weir_rtcp_read_nacks (out, len, VIDEO, seqs, max);
}

static void
lost_packets_are_asked_for_until_they_come (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  uint16_t seqs[8];

  take_video (self, 10, 0);
  take_video (self, 13, 100 * MS);
  CHECK_INT (weir_receive_due (self), 105 * MS);
  CHECK_INT (nacks_at (self, 105 * MS - 1, seqs, 8), 0);
  CHECK_INT (nacks_at (self, 105 * MS, seqs, 8), 2);
  CHECK (seqs[0] == 11 && seqs[1] == 12);
  CHECK_INT (nacks_at (self, 106 * MS, seqs, 8), 0);
  // 40 ms after the request.
  CHECK (take_again (self, 11, 145 * MS).got.is_recovered);
  CHECK_INT (stats_of (self).round_trip_ns, 40 * MS);
  // 12 waits for the round trip that was taken for the first request.
  CHECK_INT (weir_receive_due (self), 230 * MS);
  CHECK_INT (nacks_at (self, 230 * MS, seqs, 8), 1);
  CHECK_INT (seqs[0], 12);
  CHECK_INT (weir_receive_due (self), 280 * MS); // a round trip and a quarter
  CHECK (take_again (self, 12, 279 * MS).got.is_recovered);
  CHECK_INT (nacks_at (self, 280 * MS, seqs, 8), 0);
  CHECK_INT (stats_of (self).nacked, 3);
  CHECK_INT (stats_of (self).given_up, 0);
  weir_receive_free (self);
}

static void
packets_are_asked_for_only_where_that_was_agreed (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self;
  uint16_t seqs[8];

  settings.tracks[1].nack = false;
  self = make (&settings);
  take_video (self, 10, 0);
  take_video (self, 12, 0);
  CHECK_INT (nacks_at (self, 400 * MS, seqs, 8), 0);
  take_video (self, 13, 500 * MS);
  nacks_at (self, 500 * MS, seqs, 8);
  CHECK_INT (stats_of (self).given_up, 1);
  CHECK_INT (stats_of (self).keys_asked, 1); // it does not come
  weir_receive_free (self);
}

static void
settings_that_make_no_sense_are_refused (void)
{
  WeirReceive *self = NULL;

  for (int i = 0; i < 9; i++) {
    WeirReceiveSettings settings = usual;
    WeirReceiveTrack *track = &settings.tracks[1];

    if (i == 0)
      settings.n_tracks = WEIR_RECEIVE_TRACKS + 1;
    else if (i == 1)
      track->n_payloads = WEIR_RECEIVE_PAYLOADS + 1;
    else if (i == 2)
      track->payloads[0].pt = 128;
    else if (i == 3)
      track->payloads[0].rtx_pt = 128;
    else if (i == 4)
      track->payloads[0].rtx_pt = 102;
    else if (i == 5)
      track->payloads[0].clock_rate = 0;
    else if (i == 6)
      settings.mid_id = 15;
    else if (i == 7)
      settings.twcc_id = 15;
    else
      track->payloads[track->n_payloads++] = track->payloads[0];
    CHECK_INT (weir_receive_new (&settings, &self), -EINVAL);
  }
  weir_receive_free (NULL);
}

static void
what_is_not_rtp_is_malformed (void)
{
  WeirReceive *self = make (&usual);
  Packet whole = packet_of (VIDEO, 102, 1, slice, sizeof slice);

  extend (&whole, '1', 1);
  for (size_t len = 0; len < RTP_HEADER + 12; len++) {
    uint8_t *copy = malloc (len ? len : 1); // of this size, for sanitizers
    WeirReceived got;

    memcpy (copy, whole.data, len);
    weir_receive_take (self, copy, len, 0, &got);
    CHECK_INT (got.kind, WEIR_RECEIVE_MALFORMED);
    free (copy);
  }
  CHECK_INT (weir_receive_due (self), WEIR_NEVER);
  weir_receive_free (self);
}

static void
the_mid_tells_tracks_with_the_same_payload_type_apart (void)
{
  WeirReceiveSettings settings = usual;
  WeirReceive *self;
  Packet packet = packet_of (VIDEO, 102, 1, slice, sizeof slice);

  settings.tracks[2] = settings.tracks[1];
  strcpy (settings.tracks[2].mid, "2");
  settings.n_tracks = 3;
  self = make (&settings);
  CHECK_INT (take_packet (self, &packet, 0), WEIR_RECEIVE_STRAY); // of which?
  packet = packet_of (VIDEO, 102, 2, slice, sizeof slice);
  extend (&packet, '3', 1); // of none
  CHECK_INT (take_packet (self, &packet, 0), WEIR_RECEIVE_STRAY);
  packet = packet_of (VIDEO, 102, 3, slice, sizeof slice);
  extend (&packet, '2', 2);
  CHECK_INT (take_packet (self, &packet, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (packet.got.track, 2);
  // Browsers leave the MID out once they know that it came.
  packet = packet_of (VIDEO, 102, 4, slice, sizeof slice);
  CHECK_INT (take_packet (self, &packet, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (packet.got.track, 2);
  weir_receive_free (self);
}

// A retransmission with padding, a contributor and an extension.
static void
a_retransmission_keeps_what_is_the_packets_own (void)
{
  static const uint8_t again[] = {
    0xb1, 0x80 | 103, 0, 7, 1, 2, 3, 4, 0x22, 0x22, 0x22, 0x22, // padded, extended, marked
    9, 9, 9, 9,                                                 // contributor
    0xbe, 0xde, 0, 1, MID << 4, '1', 0, 0,                      // extension
    0x12, 0x34, 0x41, 0x9a,                                     // original number, payload
    0, 0, 3,                                                    // padding
  };
  static const uint8_t expected[] = {
    0xa1, 0x80 | 102, 0x12, 0x34, 1, 2, 3, 4, 0x11, 0x11, 0x11, 0x11, //
    9, 9, 9, 9, 0x41, 0x9a, 0, 0, 3,                                  //
  };
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  Packet packet = { .len = sizeof again };

  take_video (self, 0x1233, 0);
  memcpy (packet.data, again, sizeof again);
  CHECK_INT (take_packet (self, &packet, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (packet.got.len, sizeof expected);
  CHECK (!memcmp (packet.got.data, expected, sizeof expected));
  CHECK (packet.got.data + packet.got.len == packet.data + sizeof again);
  weir_receive_free (self);
}

// ---- SSRCs ----

static void
another_ssrc_goes_on_with_the_track (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  uint16_t seqs[8];
  Packet again;

  take_video (self, 1, 0);
  take_video (self, 3, 0);
  CHECK_INT (take (self, VIDEO + 1, 102, 500, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (nacks_at (self, 5 * MS, seqs, 8), 0); // of the one before
  take (self, VIDEO + 1, 102, 502, 5 * MS);
  again = take_again (self, 501, 6 * MS);
  CHECK_INT (again.got.kind, WEIR_RECEIVE_MEDIA);
  CHECK_INT (weir_rtp_get_ssrc (again.data), VIDEO + 1);
  weir_receive_free (self);
}

static void
too_many_ssrcs_are_refused_until_one_is_silent (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);

  for (uint32_t i = 0; i < WEIR_RECEIVE_SOURCES; i++)
    CHECK_INT (take (self, VIDEO + i, 102, 1, (int64_t) i * MS), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take (self, AUDIO, 111, 1, 999 * MS), WEIR_RECEIVE_CROWDED);
  CHECK_INT (take (self, AUDIO, 111, 2, 1000 * MS), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take (self, VIDEO, 102, 2, 1000 * MS), WEIR_RECEIVE_CROWDED);
  weir_receive_free (self);
}

static void
goodbye_ends_an_ssrc (void)
{
  static const uint8_t bye[] = { 0x80, 201, 0, 1, 1, 1, 1, 1, // reports on nothing
    0x82, 203, 0, 2, 0x11, 0x11, 0x11, 0x11, 0x33, 0x33, 0x33, 0x33 };
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);

  take_video (self, 100, 0);
  take_video (self, 102, 0);
  take (self, AUDIO, 111, 7, 0);
  CHECK_INT (weir_receive_take_rtcp (self, bye, sizeof bye - 1, 0), -EBADMSG);
  CHECK_INT (take_video (self, 102, 0), WEIR_RECEIVE_DUPLICATE);
  CHECK_INT (weir_receive_take_rtcp (self, bye, sizeof bye, 0), 0);
  CHECK_INT (stats_of (self).given_up, 1);
  CHECK_INT (take_again (self, 101, 0).got.kind, WEIR_RECEIVE_STRAY);
  CHECK_INT (take_video (self, 102, 0), WEIR_RECEIVE_MEDIA); // anew
  CHECK_INT (take (self, AUDIO, 111, 7, 0), WEIR_RECEIVE_MEDIA);
  weir_receive_free (self);
}

static void
numbers_far_behind_restart_if_two_are_in_a_row (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);

  take_video (self, 1000, 0);
  CHECK_INT (take_video (self, 1000 - 511, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take_video (self, 1000 - 512, 0), WEIR_RECEIVE_LATE);
  CHECK_INT (take_again (self, 1000 - 511, 0).got.kind, WEIR_RECEIVE_DUPLICATE);
  // Retransmissions restart nothing.
  CHECK_INT (take_again (self, 1000 - 512, 0).got.kind, WEIR_RECEIVE_LATE);
  CHECK_INT (take_again (self, 1000 - 511, 0).got.kind, WEIR_RECEIVE_DUPLICATE);
  CHECK_INT (take_again (self, 900, 0).got.kind, WEIR_RECEIVE_MEDIA);
  for (uint16_t i = 0; i < 3; i++)
    CHECK_INT (take_again (self, 100 + i, 0).got.kind, WEIR_RECEIVE_LATE);
  CHECK_INT (take_video (self, 7, 0), WEIR_RECEIVE_LATE);
  CHECK_INT (take_video (self, 8, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take_video (self, 9, 0), WEIR_RECEIVE_MEDIA);
  CHECK_INT (take_video (self, 8, 0), WEIR_RECEIVE_DUPLICATE);
  CHECK_INT (stats_of (self).given_up, 0);
  weir_receive_free (self);
}

// ---- feedback ----

static void
reports_tell_of_losses_and_of_the_last_sender_report (void)
{
  static const uint8_t sr[] = {
    0x80,
    200,
    0,
    6,
    0x11,
    0x11,
    0x11,
    0x11, // header, SSRC
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    1, // NTP time, the rest
    0x80,
    200,
    0,
    6,
    0x33,
    0x33,
    0x33,
    0x33, // another one
    0,
    0,
    0xaa,
    0xbb,
    0xcc,
    0xdd,
    0,
    0,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    1,
  };
  static const uint8_t expected[] = {
    0x82,
    201,
    0,
    13,
    0xde,
    0xad,
    0xbe,
    0xef, // header, reporter
    0x33,
    0x33,
    0x33,
    0x33,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    5,
    0,
    0,
    0,
    0, // sound: nothing lost
    0xaa,
    0xbb,
    0xcc,
    0xdd,
    0,
    0,
    0x40,
    0, // 250 ms before
    0x11,
    0x11,
    0x11,
    0x11,
    127,
    0,
    0,
    1,
    0,
    0,
    0,
    11,
    0,
    0,
    0,
    0, // 1 of 2 lost
    3,
    4,
    5,
    6,
    0,
    0,
    0x40,
    0, //
    0x81,
    202,
    0,
    3,
    0xde,
    0xad,
    0xbe,
    0xef,
    1,
    4,
    'a',
    '@',
    'b',
    'c',
    0,
    0,
  };
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self;
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];

  settings.tracks[1].nack = settings.tracks[1].pli = false;
  self = make (&settings);
  take (self, AUDIO, 111, 5, 0);
  take_video (self, 9, 0);
  CHECK_INT (weir_receive_write_rtcp (self, 500 * MS, out), 8 + 2 * 24 + 16);
  take (self, AUDIO, 111, 5, 1000 * MS);
  take_video (self, 11, 1000 * MS);
  take_again (self, 10, 1000 * MS); // says nothing of how media arrives
  weir_receive_take_rtcp (self, sr, sizeof sr, 1250 * MS);
  CHECK_INT (weir_receive_write_rtcp (self, 1500 * MS - 1, out), 0);
  CHECK_INT (weir_receive_write_rtcp (self, 1500 * MS, out), sizeof expected);
  memset (out + 8 + 12, 0, 4); // jitter
  memset (out + 8 + 24 + 12, 0, 4);
  CHECK (!memcmp (out, expected, sizeof expected));
  // Nothing came since: one report without blocks, and then none.
  CHECK_INT (weir_receive_write_rtcp (self, 2500 * MS, out), 8 + 16);
  CHECK_INT (weir_receive_due (self), WEIR_NEVER);
  weir_receive_free (self);
}

static void
a_bit_rate_goes_with_each_report (void)
{
  static const uint8_t remb[] = { 0x8f, 206, 0, 5, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 'R', 'E',
    'M', 'B', 1, 0x13, 0xd0, 0x90, 0x11, 0x11, 0x11, 0x11 };
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self;
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];

  settings.remb_bps = 4000000;
  self = make (&settings);
  take_video (self, 1, 0);
  CHECK_INT (weir_receive_write_rtcp (self, 500 * MS, out), 8 + 24 + 16 + sizeof remb);
  CHECK (!memcmp (out + 8 + 24 + 16, remb, sizeof remb));
  weir_receive_free (self);
}

// Returns how often a keyframe is asked for from one time to another.
static unsigned
keys_in (WeirReceive *self, int64_t from_ns, int64_t to_ns)
{
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];
  unsigned n = 0;

  for (int64_t now_ns = from_ns; now_ns <= to_ns; now_ns += 10 * MS)
    n += weir_rtcp_asks_key (out, weir_receive_write_rtcp (self, now_ns, out), VIDEO);
  return n;
}

static void
a_keyframe_is_asked_for_until_it_comes (void)
{
  static const uint8_t sets[] = { 24, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce }; // STAP-A
  static const uint8_t first[] = { 0x7c, 0x85, 0x88, 0x80 };                // FU-A, first of an IDR
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  Packet packet;

  weir_receive_ask_key (self, 0); // sound has none
  weir_receive_ask_key (self, 7);
  weir_receive_ask_key (self, 1);
  CHECK_INT (weir_receive_due (self), WEIR_NEVER); // of which SSRC?
  take_video (self, 1, 0);
  CHECK (weir_receive_due (self) <= 0);
  CHECK_INT (keys_in (self, 0, 0), 1);
  CHECK_INT (weir_receive_due (self), 500 * MS);
  weir_receive_ask_key (self, 1);
  CHECK_INT (keys_in (self, 10 * MS, 1100 * MS), 2); // at 500 and 1000 ms
  packet = packet_of (VIDEO, 102, 2, sets, sizeof sets);
  take_packet (self, &packet, 1100 * MS);
  CHECK (!packet.got.begins_key);
  CHECK (weir_receive_due (self) <= 1500 * MS);
  packet = packet_of (VIDEO, 102, 3, first, sizeof first);
  take_packet (self, &packet, 1100 * MS);
  CHECK (packet.got.begins_key);
  CHECK_INT (keys_in (self, 1100 * MS, 5000 * MS), 0);
  packet = packet_of (VIDEO, 102, 4, first, sizeof first);
  take_packet (self, &packet, 1100 * MS);
  CHECK (packet.got.begins_key); // also while none is wanted
  CHECK_INT (stats_of (self).keys_asked, 3);
  weir_receive_free (self);
}

static void
a_keyframe_that_never_comes_is_forgotten (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);

  take_video (self, 1, 0);
  weir_receive_ask_key (self, 1);
  CHECK_INT (keys_in (self, 0, 60000 * MS), 20);
  weir_receive_ask_key (self, 1);
  CHECK_INT (keys_in (self, 60010 * MS, 60100 * MS), 1);
  weir_receive_free (self);
}

static void
a_packet_that_is_given_up_makes_a_keyframe_wanted (void)
{
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);

  take_video (self, 1, 0);
  take_video (self, 3, 0);
  CHECK_INT (keys_in (self, 0, 490 * MS), 0);
  CHECK_INT (keys_in (self, 500 * MS, 500 * MS), 1);
  CHECK_INT (stats_of (self).given_up, 1);
  CHECK_INT (stats_of (self).nacked, 4); // at 5, 130, 255 and 380 ms
  weir_receive_free (self);
}

// A packet of every kind that the publisher sends has a transport-wide number.
static void
transport_feedback_tells_of_every_packet (void)
{
  static const uint8_t expected[] = {
    0x8f, 205, 0, 5, 0xde, 0xad, 0xbe, 0xef, 0x33, 0x33, 0x33, 0x34, // of the last SSRC
    0, 1, 0, 4, 0, 0, 0, 0, 0x20, 4,                                 // 1 to 4
  };
  WeirReceiveSettings settings = usual;
  WeirReceive *self = make (&settings);
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];
  Packet packets[] = {
    packet_of (VIDEO, 102, 1, slice, sizeof slice),
    packet_of (VIDEO, 102, 1, slice, sizeof slice),    // a duplicate
    packet_of (VIDEO_RTX, 103, 1, slice, 0),           // padding
    packet_of (AUDIO + 1, 96, 1, slice, sizeof slice), // a stray
  };

  for (uint16_t i = 0; i < 4; i++) {
    extend (&packets[i], i < 3 ? '1' : '7', 1 + i);
    take_packet (self, &packets[i], 0);
  }
  CHECK_INT (weir_receive_due (self), 64 * MS);
  CHECK_INT (weir_receive_write_rtcp (self, 64 * MS, out), 28);
  CHECK_INT (out[3], 6);
  CHECK (!memcmp (out + 4, expected + 4, sizeof expected - 4));
  CHECK_INT (stats_of (self).feedback, 1);
  weir_receive_free (self);
}

static void
a_compound_begins_with_a_report_unless_that_is_not_needed (void)
{
  WeirReceiveSettings settings = usual;
  WeirReceive *self;
  uint8_t out[WEIR_RECEIVE_RTCP_MAX];

  settings.reduced_size = false;
  self = make (&settings);
  take_video (self, 1, 0);
  weir_receive_ask_key (self, 1);
  CHECK_INT (weir_receive_write_rtcp (self, 0, out), 8 + 16 + 12);
  CHECK (out[0] == 0x80 && out[1] == 201 && out[9] == 202 && out[8 + 16 + 1] == 206);
  weir_receive_free (self);
}

// Each 18th packet is lost: an entry for each.
static void
much_feedback_is_several_packets (void)
{
  WeirReceive *self = make (&usual);
  size_t asked = 0, len, n;

  for (unsigned i = 0; i < 18 * WEIR_NACKS_MAX; i++) {
    Packet packet = packet_of (VIDEO, 102, (uint16_t) i, slice, sizeof slice);

    extend (&packet, '1', (uint16_t) i);
    if (i % 18 != 17)
      take_packet (self, &packet, 0);
  }
  take_video (self, 18 * WEIR_NACKS_MAX, 0);
  weir_receive_ask_key (self, 1);
  for (n = 0; n < 10; n++) {
    uint8_t *out = malloc (WEIR_RECEIVE_RTCP_MAX); // of this size, for sanitizers
    uint16_t seqs[2 * WEIR_NACKS_MAX];

    len = weir_receive_write_rtcp (self, 5 * MS, out);
    CHECK (len <= WEIR_RECEIVE_RTCP_MAX);
    asked += weir_rtcp_read_nacks (out, len, VIDEO, seqs, 2 * WEIR_NACKS_MAX);
    free (out);
    if (len == 0)
      break;
  }
  CHECK_INT (n, 2);
  CHECK_INT (asked, WEIR_NACKS_MAX);
  CHECK_INT (stats_of (self).feedback, 2);
  CHECK_INT (stats_of (self).keys_asked, 1);
  CHECK (weir_receive_due (self) > 5 * MS);
  weir_receive_free (self);
}

// ---- a sender with losses ----

#define SENT 20000

// A retransmission on its way.
typedef struct {
  int64_t at_ns; // when it arrives
  uint16_t seq;
} Flying;

static void
what_is_lost_comes_again_once (void)
{
  static uint8_t came[SENT];
  WeirReceiveSettings settings = without_twcc ();
  WeirReceive *self = make (&settings);
  Flying again[1024];
  size_t n_again = 0, n_sent = 0, n_came = 0;

  memset (came, 0, sizeof came);
  for (unsigned i = 0; i < SENT; i++) {
    int64_t now_ns = i * MS;
    uint8_t out[WEIR_RECEIVE_RTCP_MAX];
    uint16_t seqs[WEIR_NACKS_MAX];
    size_t n, kept = 0;

    // 5 % of all are lost, but for the last ones.
    if (i == 0 || i > SENT - 1000 || !random_percent (5))
      came[i] += take_video (self, (uint16_t) (60000 + i), now_ns) == WEIR_RECEIVE_MEDIA;
    n = weir_rtcp_read_nacks (
        out, weir_receive_write_rtcp (self, now_ns, out), VIDEO, seqs, WEIR_NACKS_MAX);
    for (size_t k = 0; k < n; k++) {
      n_sent++;
      if (!random_percent (5))
        again[n_again++] = (Flying) { now_ns + 60 * MS, seqs[k] };
    }
    for (size_t k = 0; k < n_again; k++) {
      if (again[k].at_ns > now_ns)
        again[kept++] = again[k];
      else
        came[(uint16_t) (again[k].seq - 60000)] +=
            take_again (self, again[k].seq, now_ns).got.kind == WEIR_RECEIVE_MEDIA;
    }
    n_again = kept;
  }
  for (unsigned i = 0; i < SENT; i++)
    n_came += came[i] == 1;
  CHECK_INT (n_came, SENT);
  CHECK_INT (stats_of (self).given_up, 0);
  CHECK_INT (stats_of (self).nacked, n_sent);
  CHECK (n_sent < stats_of (self).recovered * 11 / 10); // 1.05 on average
  CHECK (stats_of (self).round_trip_ns >= 60 * MS && stats_of (self).round_trip_ns < 140 * MS);
  CHECK_INT (stats_of (self).keys_asked, 0);
  weir_receive_free (self);
}

int
main (void)
{
  random_init ();
  RUN (streams_are_told_apart);
  RUN (layers_are_told_apart_by_their_rid_until_their_ssrc_is_known);
  RUN (the_only_layer_needs_no_rid);
  RUN (each_layer_is_asked_for_its_own_keyframe_and_packets);
  RUN (a_retransmission_is_the_packet_that_it_repeats);
  RUN (lost_packets_are_asked_for_until_they_come);
  RUN (packets_are_asked_for_only_where_that_was_agreed);
  RUN (settings_that_make_no_sense_are_refused);
  RUN (what_is_not_rtp_is_malformed);
  RUN (the_mid_tells_tracks_with_the_same_payload_type_apart);
  RUN (a_retransmission_keeps_what_is_the_packets_own);
  RUN (another_ssrc_goes_on_with_the_track);
  RUN (too_many_ssrcs_are_refused_until_one_is_silent);
  RUN (goodbye_ends_an_ssrc);
  RUN (numbers_far_behind_restart_if_two_are_in_a_row);
  RUN (reports_tell_of_losses_and_of_the_last_sender_report);
  RUN (a_bit_rate_goes_with_each_report);
  RUN (a_keyframe_is_asked_for_until_it_comes);
  RUN (a_keyframe_that_never_comes_is_forgotten);
  RUN (a_packet_that_is_given_up_makes_a_keyframe_wanted);
  RUN (transport_feedback_tells_of_every_packet);
  RUN (a_compound_begins_with_a_report_unless_that_is_not_needed);
  RUN (much_feedback_is_several_packets);
  RUN (what_is_lost_comes_again_once);
  return tap_done ();
}
