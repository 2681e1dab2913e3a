// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What becomes of each key of MediaMTX.

#include "import/mtx_file.h"

// Adds a note for each key of the file, those of paths once with their number. A former name of a
// key is a mistake: what it says would be lost. Returns FALSE after a mistake.
gboolean mtx_keys_note (MtxFile *self);
