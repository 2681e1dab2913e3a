// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/publish_check.h"

#include "base/clock.h"
#include "sources/publication.h"

static PublishCheck
say (PublishCheck check, const gchar *why, const gchar **text)
{
  *text = why;
  return check;
}

PublishCheck
publish_check (Mounts *mounts, const gchar *path, const gchar *identity, const gchar **text)
{
  gboolean exists, takeover;
  MountConfig *config = mounts_dup_publish_config (mounts, path, &exists);

  if (!config && exists)
    return say (
        PUBLISH_NOT_TAKEN, "the mount takes no publishers: its upstream is not publish", text);
  if (!config)
    return say (PUBLISH_NO_MOUNT, "there is no such mount", text);
  takeover = config->takeover;
  mount_config_unref (config);
  if (takeover || !publication_is_taken (path, identity, clock_now ()))
    return say (PUBLISH_POSSIBLE, NULL, text);
  return say (PUBLISH_CONFLICT, "another client publishes to the mount", text);
}
