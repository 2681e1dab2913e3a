// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "stages/stage_file.h"

// Reads a stage file, header and launch text. `text` is the file's, with a 0 behind its end; an
// error reads "FILE:LINE:COLUMN: key: what is wrong".
StageFile *stage_file_parse (
    const gchar *name, const gchar *file, const gchar *text, gsize len, GError **error);
