// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// store.yaml, which says what a store is. Errors are of the domain WEIR_STORE_ERROR and name file,
// line and column.

#include <glib.h>

#include "store/blockstore.h"

G_BEGIN_DECLS

#define WEIR_STORE_FILE_VERSION 1
#define WEIR_STORE_SLICE_MIN_NS (100 * G_GINT64_CONSTANT (1000000))
#define WEIR_STORE_SLICE_MAX_NS (60 * G_GINT64_CONSTANT (1000000000))

typedef struct {
  guint16 number;
  gboolean removing;
  gchar *path;
} WeirStoreFileDisk;

typedef struct {
  gchar id[33];
  WeirPlacementPolicy policy;
  gint64 slice_ns;
  GArray *disks; // of WeirStoreFileDisk
} WeirStoreFile;

WeirStoreFile *weir_store_file_new (void);
void weir_store_file_free (WeirStoreFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (WeirStoreFile, weir_store_file_free)

// Adds a disk with the lowest free number, and returns the number.
guint16 weir_store_file_add_disk (WeirStoreFile *self, const gchar *path);

// Reads DIR/store.yaml.
WeirStoreFile *weir_store_file_read (const gchar *dir, GError **error);

// Reads the text of such a file. `path` stands for it in errors.
WeirStoreFile *weir_store_file_parse (
    const gchar *path, const gchar *text, gsize length, GError **error);

// Writes DIR/store.yaml durably.
gboolean weir_store_file_write (const WeirStoreFile *self, const gchar *dir, GError **error);

G_END_DECLS
