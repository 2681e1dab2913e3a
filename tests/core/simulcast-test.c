// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/simulcast.h"

#include <errno.h>

#include "codec/picture_size.h"
#include "packets.h"
#include "tap.h"

#define MS INT64_C (1000000)
#define OUT 0x77777777
#define RATE 90000

// Keyframes of VP8, of 320 x 180, 640 x 360 and 1280 x 720; and a later picture.
static const uint8_t small_key[] = { 0x10, 0x10, 2, 0, 0x9d, 1, 0x2a, 64, 1, 180, 0, 9 };
static const uint8_t middle_key[] = { 0x10, 0x10, 2, 0, 0x9d, 1, 0x2a, 128, 2, 104, 1, 9 };
static const uint8_t large_key[] = { 0x90, 0x80, 5, 0x10, 2, 0, 0x9d, 1, 0x2a, 0, 5, 208, 2, 9 };
static const uint8_t picture[] = { 0x10, 0x11, 2, 0, 9 };

typedef struct {
  WeirSimulcast all;
  WeirSimulcastView view;
  int64_t now_ns;
  uint8_t data[64];
  WeirRtp got; // of the packet that left last
} Fixture;

static void
set_up (Fixture *self, size_t n_layers, size_t rank)
{
  *self = (Fixture) { .now_ns = MS };
  weir_simulcast_init (&self->all, n_layers, WEIR_CODEC_VP8, RATE);
  weir_simulcast_view_init (&self->view, rank, OUT);
}

// Numbers of a layer that begin somewhere, and grow by 40 ms.
static uint16_t
seq_of (size_t layer, unsigned n)
{
  return (uint16_t) (65500 + 1000 * layer + n);
}

static uint32_t
time_of (size_t layer, unsigned n)
{
  return UINT32_MAX - 5000 - 100000 * (uint32_t) layer + n * 3600;
}

// Takes a packet. Returns whether it is the view's.
static bool
take (Fixture *self, size_t layer, unsigned n, const uint8_t *payload, size_t len, bool marker)
{
  WeirSimulcastPacket packet;
  bool is_taken;

  put_rtp (self->data, seq_of (layer, n), time_of (layer, n), marker);
  memcpy (self->data + RTP_HEADER, payload, len);
  CHECK_INT (
      weir_simulcast_take (&self->all, layer, self->data, RTP_HEADER + len, self->now_ns, &packet),
      0);
  is_taken = weir_simulcast_view_take (&self->all, &self->view, &packet, self->data);
  if (is_taken)
    CHECK_INT (weir_rtp_parse (self->data, RTP_HEADER + len, &self->got), 0);
  return is_taken;
}

#define TAKE(self, layer, n, payload) take (self, layer, n, payload, sizeof payload, true)

static void
pass (Fixture *self, unsigned ms)
{
  self->now_ns += ms * MS;
}

// Lets pictures of a layer come, each 40 ms. Returns how many are the view's.
static unsigned
play (Fixture *self, size_t layer, unsigned from, unsigned n)
{
  unsigned taken = 0;

  for (unsigned i = 0; i < n; i++) {
    pass (self, 40);
    taken += TAKE (self, layer, from + i, picture);
  }
  return taken;
}

static void
a_view_begins_with_a_keyframe_of_any_layer (void)
{
  Fixture self;

  set_up (&self, 3, 0);
  CHECK (!TAKE (&self, 2, 0, picture));
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), 2);
  CHECK (TAKE (&self, 2, 1, small_key));
  CHECK_INT (self.got.seq, seq_of (2, 1));
  CHECK_INT (self.got.timestamp, time_of (2, 1));
  CHECK_INT (self.got.ssrc, OUT);
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), WEIR_SIMULCAST_NONE);
}

static void
a_larger_layer_takes_over_at_its_keyframe (void)
{
  Fixture self;
  WeirRtp before;

  set_up (&self, 3, 0);
  TAKE (&self, 2, 0, small_key);
  CHECK_INT (play (&self, 2, 1, 3), 3);
  before = self.got;
  CHECK (!TAKE (&self, 0, 5, picture));
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), 0);
  pass (&self, 40);
  CHECK (TAKE (&self, 0, 6, large_key));
  CHECK_INT (self.got.seq, (uint16_t) (before.seq + 1));
  CHECK_INT (self.got.timestamp, before.timestamp + 3600); // by arrival
  CHECK_INT (self.got.ssrc, OUT);
  CHECK (!TAKE (&self, 2, 4, picture));
  CHECK (!TAKE (&self, 2, 5, small_key));
  CHECK (TAKE (&self, 0, 8, picture)); // one is lost
  CHECK_INT (self.got.seq, (uint16_t) (before.seq + 3));
  CHECK_INT (self.got.timestamp, before.timestamp + 3 * 3600);
}

static void
layers_are_in_order_of_their_size (void)
{
  Fixture self;

  // The publisher names the smallest one first.
  set_up (&self, 3, 0);
  TAKE (&self, 0, 0, small_key);
  CHECK (TAKE (&self, 1, 0, middle_key));
  CHECK (TAKE (&self, 2, 0, large_key));
  CHECK (!TAKE (&self, 0, 1, small_key));
  CHECK (!TAKE (&self, 1, 1, middle_key));
  CHECK (self.all.order[0] == 2 && self.all.order[1] == 1 && self.all.order[2] == 0);
}

static void
a_view_of_a_rank_has_that_layer (void)
{
  Fixture self;

  set_up (&self, 3, 1);
  CHECK (TAKE (&self, 0, 0, large_key)); // there is no other one yet
  CHECK (TAKE (&self, 2, 0, small_key));
  CHECK (TAKE (&self, 1, 0, middle_key));
  CHECK (!TAKE (&self, 0, 1, large_key));
  CHECK (!TAKE (&self, 2, 1, small_key));
  CHECK (TAKE (&self, 1, 1, picture));
}

static void
a_layer_that_stops_is_replaced_by_the_next_smaller_one (void)
{
  Fixture self;
  WeirRtp before;

  set_up (&self, 3, 0);
  TAKE (&self, 2, 0, small_key);
  TAKE (&self, 1, 0, middle_key);
  TAKE (&self, 0, 0, large_key);
  before = self.got; // the third picture of one instant
  CHECK_INT (before.timestamp, time_of (2, 0) + 2 * 90);
  for (unsigned i = 1; i <= 24; i++) {
    CHECK_INT (play (&self, 1, i, 1), 0);
    CHECK (!TAKE (&self, 2, i, small_key));
  }
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), WEIR_SIMULCAST_NONE);
  pass (&self, 40);
  CHECK (!TAKE (&self, 1, 25, picture)); // 1 s
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), 1);
  CHECK (!TAKE (&self, 2, 25, small_key));
  pass (&self, 40);
  CHECK (TAKE (&self, 1, 26, middle_key));
  CHECK_INT (self.got.seq, (uint16_t) (before.seq + 1));
  CHECK_INT (self.got.timestamp, time_of (2, 0) + 26 * 3600);
  // It comes back.
  CHECK (!TAKE (&self, 0, 27, picture));
  CHECK_INT (weir_simulcast_view_wanted (&self.all, &self.view), 0);
  CHECK (TAKE (&self, 0, 28, large_key));
}

static void
pictures_that_stand_still_are_no_reason_to_change (void)
{
  Fixture self;

  set_up (&self, 2, 0);
  TAKE (&self, 0, 0, large_key);
  TAKE (&self, 1, 0, small_key);
  for (unsigned i = 1; i < 20; i++) {
    pass (&self, 2000);
    CHECK (!TAKE (&self, 1, i, small_key));
    CHECK (TAKE (&self, 0, i, picture));
  }
}

static void
a_picture_is_not_cut_off (void)
{
  Fixture self;

  set_up (&self, 2, 0);
  TAKE (&self, 1, 0, small_key);
  CHECK (take (&self, 1, 1, picture, sizeof picture, false));
  CHECK (!TAKE (&self, 0, 0, large_key));
  CHECK (TAKE (&self, 1, 1, picture));
  CHECK (TAKE (&self, 0, 1, large_key));
  // Unless the rest of it does not come.
  set_up (&self, 2, 0);
  TAKE (&self, 1, 0, small_key);
  CHECK (take (&self, 1, 1, picture, sizeof picture, false));
  pass (&self, 101);
  CHECK (TAKE (&self, 0, 0, large_key));
}

// A report that says that number `n` of the layer was taken at `ms`.
static void
report (Fixture *self, size_t layer, unsigned n, int64_t ms)
{
  weir_simulcast_report (&self->all, layer,
      &(WeirNtpMap) { true, weir_ntp_from_unix (1700000000000 * MS + ms * MS), time_of (layer, n),
          (uint32_t) layer });
}

static void
reports_put_the_layers_on_one_clock (void)
{
  WeirNtpMap map;
  Fixture self;
  uint32_t before;

  set_up (&self, 2, 0);
  CHECK (!weir_simulcast_view_report (&self.all, &self.view, &map));
  TAKE (&self, 1, 10, small_key);
  CHECK (!weir_simulcast_view_report (&self.all, &self.view, &map));
  before = self.got.timestamp;
  report (&self, 1, 10, 0);
  report (&self, 0, 3, 40); // 40 ms later
  // It takes 70 ms more to come.
  pass (&self, 110);
  CHECK (TAKE (&self, 0, 3, large_key));
  CHECK_INT (self.got.timestamp, before + 3600);
  CHECK (TAKE (&self, 0, 4, picture));
  CHECK_INT (self.got.timestamp, before + 2 * 3600);
  CHECK (weir_simulcast_view_report (&self.all, &self.view, &map));
  CHECK_INT (map.timestamp, before + 3600);
  CHECK_INT (map.ssrc, OUT);
  // A report that is wrong by 2 s is not believed.
  report (&self, 1, 20, 2080);
  before = self.got.timestamp;
  for (unsigned i = 0; i < 30; i++) {
    pass (&self, 40);
    TAKE (&self, 1, 20 + i, picture);
  }
  CHECK (TAKE (&self, 1, 50, small_key));
  CHECK_INT (self.got.timestamp, before + 30 * 3600);
}

static void
an_instant_that_has_passed_comes_a_little_later (void)
{
  Fixture self;
  uint32_t before;

  set_up (&self, 2, 0);
  TAKE (&self, 1, 10, small_key);
  TAKE (&self, 1, 13, picture);
  before = self.got.timestamp;
  report (&self, 1, 10, 0);
  report (&self, 0, 10, 0);
  CHECK (take (&self, 0, 11, large_key, sizeof large_key, false)); // 2 pictures ago
  CHECK_INT (self.got.timestamp, before + 90);
  CHECK (TAKE (&self, 0, 11, picture)); // of the same picture
  CHECK_INT (self.got.timestamp, before + 90);
  CHECK (TAKE (&self, 0, 12, picture));
  CHECK_INT (self.got.timestamp, before + 180);
  CHECK (TAKE (&self, 0, 13, picture));
  CHECK_INT (self.got.timestamp, before + 270);
  CHECK (TAKE (&self, 0, 14, picture));
  CHECK_INT (self.got.timestamp, before + 3600); // it has caught up
  CHECK (TAKE (&self, 0, 13, picture));          // B pictures go back in time
  CHECK_INT (self.got.timestamp, before);
}

static void
views_share_a_packet (void)
{
  WeirSimulcastView other;
  WeirSimulcastPacket packet;
  Fixture self;

  set_up (&self, 2, 0);
  weir_simulcast_view_init (&other, 1, OUT + 1);
  TAKE (&self, 1, 7, small_key);
  put_rtp (self.data, 5, 7, true);
  memcpy (self.data + RTP_HEADER, large_key, sizeof large_key);
  weir_simulcast_take (
      &self.all, 0, self.data, RTP_HEADER + sizeof large_key, self.now_ns, &packet);
  CHECK (weir_simulcast_view_take (&self.all, &self.view, &packet, self.data));
  CHECK_INT (weir_rtp_get_seq (self.data), seq_of (1, 8));
  CHECK (!weir_simulcast_view_take (&self.all, &other, &packet, self.data)); // the small one flows
  put_rtp (self.data, 900, 7, true);
  memcpy (self.data + RTP_HEADER, small_key, sizeof small_key);
  weir_simulcast_take (
      &self.all, 1, self.data, RTP_HEADER + sizeof small_key, self.now_ns, &packet);
  CHECK (weir_simulcast_view_take (&self.all, &other, &packet, self.data));
  CHECK_INT (weir_rtp_get_seq (self.data), 900);
  CHECK_INT (weir_rtp_get_ssrc (self.data), OUT + 1);
}

static void
what_is_not_rtp_is_refused (void)
{
  WeirSimulcastPacket packet;
  Fixture self;

  set_up (&self, 2, 0);
  CHECK_INT (
      weir_simulcast_take (&self.all, 0, (const uint8_t[]) { 1, 2 }, 2, 0, &packet), -EBADMSG);
}

static void
sizes_are_read_from_keyframes (void)
{
  // A set of 640 x 360 (profile 66, level 3.0), alone and in an aggregate.
  static const uint8_t set[] = { 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xbf, 0xe5, 0x84, 0, 0,
    3, 0, 4, 0, 0, 3, 0, 0xc8, 0x3c, 0x58, 0xba, 0x80 };
  uint8_t aggregate[3 + 2 + 2 + sizeof set] = { 0x78, 0, 2, 0x68, 0xce, 0, sizeof set };

  memcpy (aggregate + 7, set, sizeof set);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, set, sizeof set), 640 * 360);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, aggregate, 7 + sizeof set), 640 * 360);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, aggregate, 7 + sizeof set - 1), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, set, 5), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, set, 0), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_H264, picture, sizeof picture), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_VP8, small_key, sizeof small_key), 320 * 180);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_VP8, large_key, sizeof large_key), 1280 * 720);
  for (size_t len = 0; len < sizeof large_key - 1; len++)
    CHECK_INT (weir_picture_pixels (WEIR_CODEC_VP8, large_key, len), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_VP8, picture, sizeof picture), 0);
  CHECK_INT (weir_picture_pixels (WEIR_CODEC_AV1, large_key, sizeof large_key), 0);
}

int
main (void)
{
  RUN (a_view_begins_with_a_keyframe_of_any_layer);
  RUN (a_larger_layer_takes_over_at_its_keyframe);
  RUN (layers_are_in_order_of_their_size);
  RUN (a_view_of_a_rank_has_that_layer);
  RUN (a_layer_that_stops_is_replaced_by_the_next_smaller_one);
  RUN (pictures_that_stand_still_are_no_reason_to_change);
  RUN (a_picture_is_not_cut_off);
  RUN (reports_put_the_layers_on_one_clock);
  RUN (an_instant_that_has_passed_comes_a_little_later);
  RUN (views_share_a_packet);
  RUN (what_is_not_rtp_is_refused);
  RUN (sizes_are_read_from_keyframes);
  return tap_done ();
}
