// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes metainfo files (.torrent) of one file each: BEP 3, with trackers by BEP 12, the origin as
// a web seed by BEP 19, and the private flag of BEP 27.

#include <glib.h>

#define METAINFO_PIECE_MIN (16u << 10) // bytes; a power of two
#define METAINFO_PIECE_MAX (16u << 20)
#define METAINFO_PIECES_MAX (1u << 18) // 5 MiB of hashes: clients refuse larger files
#define METAINFO_HASH_BYTES 20

typedef struct {
  const gchar *name;
  guint64 bytes;
  guint32 piece_bytes;
  const GByteArray *hashes;     // SHA-1 of each piece
  const gchar *origin;          // URL of the file, or NULL
  const gchar *const *trackers; // URLs, the first one to ask first; or NULL
  gboolean is_private;
} Metainfo;

// Returns the length of pieces for a title: 1024 to 2047 of them, if the bounds above allow it.
guint32 metainfo_choose_piece (guint64 bytes);

// Returns the file (transfer full). `*info_hash` gets the hash that names the torrent, in 40
// hexadecimal digits (transfer full).
GByteArray *metainfo_write (const Metainfo *self, gchar **info_hash);
