// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `insert` of a mount: the clips that may be inserted into its stream.

#include "text/schema.h"

extern const SchemaObject mount_insert_object;

// Checks the name of a clip, of the API or of the configuration. Returns NULL, or an error message
// that the caller owns.
gchar *mount_insert_check_clip (const gchar *text);
