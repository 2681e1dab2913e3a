// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The disks of store.yaml.

#include "store/upkeep_private.h"

G_BEGIN_DECLS

// Removes disks from store.yaml that are being removed and that no index names. Reports those that
// stay, with the reason.
gboolean storedisks_drop (Upkeep *up, GError **error);

G_END_DECLS
