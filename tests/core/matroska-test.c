// SPDX-License-Identifier: LGPL-2.1-or-later
#include "matroska/write.h"

#include <stdlib.h>

#include "bits/bytes.h"
#include "tap.h"

static const uint8_t avcc[] = { 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68 };
static const uint8_t asc[] = { 0x12, 0x10 };

static const WeirMp4Track tracks[] = {
  { .codec = WEIR_MP4_H264, .config = avcc, .config_len = sizeof avcc },
  { .codec = WEIR_MP4_AAC,
      .timescale = 44100,
      .channels = 2,
      .config = asc,
      .config_len = sizeof asc },
};

// Reads an identifier, or a size without its mark (RFC 8794, section 4).
static uint64_t
read_number (WeirBytes *b, bool marked)
{
  size_t size = 1;
  uint64_t value;

  while (size < 8 && weir_bytes_left (b) > 0 && !(*b->at & 0x80 >> (size - 1)))
    size++;
  weir_bytes_number (b, size, &value);
  return marked ? value : value & (((uint64_t) 1 << 7 * size) - 1);
}

// Writes the identifiers of the elements, with those of elements in them in brackets.
static void
list (WeirBytes *b, char text[400])
{
  static const uint32_t masters[] = { 0x1a45dfa3, 0x1549a966, 0x1654ae6b, 0xae, 0xe1, 0x1f43b675 };

  while (weir_bytes_left (b) > 0) {
    uint32_t id = (uint32_t) read_number (b, true);
    uint64_t len = read_number (b, false);
    const uint8_t *data;
    WeirBytes inner;

    snprintf (text + strlen (text), 400 - strlen (text), "%x ", id);
    if (id == 0x18538067) { // the segment, whose end is not known
      CHECK (len == ((uint64_t) 1 << 56) - 1);
      continue;
    }
    CHECK (weir_bytes_take (b, len, &data));
    inner = weir_bytes (data, len);
    for (size_t i = 0; i < sizeof masters / sizeof *masters; i++) {
      if (masters[i] == id) {
        strcat (text, "[ ");
        list (&inner, text);
        strcat (text, "] ");
      }
    }
  }
}

static void
the_head_names_the_tracks (void)
{
  size_t size = weir_matroska_write_head (NULL, 0, tracks, 2);
  uint8_t *head = malloc (size);
  WeirBytes b = weir_bytes (head, size);
  char text[400] = "";

  CHECK_INT (weir_matroska_write_head (head, size, tracks, 2), size);
  list (&b, text);
  CHECK (!b.failed);
  if (strcmp (text, "1a45dfa3 [ 4282 4287 4285 ] 18538067 1549a966 [ 2ad7b1 4d80 5741 ] "
                    "1654ae6b [ ae [ d7 73c5 83 9c 86 63a2 ] "
                    "ae [ d7 73c5 83 9c 86 63a2 e1 [ b5 9f ] ] ] ")
      != 0) {
    printf ("# got %s\n", text);
    CHECK (false);
  }
  free (head);
}

static void
a_frame_is_in_its_cluster (void)
{
  uint8_t bytes[WEIR_MATROSKA_FRAME_HEAD + 1000] = { 0 };
  WeirBytes b = weir_bytes (bytes, sizeof bytes);
  const uint8_t *block;
  uint64_t time, len;

  CHECK_INT (weir_matroska_write_frame_head (bytes, 1, 123456789012345, true, 1000),
      WEIR_MATROSKA_FRAME_HEAD);
  CHECK_INT (read_number (&b, true), 0x1f43b675);
  CHECK_INT (read_number (&b, false), weir_bytes_left (&b));
  CHECK_INT (read_number (&b, true), 0xe7);
  CHECK_INT (read_number (&b, false), 8);
  CHECK (weir_bytes_u64 (&b, &time) && time == 123456789012345);
  CHECK_INT (read_number (&b, true), 0xa3);
  len = read_number (&b, false);
  CHECK_INT (len, 1004);
  CHECK (weir_bytes_take (&b, len, &block) && memcmp (block, "\x82\0\0\x80", 4) == 0);
  CHECK_INT (weir_bytes_left (&b), 0);
}

int
main (void)
{
  RUN (the_head_names_the_tracks);
  RUN (a_frame_is_in_its_cluster);
  return tap_done ();
}
