// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/receive.h"

#include <errno.h>
#include <stdlib.h>

#include "packets.h"
#include "rtp/rtcp_read.h"
#include "rtp/rtp.h"
#include "tap.h"

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

static Packet
take_again (WeirReceive *self, uint16_t seq, int64_t now_ns)
{
  const uint8_t payload[] = { (uint8_t) (seq >> 8), (uint8_t) seq, 0x41, 0x9a, 1, 2 };
  Packet packet = packet_of (VIDEO_RTX, 103, 7, payload, sizeof payload);

  take_packet (self, &packet, now_ns);
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
  CHECK (!memcmp (again.got.data, lost.data, lost.len));
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

int
main (void)
{
  RUN (streams_are_told_apart);
  RUN (a_retransmission_is_the_packet_that_it_repeats);
  RUN (lost_packets_are_asked_for_until_they_come);
  return tap_done ();
}
