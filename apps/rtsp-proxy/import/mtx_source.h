// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `source` of a path of MediaMTX.

#include "import/mtx_mount.h"

// Sets the upstream of a mount, and what depends on its kind. `name` is the path's name in notes.
// Returns FALSE and adds a note if the proxy has no such upstream.
gboolean mtx_source_import (MtxFile *self, const MtxScope *scope, const YamlNode *place,
    const gchar *name, MtxMount *mount);
