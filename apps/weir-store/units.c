// SPDX-License-Identifier: LGPL-2.1-or-later
#include "units.h"

#include <math.h>

gboolean
units_parse_rate (const gchar *text, guint64 *bits)
{
  static const struct {
    const gchar *unit;
    gdouble scale;
  } units[] = { { "", 1 }, { "k", 1e3 }, { "M", 1e6 }, { "G", 1e9 } };
  gchar *end;
  gdouble value = g_ascii_strtod (text, &end);

  for (guint i = 0; i < G_N_ELEMENTS (units); i++) {
    if (end != text && g_str_equal (end, units[i].unit) && value * units[i].scale >= 1
        && value * units[i].scale <= 1e15) {
      *bits = (guint64) (value * units[i].scale);
      return TRUE;
    }
  }
  return FALSE;
}

gboolean
units_parse_time (const gchar *text, gdouble *seconds)
{
  gchar *end;
  gdouble value = g_ascii_strtod (text, &end);

  if (end == text || !(value > 0) || !(value < 1e6))
    return FALSE;
  *seconds = g_str_equal (end, "ms") ? value / 1000 : value;
  return g_str_equal (end, "ms") || g_str_equal (end, "s");
}

// Unlike g_format_size(), with a plain space.
gchar *
units_dup_size (guint64 bytes)
{
  static const gchar *const units[] = { "kB", "MB", "GB", "TB", "PB" };
  gdouble value = (gdouble) bytes / 1e3;
  guint unit = 0;

  for (; value >= 999.95 && unit + 1 < G_N_ELEMENTS (units); unit++)
    value /= 1e3;
  return g_strdup_printf ("%.1f %s", value, units[unit]);
}

gchar *
units_dup_rate (guint64 bits)
{
  gdouble value = (gdouble) bits;

  if (bits == 0)
    return g_strdup ("unknown");
  if (value >= 1e9)
    return g_strdup_printf ("%.1f Gb/s", value / 1e9);
  return value >= 1e6 ? g_strdup_printf ("%.1f Mb/s", value / 1e6)
                      : g_strdup_printf ("%.1f kb/s", value / 1e3);
}

gchar *
units_dup_time (gint64 ns)
{
  gint64 seconds = (gint64) round ((gdouble) ns / 1e9);

  if (ns < 0)
    return g_strdup ("unknown");
  return g_strdup_printf ("%" G_GINT64_FORMAT ":%02d:%02d", seconds / 3600,
      (gint) (seconds / 60 % 60), (gint) (seconds % 60));
}
