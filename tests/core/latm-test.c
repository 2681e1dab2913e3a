// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/latm.h"

#include <errno.h>

#include "tap.h"

// A frame of LOAS that is written bit by bit.
typedef struct {
  uint8_t bytes[512];
  size_t n; // bits
} Loas;

static void
put (Loas *loas, uint32_t value, unsigned n)
{
  while (n-- > 0) {
    loas->bytes[loas->n / 8] |= (uint8_t) ((value >> n & 1) << (7 - loas->n % 8));
    loas->n++;
  }
}

static Loas
begin (void)
{
  Loas loas = { 0 };

  put (&loas, 0x2b7, 11);
  put (&loas, 0, 13);
  return loas;
}

static size_t
end (Loas *loas)
{
  size_t len = (loas->n + 7) / 8 - 3;

  loas->bytes[1] = (uint8_t) (loas->bytes[1] | len >> 8);
  loas->bytes[2] = (uint8_t) len;
  return len + 3;
}

// Puts a StreamMuxConfig up to its AudioSpecificConfig.
static void
put_mux (Loas *loas, unsigned version, unsigned frames)
{
  put (loas, 0, 1); // there is a configuration
  put (loas, version, 1);
  if (version) {
    put (loas, 0, 1);
    put (loas, 0x0ff, 10); // a value of one byte
  }
  put (loas, 1, 1);
  put (loas, frames - 1, 6);
  put (loas, 0, 4 + 3);
  if (version)
    put (loas, 23, 10); // bits of the AudioSpecificConfig
}

static void
put_rest (Loas *loas)
{
  put (loas, 0, 3); // the length of frames is given
  put (loas, 255, 8);
  put (loas, 0, 2); // no other data, no checksum
}

static void
put_frame (Loas *loas, size_t size, uint8_t byte)
{
  for (size_t left = size;; left -= 255) {
    put (loas, left < 255 ? (uint32_t) left : 255, 8);
    if (left < 255)
      break;
  }
  while (size-- > 0)
    put (loas, byte, 8);
}

static int
read_loas (WeirLatm *latm, Loas *loas, bool *changed, size_t *sizes, uint8_t *out)
{
  return weir_latm_read (latm, loas->bytes, end (loas), out, sizes, changed);
}

static void
frames_and_their_configuration_are_read (void)
{
  size_t sizes[WEIR_LATM_FRAMES_MAX];
  uint8_t out[512];
  WeirLatm latm = { 0 };
  Loas with = begin (), without = begin ();
  bool changed;

  put (&without, 1, 1);
  put_frame (&without, 300, 0x5a);
  CHECK_INT (read_loas (&latm, &without, &changed, sizes, out), -EAGAIN);
  put_mux (&with, 0, 1);
  put (&with, 0x1190, 16); // LC, 48 kHz, stereo
  put_rest (&with);
  put_frame (&with, 3, 0xa5);
  CHECK_INT (read_loas (&latm, &with, &changed, sizes, out), 1);
  CHECK (changed && sizes[0] == 3 && out[0] == 0xa5 && out[2] == 0xa5);
  CHECK (latm.n_config == 2 && latm.config[0] == 0x11 && latm.config[1] == 0x90);
  CHECK (latm.rate == 48000 && latm.n_samples == 1024);
  CHECK_INT (read_loas (&latm, &with, &changed, sizes, out), 1);
  CHECK (!changed);
  CHECK_INT (read_loas (&latm, &without, &changed, sizes, out), 1);
  CHECK (!changed && sizes[0] == 300 && out[0] == 0x5a && out[299] == 0x5a);
}

static void
a_configuration_has_its_length_in_version_1 (void)
{
  size_t sizes[WEIR_LATM_FRAMES_MAX];
  uint8_t out[512];
  WeirLatm latm = { 0 };
  Loas loas = begin ();
  bool changed;

  put_mux (&loas, 1, 2);
  put (&loas, 0x1210, 16); // LC, 44.1 kHz, stereo
  put (&loas, 0x15, 7);    // what is not known
  put_rest (&loas);
  put_frame (&loas, 2, 1);
  put_frame (&loas, 255, 2);
  CHECK_INT (read_loas (&latm, &loas, &changed, sizes, out), 2);
  CHECK (changed && sizes[0] == 2 && sizes[1] == 255 && out[1] == 1 && out[256] == 2);
  CHECK (latm.n_config == 3 && latm.config[0] == 0x12 && latm.config[2] == 0x2a);
  CHECK_INT (latm.rate, 44100);
}

static void
channels_may_be_a_list (void)
{
  size_t sizes[WEIR_LATM_FRAMES_MAX];
  uint8_t out[512];
  WeirLatm latm = { 0 };
  Loas loas = begin ();
  bool changed;

  put_mux (&loas, 0, 1);
  put (&loas, 2, 5);
  put (&loas, 3, 4);
  put (&loas, 0, 4); // no number of channels
  put (&loas, 4, 3); // 960 samples
  put (&loas, 0, 10);
  put (&loas, 1, 4); // one element in front
  put (&loas, 0, 4 + 4 + 2 + 3 + 4 + 3);
  put (&loas, 0x10, 5);
  put (&loas, 0, 1); // to the byte: 55 bits are before this
  put (&loas, 1, 8);
  put (&loas, 'x', 8);
  put_rest (&loas);
  put_frame (&loas, 4, 7);
  CHECK_INT (read_loas (&latm, &loas, &changed, sizes, out), 1);
  CHECK (latm.n_config == 9 && latm.config[8] == 'x' && latm.n_samples == 960);
  CHECK (sizes[0] == 4 && out[3] == 7);
}

static void
what_cannot_be_carried_is_refused (void)
{
  static const struct {
    uint32_t config; // 16 bits
    int result;
  } rows[] = {
    { 0x1190, 1 }, { 0x0990, 1 }, // main
    { 0x4190, -ENOTSUP },         // CELP
    { 0xf990, -ENOTSUP },         // an escape
    { 0x1690, -ENOTSUP },         // a rate that is reserved
    { 0x11c0, -ENOTSUP },         // 8 channels of the newer kind
    { 0x0190, -ENOTSUP },         // no codec
  };
  size_t sizes[WEIR_LATM_FRAMES_MAX];
  uint8_t out[512];
  bool changed;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    WeirLatm latm = { .n_config = 1 };
    Loas loas = begin ();

    put_mux (&loas, 0, 1);
    put (&loas, rows[i].config, 16);
    put_rest (&loas);
    put_frame (&loas, 4, 7);
    CHECK_INT (read_loas (&latm, &loas, &changed, sizes, out), rows[i].result);
    CHECK ((latm.n_config > 0) == (rows[i].result > 0));
  }
}

static void
frames_that_are_cut_change_nothing (void)
{
  size_t sizes[WEIR_LATM_FRAMES_MAX], len;
  uint8_t out[512];
  WeirLatm latm = { 0 };
  Loas loas = begin ();
  bool changed;

  put_mux (&loas, 0, 1);
  put (&loas, 0x1190, 16);
  put_rest (&loas);
  put_frame (&loas, 40, 7);
  len = end (&loas);
  for (size_t n = 0; n < len; n++) {
    CHECK_INT (weir_latm_read (&latm, loas.bytes, n, out, sizes, &changed), -EINVAL);
    if (n >= 3) { // the length says so itself
      loas.bytes[2] = (uint8_t) (n - 3);
      CHECK_INT (weir_latm_read (&latm, loas.bytes, n, out, sizes, &changed), -EINVAL);
      loas.bytes[2] = (uint8_t) (len - 3);
    }
    CHECK (latm.n_config == 0 && !changed);
  }
}

int
main (void)
{
  RUN (frames_and_their_configuration_are_read);
  RUN (a_configuration_has_its_length_in_version_1);
  RUN (channels_may_be_a_list);
  RUN (what_cannot_be_carried_is_refused);
  RUN (frames_that_are_cut_change_nothing);
  return tap_done ();
}
