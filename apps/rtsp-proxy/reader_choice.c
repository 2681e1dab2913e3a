// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reader_choice.h"

#include "layer_choice.h"
#include "timeshift.h"

#include <gio/gio.h>

static gboolean
may_choose (const MountConfig *config, WeirLayerSet layers, GError **error)
{
  if (config->adapt != MOUNT_ADAPT_OFF || weir_layer_set_equal (layers, WEIR_LAYER_SET_ALL))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "its layers can't be chosen: adapt is off");
  return FALSE;
}

gboolean
reader_choice_cut (const MountConfig *config, const gchar *query, gchar **rest,
    ReaderChoice *choice, GError **error)
{
  gchar *left = g_strdup (query);
  gboolean ok;

  *rest = NULL;
  choice->delay_ns = -1;
  ok = layer_choice_cut (&left, &choice->layers, error)
       && may_choose (config, choice->layers, error);
  if (ok && left && config->cache.time_ms > 0)
    ok = timeshift_take_delay (left, rest, &choice->delay_ns, error);
  else if (ok)
    *rest = g_steal_pointer (&left);
  g_free (left);
  return ok;
}
