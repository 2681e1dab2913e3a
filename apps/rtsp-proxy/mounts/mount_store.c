// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "mounts/mount_store.h"

#include "stores/block_store.h"
#include "stores/folder.h"

Store *
mount_store_new (const MountConfig *config)
{
#ifdef HAVE_BLOCK_STORE
  if (mount_config_is_block_store (config))
    return block_store_new (mount_config_get_folder (config));
#endif
  return folder_new (mount_config_get_folder (config));
}
