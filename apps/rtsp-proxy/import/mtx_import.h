// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes a configuration of the proxy from one of MediaMTX. The same clients get the same streams
// from it, as far as both programs can serve them; notes say what is different.

#include <glib.h>

#define MTX_IMPORT_MAX (4 << 20) // bytes of a file

// Returns the text of the new configuration (transfer full), and sets `*notes` to lines
// "NAME:LINE:COLUMN: KEY: text", which the caller owns: one for each key, and one for each value
// that has no counterpart. `name` stands for the file, and relative file names in it begin in
// `folder`. Returns NULL and sets `error` to one line for each mistake, the first 20, if the text
// is not YAML, is larger than MTX_IMPORT_MAX, or has values that are not of MediaMTX.
gchar *mtx_import (const gchar *name, const gchar *text, gsize len, const gchar *folder,
    gchar **notes, GError **error);
