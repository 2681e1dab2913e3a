// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/duration.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bits/bytes.h"
#include "mp4/length.h"

#define BOXES_MAX 128 // looked at, of one level
#define NS_PER_S G_GUINT64_CONSTANT (1000000000)

typedef struct {
  DurationReadFunc read;
  gpointer file;
  guint64 size;
} File;

// Returns a cursor over up to `length` bytes at `offset`, which are read into `bytes`.
static WeirBytes
look (const File *file, guint64 offset, guint8 *bytes, gsize length)
{
  gsize n = offset < file->size ? file->read (file->file, offset, bytes, length) : 0;

  return weir_bytes (bytes, MIN (n, length));
}

static gint64
to_ns (guint64 units, guint64 per_second)
{
  gdouble ns = per_second > 0 ? (gdouble) units / (gdouble) per_second * NS_PER_S : 0;

  return ns >= 1 && ns < (gdouble) (G_MAXINT64 / 4) ? (gint64) ns : -1;
}

// ---- MP4 ----

#define BOX(a, b, c, d) ((guint32) (a) << 24 | (guint32) (b) << 16 | (guint32) (c) << 8 | (d))

static gint64
find_mp4 (const File *file)
{
  const WeirMp4File mp4 = { file->read, file->file, file->size };
  WeirMp4Length length;

  return weir_mp4_find_length (&mp4, &length) ? to_ns (length.end - length.start, length.timescale)
                                              : -1;
}

// ---- Matroska ----

#define EBML 0x1a45dfa3
#define SEGMENT 0x18538067
#define INFO 0x1549a966
#define CLUSTER 0x1f43b675
#define TIMESTAMP_SCALE 0x2ad7b1
#define DURATION 0x4489

// Reads an element's id or size (RFC 8794): the number of leading zeros tells its length. The
// marker is part of an id, but not of a size.
static gboolean
read_number (WeirBytes *bytes, gboolean is_id, guint64 *value)
{
  const guint8 *first;
  guint length = 1;
  guint8 lead;

  *value = 0;
  if (!weir_bytes_take (bytes, 1, &first) || (lead = *first) == 0)
    return FALSE;
  while (!(lead & 0x80 >> (length - 1)))
    length++;
  *value = is_id ? lead : lead & (0xff >> length);
  for (guint i = 1; i < length; i++) {
    guint8 next = 0;

    if (!weir_bytes_u8 (bytes, &next))
      return FALSE;
    *value = *value << 8 | next;
  }
  // All ones: the size is not known.
  if (!is_id && *value == (G_GUINT64_CONSTANT (1) << (7 * length)) - 1)
    *value = G_MAXUINT64;
  return TRUE;
}

// Reads the head of the element at `*at`, moves `*at` to its content, and sets its length, which
// ends at `end` at the latest.
static gboolean
read_element (const File *file, guint64 *at, guint64 end, guint64 *id, guint64 *length)
{
  guint8 bytes[16];
  WeirBytes head = look (file, *at, bytes, sizeof bytes);

  if (*at >= end || !read_number (&head, TRUE, id) || !read_number (&head, FALSE, length))
    return FALSE;
  *at += (guint64) (head.at - bytes);
  if (*at > end)
    return FALSE;
  *length = MIN (*length, end - *at);
  return TRUE;
}

static gdouble
read_float (WeirBytes bytes, guint64 length)
{
  guint64 bits = 0;
  gdouble wide;
  gfloat narrow;
  guint32 low;

  if ((length != 4 && length != 8) || !weir_bytes_number (&bytes, length, &bits))
    return 0;
  if (length == 8) {
    memcpy (&wide, &bits, sizeof wide);
    return wide;
  }
  low = (guint32) bits;
  memcpy (&narrow, &low, sizeof narrow);
  return (gdouble) narrow;
}

static gint64
read_info (const File *file, guint64 at, guint64 end)
{
  guint64 id, length, scale = 1000000;
  gdouble units = 0, ns;

  for (guint i = 0; i < BOXES_MAX && read_element (file, &at, end, &id, &length); i++) {
    guint8 bytes[8];
    WeirBytes content = look (file, at, bytes, sizeof bytes);

    if (id == TIMESTAMP_SCALE && length <= 8)
      weir_bytes_number (&content, length, &scale);
    else if (id == DURATION)
      units = read_float (content, length);
    at += length;
  }
  ns = units * (gdouble) scale;
  return ns >= 1 && ns < (gdouble) (G_MAXINT64 / 4) ? (gint64) ns : -1;
}

static gint64
find_matroska (const File *file)
{
  guint64 at = 0, end = file->size, id, length;

  for (guint i = 0; i < BOXES_MAX && read_element (file, &at, end, &id, &length); i++) {
    if (id == INFO)
      return read_info (file, at, at + length);
    if (id == CLUSTER)
      return -1;
    if (id == SEGMENT)
      end = at + length;
    else
      at += length;
  }
  return -1;
}

// ---- MPEG-TS ----

#define PACKET 188
#define TIMED_PACKET 192 // with the time of arrival before it, in .m2ts files
#define SEARCH (256 * 1024)
#define PCR_WRAP ((G_GUINT64_CONSTANT (1) << 33) * 300)
#define PCR_RATE 27000000

// Reads the clock of a packet. Returns FALSE if it has none.
static gboolean
read_pcr (WeirBytes packet, guint *pid, guint64 *pcr)
{
  guint64 head = 0, base = 0;
  guint8 length = 0, flags = 0;

  weir_bytes_number (&packet, 4, &head);
  if (head >> 24 != 0x47 || !(head & 0x20) || !weir_bytes_u8 (&packet, &length) || length < 7
      || !weir_bytes_u8 (&packet, &flags) || !(flags & 0x10)
      || !weir_bytes_number (&packet, 6, &base))
    return FALSE;
  *pid = head >> 8 & 0x1fff;
  *pcr = (base >> 15) * 300 + (base & 0x1ff);
  return TRUE;
}

// Finds the first clock of any program, or the last one of program clock `*pid`.
static gboolean
find_pcr (const File *file, guint64 from, gsize lead, gboolean last, guint *pid, guint64 *pcr)
{
  g_autofree guint8 *bytes = g_malloc (SEARCH);
  WeirBytes all = look (file, from, bytes, SEARCH);
  gboolean found = FALSE;
  const guint8 *packet;

  while (
      (last || !found) && weir_bytes_skip (&all, lead) && weir_bytes_take (&all, PACKET, &packet)) {
    guint64 value;
    guint of;

    if (read_pcr (weir_bytes (packet, PACKET), &of, &value) && (!last || of == *pid)) {
      *pid = of;
      *pcr = value;
      found = TRUE;
    }
  }
  return found;
}

static gint64
find_ts (const File *file, gsize step)
{
  guint64 first, last, from = file->size > SEARCH ? file->size - SEARCH : 0;
  gsize lead = step - PACKET;
  guint pid = 0;

  from += (step - from % step) % step;
  if (!find_pcr (file, 0, lead, FALSE, &pid, &first)
      || !find_pcr (file, from, lead, TRUE, &pid, &last))
    return -1;
  return to_ns ((last + PCR_WRAP - first) % PCR_WRAP, PCR_RATE);
}

// ---- any file ----

static gboolean
has_sync (const guint8 *bytes, gsize n, gsize step)
{
  gsize lead = step - PACKET;

  return n > lead + step && bytes[lead] == 0x47 && bytes[lead + step] == 0x47;
}

gint64
duration_find (DurationReadFunc read, gpointer opaque, guint64 size)
{
  File file = { read, opaque, size };
  guint8 bytes[2 * TIMED_PACKET];
  WeirBytes head = look (&file, 0, bytes, sizeof bytes), start = head;
  gsize n = weir_bytes_left (&head);
  guint32 magic = 0, type = 0;

  weir_bytes_u32 (&start, &magic);
  weir_bytes_u32 (&start, &type);
  if (magic == EBML)
    return find_matroska (&file);
  if (has_sync (bytes, n, PACKET))
    return find_ts (&file, PACKET);
  if (has_sync (bytes, n, TIMED_PACKET))
    return find_ts (&file, TIMED_PACKET);
  if (type == BOX ('f', 't', 'y', 'p') || type == BOX ('m', 'o', 'o', 'v')
      || type == BOX ('m', 'd', 'a', 't') || type == BOX ('f', 'r', 'e', 'e')
      || type == BOX ('w', 'i', 'd', 'e') || type == BOX ('s', 'k', 'i', 'p'))
    return find_mp4 (&file);
  return -1;
}

static gsize
read_file (gpointer fd, guint64 offset, guint8 *bytes, gsize length)
{
  gssize n;

  do
    n = pread (GPOINTER_TO_INT (fd), bytes, length, (off_t) offset);
  while (n < 0 && errno == EINTR);
  return n > 0 ? (gsize) n : 0;
}

gint64
duration_of_file (int fd, guint64 size)
{
  return duration_find (read_file, GINT_TO_POINTER (fd), size);
}
