// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `renditions` of a mount: what HLS players may choose between, beside the mount's own
// stream, what readers get whose line does not carry that, and readers over WebRTC who cannot play
// it. Each is the query of a URL, such as "size=640x360&rate=600k" or "layers=0.0.*".

#include "config/mount_values.h"

#define MOUNT_RENDITIONS_MAX 7

// Checks them when the stages are made. Returns what is wrong (transfer full), or NULL.
gchar *mount_renditions_check (const MountConfig *config);

// Splits a rendition of the mount, which has been checked, into its layers, none of which is above
// the mount's, and its choices (transfer full; NULL: none).
WeirLayerSet mount_rendition_split (const MountConfig *config, const gchar *query, gchar **choices);
