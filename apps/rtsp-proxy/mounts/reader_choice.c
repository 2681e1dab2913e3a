// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/reader_choice.h"

#include "text/address.h"
#include "text/config_error.h"
#include "text/layer_choice.h"
#include "text/schema.h"

#include <gio/gio.h>
#include <string.h>

#define DELAY_MAX ((gint64) (86400 * GST_SECOND))

// Longer than what can be asked for elsewhere, but a time: as far back as there is something.
static gboolean
is_longer (const gchar *value)
{
  gsize n = strspn (value, "0123456789");
  static const gchar *const units[] = { "", "s", "m", "h", NULL };

  return n > 0 && g_strv_contains (units, value + n);
}

// As the configuration has it; of a number alone the unit is seconds.
static gboolean
parse_delay (const gchar *value, guint *ms)
{
  gboolean bare = *value && g_ascii_isdigit (value[strlen (value) - 1]);
  gchar *text = g_strconcat (value, bare ? "s" : "", NULL);
  gboolean ok = schema_parse_duration (text, ms);

  g_free (text);
  return ok;
}

// NULL if nothing is left. -1 where there is none.
static gboolean
take_delay (const gchar *query, gchar **rest, gint64 *delay_ns, GError **error)
{
  const gchar *wrong = NULL;
  gchar *value;
  guint n = address_cut_param (query, "delay", &value, rest), ms;

  *delay_ns = -1;
  if (value && parse_delay (value, &ms))
    *delay_ns = (gint64) ms * (gint64) GST_MSECOND;
  else if (value && is_longer (value))
    *delay_ns = DELAY_MAX;
  else if (value)
    wrong = "delay is not a time like 30, 30s or 2m";
  if (!wrong && n > 1)
    wrong = "delay is there twice";
  g_free (value);
  if (wrong) {
    g_clear_pointer (rest, g_free);
    g_set_error_literal (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, wrong);
  }
  return !wrong;
}

gint64
reader_choice_get_delay (const GstRTSPUrl *url)
{
  gint64 delay_ns = -1;
  Address address;
  gchar *rest = NULL;

  address_parse (&address, url);
  if (address.query && !take_delay (address.query, &rest, &delay_ns, NULL))
    delay_ns = -1;
  g_free (rest);
  address_clear (&address);
  return delay_ns;
}

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
    ok = take_delay (left, rest, &choice->delay_ns, error);
  else if (ok)
    *rest = g_steal_pointer (&left);
  g_free (left);
  return ok;
}
