// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/packet_ranges.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>

#include "bits/bytes.h"

// ---- parsing ----

// Reads a number of at most nine digits, and the character `end` after it.
static gboolean
read_number (WeirBytes *b, gchar end, guint32 *number)
{
  guint8 c = 0;
  guint n = 0;

  *number = 0;
  while (weir_bytes_u8 (b, &c) && g_ascii_isdigit (c) && n++ < 9)
    *number = *number * 10 + (guint32) (c - '0');
  return n > 0 && c == (guint8) end;
}

// The end of a line may be CR LF, LF or, for the last one, missing.
static gboolean
read_end (WeirBytes *b, guint32 *number)
{
  WeirBytes rest = *b;
  guint8 c = 0;
  guint n = 0;

  *number = 0;
  while (weir_bytes_left (&rest) > 0 && g_ascii_isdigit (*rest.at) && n++ < 9) {
    weir_bytes_u8 (&rest, &c);
    *number = *number * 10 + (guint32) (c - '0');
  }
  if (weir_bytes_left (&rest) > 1 && *rest.at == '\r')
    weir_bytes_skip (&rest, 1);
  if (n == 0 || (weir_bytes_left (&rest) > 0 && (!weir_bytes_u8 (&rest, &c) || c != '\n')))
    return FALSE;
  *b = rest;
  return TRUE;
}

guint
packet_ranges_parse (const PacketFile *file, const gchar *text, gsize length,
    PacketRange ranges[PACKET_RANGES_MAX], GError **error)
{
  // GStreamer's RTSP library adds a zero to each body.
  WeirBytes b = weir_bytes ((const guint8 *) text, strnlen (text, length));
  guint n = 0;

  do {
    PacketRange *range = &ranges[n];

    if (n == PACKET_RANGES_MAX || !read_number (&b, ' ', &range->track)
        || !read_number (&b, '-', &range->from) || !read_end (&b, &range->to)) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
          "line %u is not \"TRACK FROM-TO\", or one of more than %u", n + 1, PACKET_RANGES_MAX);
      return 0;
    }
    if (range->track >= file->n_tracks || range->from > range->to
        || range->to >= file->tracks[range->track].n_packets) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
          "line %u: packets %u-%u of track %u are not within the title", n + 1, range->from,
          range->to, range->track);
      return 0;
    }
    n++;
  } while (weir_bytes_left (&b) > 0);
  return n;
}

// ---- reading ----

typedef struct {
  GByteArray *body;
  guint n_packets, max_packets;
  gsize max_bytes;
} Body;

// Adds the packets of a block from number `*next` on. Returns FALSE at a bound.
static gboolean
add_from_block (
    Body *self, const guint8 *at, const guint8 *end, const PacketRange *range, guint32 *next)
{
  PacketRecord record;
  const guint8 *start = at;

  for (; *next <= range->to && packet_record_next (&at, end, &record); start = at) {
    if (record.track != range->track || record.number != *next)
      continue;
    if (self->n_packets == self->max_packets
        || self->body->len + (gsize) (at - start) > self->max_bytes)
      return FALSE;
    g_byte_array_append (self->body, start, (guint) (at - start));
    self->n_packets++;
    ++*next;
  }
  return TRUE;
}

// Adds the packets of a range. Returns 0 or a negative errno, and whether a bound is reached.
static gint
add_range (
    Body *self, BlockCache *cache, PacketFile *file, const PacketRange *range, gboolean *full)
{
  gint failed = 0;

  for (guint32 next = range->from; next <= range->to && !*full && failed == 0;) {
    const guint32 frame = packet_file_frame_of (file, range->track, next), before = next;
    const guint32 number = packet_file_block_of (file, frame);
    PacketBlock *block = block_cache_ask (cache, file, number);
    GBytes *bytes;

    failed = packet_block_wait (block, &bytes);
    if (failed == 0) {
      const guint8 *data = g_bytes_get_data (bytes, NULL);
      const guint64 start = file->offset[packet_file_block_start (file, number)];

      *full = !add_from_block (self, data + (file->offset[frame] - start),
          data + g_bytes_get_size (bytes), range, &next);
      if (!*full && next == before)
        failed = -EIO;
    }
    packet_block_unref (block);
  }
  return failed;
}

GBytes *
packet_ranges_read (BlockCache *cache, PacketFile *file, const PacketRange *ranges, guint n_ranges,
    guint max_packets, gsize max_bytes, guint *n_packets, GError **error)
{
  Body self = { g_byte_array_new (), 0, max_packets, max_bytes };
  gboolean full = FALSE;
  gint failed = 0;

  for (guint i = 0; i < n_ranges && !full && failed == 0; i++)
    failed = add_range (&self, cache, file, &ranges[i], &full);
  *n_packets = self.n_packets;
  if (failed == 0)
    return g_byte_array_free_to_bytes (self.body);
  g_byte_array_unref (self.body);
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (-failed), "the packets cannot be read: %s",
      g_strerror (-failed));
  return NULL;
}
