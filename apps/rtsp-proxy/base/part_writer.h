// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes parts of a stream to a stream socket that must not block: each part is written whole or
// dropped whole. One thread at a time.

#include <glib.h>

typedef struct {
  gint fd;
  GByteArray *rest; // of a part of which the socket took the beginning
} PartWriter;

void part_writer_init (PartWriter *self, gint fd);
void part_writer_clear (PartWriter *self); // the socket stays open

// Returns FALSE, and takes nothing, while earlier parts are not read yet.
gboolean part_writer_write (PartWriter *self, const guint8 *bytes, gsize len);
