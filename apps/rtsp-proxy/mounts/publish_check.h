// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "mounts/mounts.h"

typedef enum {
  PUBLISH_POSSIBLE, // nobody publishes to the mount, or the mount allows a takeover
  PUBLISH_NO_MOUNT,
  PUBLISH_NOT_TAKEN, // the upstream of the mount is not `publish`
  PUBLISH_CONFLICT,  // another client publishes
} PublishCheck;

// Says whether a client can publish to the mount `path` now, and if not, why (`*text`, static).
// `identity` is that of publication.h. Call from any thread.
PublishCheck publish_check (
    Mounts *mounts, const gchar *path, const gchar *identity, const gchar **text);
