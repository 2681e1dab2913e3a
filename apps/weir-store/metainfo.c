// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metainfo.h"

#include <string.h>

guint32
metainfo_choose_piece (guint64 bytes)
{
  guint32 piece = METAINFO_PIECE_MIN;

  while (piece < METAINFO_PIECE_MAX && bytes / piece >= 2048)
    piece *= 2;
  return piece;
}

// ---- bencode ----

static void
put (GByteArray *out, const gchar *text)
{
  g_byte_array_append (out, (const guint8 *) text, (guint) strlen (text));
}

static void
put_bytes (GByteArray *out, const guint8 *bytes, guint length)
{
  gchar head[16];

  g_snprintf (head, sizeof head, "%u:", length);
  put (out, head);
  g_byte_array_append (out, bytes, length);
}

static void
put_text (GByteArray *out, const gchar *text)
{
  put_bytes (out, (const guint8 *) text, (guint) strlen (text));
}

static void
put_number (GByteArray *out, guint64 number)
{
  gchar text[32];

  g_snprintf (text, sizeof text, "i%" G_GUINT64_FORMAT "e", number);
  put (out, text);
}

// ---- the file; the keys of a dictionary are in order ----

static void
put_info (GByteArray *out, const Metainfo *self)
{
  put (out, "d");
  put_text (out, "length");
  put_number (out, self->bytes);
  put_text (out, "name");
  put_text (out, self->name);
  put_text (out, "piece length");
  put_number (out, self->piece_bytes);
  put_text (out, "pieces");
  put_bytes (out, self->hashes->data, self->hashes->len);
  if (self->is_private) {
    put_text (out, "private");
    put_number (out, 1);
  }
  put (out, "e");
}

// Each tracker is a tier: the next one is asked only if those before it do not answer.
static void
put_trackers (GByteArray *out, const gchar *const *trackers)
{
  put_text (out, "announce");
  put_text (out, trackers[0]);
  if (!trackers[1])
    return;
  put_text (out, "announce-list");
  put (out, "l");
  for (; *trackers; trackers++) {
    put (out, "l");
    put_text (out, *trackers);
    put (out, "e");
  }
  put (out, "e");
}

GByteArray *
metainfo_write (const Metainfo *self, gchar **info_hash)
{
  GByteArray *out = g_byte_array_new ();
  guint start;

  put (out, "d");
  if (self->trackers && *self->trackers)
    put_trackers (out, self->trackers);
  put_text (out, "info");
  start = out->len;
  put_info (out, self);
  *info_hash = g_compute_checksum_for_data (G_CHECKSUM_SHA1, out->data + start, out->len - start);
  if (self->origin) {
    put_text (out, "url-list");
    put_text (out, self->origin);
  }
  put (out, "e");
  return out;
}
