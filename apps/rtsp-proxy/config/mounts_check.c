// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mounts_check.h"

#include "config/mount_broadcast.h"
#include "config/mount_inputs.h"
#include "config/mount_loop.h"

gchar *
mounts_check (GPtrArray *mounts, const MountConfig *mount, const ListenAddress *own)
{
  gchar *loop = mount_loop_find (mounts, mount, own), *wrong;

  if (!loop) {
    wrong = mount_inputs_find_wrong (mounts, mount);
    return wrong ? wrong : mount_broadcast_find_overlap (mounts, mount);
  }
  wrong = g_strdup_printf ("the mount reads from itself: %s", loop);
  g_free (loop);
  return wrong;
}
