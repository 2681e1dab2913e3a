// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A configuration file of MediaMTX, and what is said about it. Values are read as MediaMTX reads
// them. A value of the wrong kind is a mistake: `error` gets a line for it.

#include "text/yaml_reader.h"

typedef struct {
  YamlReader *reader;
  const gchar *folder; // what relative file names of the configuration begin with
  GString *notes;      // lines "FILE:LINE:COLUMN: KEY: text"
  GError **error;
} MtxFile;

// Where a key is looked for: in a mapping, and then in one with defaults. Each may be NULL.
typedef struct {
  const YamlNode *own, *defaults;
} MtxScope;

// Returns the value of a key, or NULL if it is not there or null.
const YamlNode *mtx_find (const MtxFile *self, const MtxScope *scope, const gchar *key);

// Return `preset` if the key is not there, or after a mistake.
gboolean mtx_flag (MtxFile *self, const MtxScope *scope, const gchar *key, gboolean preset);
const gchar *mtx_text (MtxFile *self, const MtxScope *scope, const gchar *key, const gchar *preset);
guint64 mtx_number (MtxFile *self, const MtxScope *scope, const gchar *key, guint64 preset);

// Returns a time such as "1d12h", "1h30m" or "500ms", in ms.
guint64 mtx_time (MtxFile *self, const MtxScope *scope, const gchar *key, guint64 preset);

// Returns the texts of a list, or of one text with commas. The caller frees the array.
GPtrArray *mtx_list (MtxFile *self, const MtxScope *scope, const gchar *key);

// Adds a mistake, or a note, at a node.
void mtx_fail (MtxFile *self, const YamlNode *node, const gchar *key, const gchar *text);
void mtx_note (MtxFile *self, const YamlNode *node, const gchar *key, const gchar *format, ...)
    G_GNUC_PRINTF (4, 5);

// Returns a file name that begins with a slash. (transfer full)
gchar *mtx_dup_path (const MtxFile *self, const gchar *name);
