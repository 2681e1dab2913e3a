// SPDX-License-Identifier: LGPL-2.1-or-later
#include "codec/mpvcut.h"

#include "tap.h"

#define SEQUENCE 0, 0, 1, 0xb3, 1, 2, 3, 4
#define GROUP 0, 0, 1, 0xb8, 1, 2, 3, 4
#define SLICE(n) 0, 0, 1, n, 9, 9
#define CODING(f) 0, 0, 1, 0xb5, 0x8f, f, 0xff, 0xf3, 0x80
// Temporal references 5, 6 and 7.
#define I_PICTURE 0, 0, 1, 0, 1, 0x4f, 0xff, 0xf8
#define P_PICTURE 0, 0, 1, 0, 1, 0x97, 0xff, 0xfd, 0x80
#define B_PICTURE 0, 0, 1, 0, 1, 0xdf, 0xff, 0xf9, 0xd0

typedef struct {
  size_t len;
  uint8_t header[4];
} Expected;

// Cuts the frame, and checks the payloads, and that they are the frame.
static void
check_cut (WeirMpvCut *cut, const uint8_t *frame, size_t len, size_t room, const Expected *expected,
    size_t n)
{
  WeirMpvPayload part;
  size_t at = 0, i = 0;

  CHECK (weir_mpv_cut_begin (cut, frame, len, room));
  for (; weir_mpv_cut_next (cut, &part); i++) {
    CHECK (part.data == frame + at);
    at += part.len;
    CHECK_INT (part.last, at == len);
    if (i < n) {
      CHECK_INT (part.len, expected[i].len);
      for (int k = 0; k < 4; k++)
        CHECK_INT (part.header[k], expected[i].header[k]);
    }
  }
  CHECK_INT (i, n);
  CHECK_INT (at, len);
}

#define CHECK_CUT(cut, frame, room, ...)                                                           \
  do {                                                                                             \
    static const Expected expected[] = { __VA_ARGS__ };                                            \
    check_cut (cut, frame, sizeof frame, room, expected, sizeof expected / sizeof *expected);      \
  } while (0)

static void
pictures_of_mpeg1_are_described (void)
{
  static const uint8_t i[] = { SEQUENCE, GROUP, I_PICTURE, SLICE (1), SLICE (2) };
  static const uint8_t p[] = { P_PICTURE, SLICE (1) };
  static const uint8_t b[] = { B_PICTURE, SLICE (1) };
  WeirMpvCut cut = { 0 };

  CHECK_CUT (&cut, i, 100, { 36, { 0, 5, 0x39, 0 } });
  CHECK_CUT (&cut, p, 100, { 15, { 0, 6, 0x1a, 0x0b } });
  CHECK_CUT (&cut, b, 100, { 15, { 0, 7, 0x1b, 0xa3 } });
}

static void
new_headers_of_mpeg2_are_marked (void)
{
  static const uint8_t a[] = { I_PICTURE, CODING (0xff), SLICE (1) };
  static const uint8_t b[] = { I_PICTURE, CODING (0xfe), SLICE (1) };
  WeirMpvCut cut = { 0 };

  CHECK_CUT (&cut, a, 100, { 23, { 0, 5, 0xd9, 0 } });
  CHECK_CUT (&cut, a, 100, { 23, { 0, 5, 0x99, 0 } });
  CHECK_CUT (&cut, b, 100, { 23, { 0, 5, 0xd9, 0 } });
}

static void
slices_that_fit_are_not_cut (void)
{
  static const uint8_t frame[] = { I_PICTURE, SLICE (1), SLICE (2), SLICE (3), 0, 0, 1, 0xb7 };
  WeirMpvCut cut = { 0 };

  CHECK_CUT (&cut, frame, 21, { 20, { 0, 5, 0x19, 0 } }, { 10, { 0, 5, 0x19, 0 } });
}

static void
long_slices_fill_payloads (void)
{
  static const uint8_t frame[] = { I_PICTURE, SLICE (1), 9, 9, 9, 9, 9, 9, 9, 9, 9, SLICE (2) };
  WeirMpvCut cut = { 0 };

  CHECK_CUT (&cut, frame, 10, { 10, { 0, 5, 0x11, 0 } }, { 10, { 0, 5, 0x01, 0 } },
      { 3, { 0, 5, 0x09, 0 } }, { 6, { 0, 5, 0x19, 0 } });
}

static void
a_second_field_begins_a_payload (void)
{
  static const uint8_t frame[] = { I_PICTURE, SLICE (1), P_PICTURE, SLICE (1) };
  WeirMpvCut cut = { 0 };

  CHECK_CUT (&cut, frame, 100, { 14, { 0, 5, 0x19, 0 } }, { 15, { 0, 6, 0x1a, 0x0b } });
}

static void
slices_without_a_picture_are_refused (void)
{
  static const uint8_t frame[] = { SLICE (1), SLICE (2) };
  WeirMpvCut cut = { 0 };
  WeirMpvPayload part;

  CHECK (!weir_mpv_cut_begin (&cut, frame, sizeof frame, 100));
  CHECK (!weir_mpv_cut_next (&cut, &part));
}

int
main (void)
{
  RUN (pictures_of_mpeg1_are_described);
  RUN (new_headers_of_mpeg2_are_marked);
  RUN (slices_that_fit_are_not_cut);
  RUN (long_slices_fill_payloads);
  RUN (a_second_field_begins_a_payload);
  RUN (slices_without_a_picture_are_refused);
  return tap_done ();
}
