// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "stages/stage_file.h"

// Parses a stage file, header and launch text. `text` has `len` bytes and a terminating 0. Returns
// NULL and sets `error` to "FILE:LINE:COLUMN: key: message" if anything is wrong. The caller owns
// the result.
StageFile *stage_file_parse (
    const gchar *name, const gchar *file, const gchar *text, gsize len, GError **error);
