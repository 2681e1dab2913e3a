// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Adds a title to a store. Nothing of it can be seen until weir_title_writer_finish() has written
// its index: blocks are written and synchronised first, the index last. What a writer that was
// killed has left is removed when the store is next written to.

#include "store/blockstore.h"

G_BEGIN_DECLS
#pragma GCC visibility push(default)

typedef struct _WeirTitleWriter WeirTitleWriter;

// Begins a title. `caps` may be NULL. `expected_bytes` is the title's size, 0 if unknown: if the
// disks have no room for all its copies, the call fails with WEIR_STORE_ERROR_NO_SPACE before
// anything is written. For one thread at a time.
WeirTitleWriter *weir_title_writer_new (WeirBlockStore *store, const gchar *name, const gchar *caps,
    guint64 expected_bytes, GError **error);

// Says how many bytes the titles have that will be written after this one. If the disks have room
// for all, this title's blocks leave that room.
void weir_title_writer_leave_room (WeirTitleWriter *self, guint64 bytes);

// Check, before titles are begun, that a title of this name can be added, and that titles of so
// many bytes have room together, after what killed writers have left was removed.
gboolean weir_title_writer_check_name (WeirBlockStore *store, const gchar *name, GError **error);
gboolean weir_title_writer_check_space (
    WeirBlockStore *store, const guint64 *bytes, gsize n, GError **error);

// Writes a block: `length` bytes of the title followed by `table_length` bytes of the table of its
// buffers. Blocks on the disks. `time_ns` is the stream time of its first buffer, or
// WEIR_INDEX_NO_TIME.
gboolean weir_title_writer_add_block (WeirTitleWriter *self, const guint8 *bytes, gsize length,
    gsize table_length, gint64 time_ns, WeirIndexBlockFlags flags, GError **error);

// Makes the title visible. `rate` in bits a second, 0: computed from bytes and duration.
// `duration_ns` may be WEIR_INDEX_NO_TIME.
gboolean weir_title_writer_finish (
    WeirTitleWriter *self, guint64 rate, gint64 duration_ns, GError **error);

// Frees the writer. What it has written is removed unless it has finished.
void weir_title_writer_free (WeirTitleWriter *self);

#pragma GCC visibility pop
G_END_DECLS
