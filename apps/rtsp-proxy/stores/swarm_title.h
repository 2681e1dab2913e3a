// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title of a swarm that this process takes part in: its size and rate, and who reads it. It is
// in the swarm as long as it exists. Reference-counted; call from any thread.

#include "stores/store.h"
#include "stores/swarm_reader.h"

typedef struct _SwarmTitle SwarmTitle;

// A torrent, open on a file whose content has the checksum `id`.
typedef struct {
  int fd;
  gchar *name; // of the file
  gchar *id;
} SwarmTorrent;

void swarm_torrent_clear (SwarmTorrent *self);

// Joins the swarm of `torrent`, of which `file` is read, or NULL if it has one file. Takes what
// `torrent` has. Reads what is needed to find the rate. Returns NULL and sets an error of the
// domain G_IO_ERROR on failure: G_IO_ERROR_NOT_FOUND if the torrent has no such file.
SwarmTitle *swarm_title_new (SwarmTorrent *torrent, const gchar *name, const gchar *file,
    const gchar *const *properties, GError **error);
SwarmTitle *swarm_title_ref (SwarmTitle *self);
void swarm_title_unref (SwarmTitle *self);

const gchar *swarm_title_get_id (const SwarmTitle *self);

// The rate is in bits a second, 0: unknown.
guint64 swarm_title_get_rate (const SwarmTitle *self);

// Adds a reader, or returns NULL and sets an error of the domain G_IO_ERROR. Its owner gives it
// back to swarm_title_remove_reader().
SwarmReader *swarm_title_add_reader (SwarmTitle *self, GError **error);
void swarm_title_remove_reader (SwarmTitle *self, SwarmReader *reader);

// Returns how many read the title, and when the last one left, in us of g_get_monotonic_time().
guint swarm_title_count_readers (SwarmTitle *self, gint64 *left_us);

const gchar *swarm_title_get_name (const SwarmTitle *self);

// Sets the figures.
void swarm_title_get_figures (SwarmTitle *self, StoreSwarmTitle *figures);
