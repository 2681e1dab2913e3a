// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "mounts/mount_store.h"

#include "config/mount_swarm.h"
#include "sources/pull.h"
#include "stores/block_store.h"
#include "stores/folder.h"
#include "stores/origin_store.h"
#include "stores/swarm_store.h"

#define STORE_BYTES (G_GUINT64_CONSTANT (256) << 20) // of memory for the blocks of a block store

static Store *
make_origin_store (const MountConfig *config)
{
  const PullConfig *first = g_ptr_array_index (config->pulls, 0);
  OriginConfig origin = { .access = { config->keys, first->user, first->password, &first->trust },
    .connect_timeout_ms = first->connect_timeout_ms,
    .read_timeout_ms = first->read_timeout_ms,
    .cache_bytes = config->cache.size.bytes,
    .folder = config->cache.spill.path };

  for (guint i = 0; i < MIN (config->pulls->len, ORIGINS_MAX); i++)
    origin.urls[i] = ((const PullConfig *) g_ptr_array_index (config->pulls, i))->uri;
  return origin_store_new (&origin);
}

static Store *
make_swarm_store (const MountConfig *config)
{
  g_auto (GStrv) properties = mount_swarm_dup_properties (config);
  const SwarmConfig swarm = { .folder = mount_config_get_folder (config),
    .properties = (const gchar *const *) properties,
    .max_titles = config->swarm.titles,
    .seeds = mount_swarm_seeds (config) };

  return swarm_store_new (&swarm);
}

Store *
mount_store_new (const MountConfig *config)
{
  const gchar *folder = mount_config_get_folder (config);
  const gboolean is_limited = mount_config_is_limited (config);

  switch (mount_config_get_titles (config)) {
    case PULL_TITLES_ORIGIN:
      return WITH_STORE ? make_origin_store (config) : NULL;
    case PULL_TITLES_BLOCK_STORE:
      return WITH_STORE ? block_store_new (folder, is_limited,
                              config->cache.size.is_given ? config->cache.size.bytes : STORE_BYTES)
                        : NULL;
    case PULL_TITLES_SWARM:
      return WITH_SWARM ? make_swarm_store (config) : NULL;
    case PULL_TITLES_FOLDER:
      return folder_new (folder, is_limited);
    default:
      return NULL;
  }
}
