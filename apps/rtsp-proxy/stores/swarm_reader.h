// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads a title through a swarmsrc of its own, which takes pieces from peers and from the origin.
// The readers of a title share its pieces. Call from any thread; only one may read at a time.

#include <gst/gst.h>

typedef struct _SwarmReader SwarmReader;

// What is read. The fields outlive the reader.
typedef struct {
  int torrent;                    // is open on the torrent
  const gchar *torrent_name;      // of its file, for the log
  const gchar *file;              // the path of the file in the torrent; NULL: it has one file
  const gchar *label;             // the title's name in the log
  const gchar *const *properties; // names and values of swarmsrc's properties in turn
} SwarmReaderTitle;

// Joins the swarm of the torrent. `rate` is the title's in bits a second, 0: unknown. A read for
// which nothing comes for `timeout_s` fails. Waits until the size is known. Returns NULL and sets
// an error of the domain G_IO_ERROR on failure: G_IO_ERROR_NOT_FOUND if the torrent has no such
// file.
SwarmReader *swarm_reader_new (
    const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error);

guint64 swarm_reader_get_size (const SwarmReader *self);

// Reads up to `length` bytes at `offset`, waits for them, and returns their number: less than
// `length` at the end of the title. Returns 0 and sets `error`, unless it is NULL, on failure.
gsize swarm_reader_read (
    SwarmReader *self, guint64 offset, guint8 *bytes, gsize length, GError **error);

// Ends reading. The title's pieces stay, and peers get them.
void swarm_reader_rest (SwarmReader *self);

// Returns the statistics of the swarmsrc. (transfer full)
GstStructure *swarm_reader_dup_stats (SwarmReader *self);

void swarm_reader_free (SwarmReader *self);
