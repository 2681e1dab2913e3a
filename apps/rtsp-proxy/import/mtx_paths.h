// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `paths` of MediaMTX, with `pathDefaults`.

#include "import/mtx_mount.h"

// Returns the mounts of all paths that the proxy can serve, and adds notes about the others. The
// caller frees the array.
GPtrArray *mtx_paths_import (MtxFile *self);

// Returns the passphrase of SRT that publishers or readers need, or "". Adds notes about others:
// the proxy has one for all.
const gchar *mtx_paths_get_passphrase (MtxFile *self);
