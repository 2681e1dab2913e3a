// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "mounts/mount_store.h"

#include "config/mount_swarm.h"
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
    .cache_bytes = config->cache.bytes,
    .folder = config->cache.spill };

  for (guint i = 0; i < MIN (config->pulls->len, ORIGINS_MAX); i++)
    origin.urls[i] = ((const PullConfig *) g_ptr_array_index (config->pulls, i))->uri;
  return origin_store_new (&origin);
}

static Store *
make_swarm_store (const MountConfig *config)
{
  GStrv properties = mount_swarm_dup_properties (config);
  const SwarmConfig swarm = { .folder = mount_config_get_folder (config),
    .properties = (const gchar *const *) properties,
    .max_titles = config->swarm.titles,
    .seeds = mount_swarm_seeds (config) };
  Store *store = swarm_store_new (&swarm);

  g_strfreev (properties);
  return store;
}

Store *
mount_store_new (const MountConfig *config)
{
  if (WITH_STORE && mount_config_is_origin (config))
    return make_origin_store (config);
  if (WITH_STORE && mount_config_is_block_store (config))
    return block_store_new (mount_config_get_folder (config), mount_config_is_limited (config),
        config->cache.has_bytes ? config->cache.bytes : STORE_BYTES);
  if (WITH_SWARM && mount_config_is_swarm (config))
    return make_swarm_store (config);
  return folder_new (mount_config_get_folder (config), mount_config_is_limited (config));
}
