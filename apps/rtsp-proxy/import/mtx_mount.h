// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A mount that a path of MediaMTX becomes, as lines of YAML.

#include "import/mtx_file.h"

typedef struct {
  gchar *path;       // of the mount
  GPtrArray *keys;   // of static texts
  GPtrArray *values; // of YAML, as many
} MtxMount;

MtxMount *mtx_mount_new (const gchar *path);
void mtx_mount_free (MtxMount *self);

// Sets a key to a text, or to what is YAML already; takes ownership of `yaml`.
void mtx_mount_set (MtxMount *self, const gchar *key, const gchar *text);
void mtx_mount_take (MtxMount *self, const gchar *key, gchar *yaml);

// Appends the key `defaults`, with the values that most mounts have, and the key `mounts`.
void mtx_mounts_append (const GPtrArray *mounts, GString *out);
