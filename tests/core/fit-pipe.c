// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes packets of H.264 fit, from the standard input to the standard output. Each is behind two
// bytes of length.

#include "codec/fit.h"

#include <stdio.h>

static uint8_t packet[UINT16_MAX], room[UINT16_MAX];

static uint8_t *
reserve (void *data, size_t size)
{
  return room;
}

static void
commit (void *data, size_t size)
{
  putchar ((int) size >> 8);
  putchar ((int) size & 255);
  fwrite (room, 1, size, stdout);
}

int
main (void)
{
  static const WeirFitOut out = { reserve, commit };
  WeirFit *fit = weir_fit_new (WEIR_CODEC_H264, &out, NULL);
  int high, low;

  while ((high = getchar ()) >= 0 && (low = getchar ()) >= 0) {
    const size_t len = (size_t) (high << 8 | low);

    if (fread (packet, 1, len, stdin) != len)
      return 1;
    weir_fit_take (fit, packet, len);
  }
  weir_fit_free (fit);
  return 0;
}
