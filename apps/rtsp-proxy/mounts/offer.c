// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/offer.h"

#include "base/file_roots.h"
#include "base/trusted_networks.h"
#include "stages/choice.h"
#include "text/config_error.h"

#include <gio/gio.h>

static gint strict; // atomic

void
offer_set_strict (gboolean is_strict)
{
  g_atomic_int_set (&strict, is_strict);
}

gboolean
offer_is_strict (void)
{
  return g_atomic_int_get (&strict);
}

void
offer_configure (const ProxyConfig *config)
{
  offer_set_strict (config->strict_queries);
  file_roots_set (config->file_roots);
  trusted_networks_set (config->trusted_networks);
}

gchar *
offer_dup_choices (const MountConfig *config, const gchar *choices)
{
  if (!choices || offer_is_strict ())
    return g_strdup (choices);
  return choice_cut_unknown (config->choices, choices);
}

static gboolean
check_layers (const MountConfig *config, const Demand *demand, GError **error)
{
  if (demand->wrong_layers) {
    g_set_error_literal (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, demand->wrong_layers);
    return FALSE;
  }
  if (config->adapt != MOUNT_ADAPT_OFF || weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
      "layers: readers cannot choose layers, because the mount has adapt: off");
  return FALSE;
}

gboolean
offer_check (const MountConfig *config, const Demand *demand, const gchar **choices, GError **error)
{
  gboolean delays = config->cache.time_ms > 0;
  g_autofree gchar *offered = NULL;

  if (!check_layers (config, demand, error))
    return FALSE;
  if (delays && demand->wrong_delay) {
    g_set_error_literal (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, demand->wrong_delay);
    return FALSE;
  }
  // Without a cache, `delay` may be a choice of a stage.
  *choices = delays ? demand->choices : demand->stages;
  offered = offer_dup_choices (config, *choices);
  if (!offered)
    *choices = NULL;
  return TRUE;
}

GPtrArray *
offer_make_chain (const MountConfig *config, const gchar *choices, GError **error)
{
  g_autofree gchar *offered = offer_dup_choices (config, choices);

  return choice_make_chain (config->stage_set, config->stages, config->choices, offered, error);
}
