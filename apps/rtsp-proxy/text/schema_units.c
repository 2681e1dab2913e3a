// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/schema_private.h"

#include <string.h>

#define RATE_MAX G_GUINT64_CONSTANT (1000000000000) // bits a second
#define HOUR_MS (60 * 60 * 1000)
#define DAY_MS (24 * HOUR_MS)

// ---- from text ----

gboolean
schema_parse_time (const gchar *text, gdouble *ms)
{
  gchar *unit = NULL;
  gdouble number;
  guint scale;

  if (!g_ascii_isdigit (*text))
    return FALSE;
  number = g_ascii_strtod (text, &unit);
  if (strspn (text, "0123456789.") != (gsize) (unit - text)) // refuses hexadecimal and exponents
    return FALSE;
  if (g_str_equal (unit, "ms"))
    scale = 1;
  else if (g_str_equal (unit, "s"))
    scale = 1000;
  else if (g_str_equal (unit, "m"))
    scale = 60 * 1000;
  else if (g_str_equal (unit, "h"))
    scale = 60 * 60 * 1000;
  else
    return FALSE;
  if (!(number * scale <= DAY_MS))
    return FALSE;
  *ms = number * scale;
  return TRUE;
}

gboolean
schema_parse_duration (const gchar *text, guint *ms)
{
  gdouble exact;

  if (!schema_parse_time (text, &exact))
    return FALSE;
  *ms = (guint) (exact + 0.5);
  return TRUE;
}

// Parses a whole number of at most `number_max` with at most one letter of `units`, of which each
// is `base` times the one before.
static gboolean
parse_with_unit (const gchar *text, guint64 base, const gchar *units, guint64 number_max,
    guint64 most, guint64 *value)
{
  gchar *unit = NULL;
  guint64 number = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, &unit, 10) : 0;
  const gchar *found = unit && *unit ? strchr (units, *unit) : NULL;

  if (!unit || (*unit && (!found || unit[1])) || number > number_max)
    return FALSE;
  for (const gchar *u = units; found && u <= found; u++) {
    if (number > most / base)
      return FALSE;
    number *= base;
  }
  *value = number;
  return TRUE;
}

gboolean
schema_parse_bytes (const gchar *text, guint64 *bytes)
{
  return parse_with_unit (text, 1024, "KMGT", G_MAXUINT32, G_MAXUINT64, bytes);
}

gboolean
schema_parse_rate (const gchar *text, guint64 *rate)
{
  return parse_with_unit (text, 1000, "kMG", RATE_MAX, RATE_MAX, rate);
}

// ---- what a key allows ----

static guint64
get_most (const SchemaKey *key)
{
  return key->max || key->type != SCHEMA_DURATION ? key->max : DAY_MS;
}

static gchar *
dup_duration (guint64 ms)
{
  if (ms > 0 && ms % HOUR_MS == 0)
    return g_strdup_printf ("%" G_GUINT64_FORMAT "h", ms / HOUR_MS);
  return schema_dup_duration ((guint) ms);
}

// Writes a number with the largest of `units` that divides it.
static gchar *
dup_with_unit (guint64 number, guint64 base, const gchar *units)
{
  const gchar *unit = "";

  for (; *units && number > 0 && number % base == 0; number /= base)
    unit = units++;
  return g_strdup_printf ("%" G_GUINT64_FORMAT "%.1s", number, unit);
}

static gchar *
dup_bound (const SchemaKey *key, guint64 bound)
{
  if (key->type == SCHEMA_DURATION)
    return dup_duration (bound);
  if (key->type == SCHEMA_SIZE)
    return dup_with_unit (bound, 1024, "KMGT");
  return key->type == SCHEMA_RATE ? dup_with_unit (bound, 1000, "kMG")
                                  : g_strdup_printf ("%" G_GUINT64_FORMAT, bound);
}

gchar *
schema_dup_range (const SchemaKey *key)
{
  guint64 most = get_most (key);
  g_autofree gchar *from = dup_bound (key, key->min), *to = dup_bound (key, most);

  return most ? g_strdup_printf ("from %s to %s", from, to)
              : g_strdup_printf ("of at least %s", from);
}

const gchar *
schema_get_noun (const SchemaKey *key)
{
  return key->type == SCHEMA_DURATION ? "time"
         : key->type == SCHEMA_SIZE   ? "size"
         : key->type == SCHEMA_RATE   ? "rate"
                                      : "number";
}

// Returns how the value of a key is written, for an error message.
static const gchar *
get_way (const SchemaKey *key)
{
  return key->type == SCHEMA_DURATION ? "; write it with a unit, such as 10s or 500ms"
         : key->type == SCHEMA_SIZE   ? "; write it in K, M, G or T, such as 64M"
         : key->type == SCHEMA_RATE   ? " bits a second; write it in k, M or G, such as 6M"
                                      : "";
}

gboolean
schema_parse_number (const SchemaKey *key, const gchar *text, guint64 *number)
{
  gboolean ok;
  guint ms;

  *number = 0;
  if (key->zero && g_str_equal (text, key->zero))
    return TRUE;
  if (key->type == SCHEMA_NUMBER)
    return g_ascii_string_to_unsigned (text, 10, key->min, key->max, number, NULL);
  if (key->type == SCHEMA_DURATION) {
    ok = schema_parse_duration (text, &ms);
    *number = ok ? ms : 0;
  } else {
    ok = key->type == SCHEMA_SIZE ? schema_parse_bytes (text, number)
                                  : schema_parse_rate (text, number);
  }
  return ok && *number >= key->min && (get_most (key) == 0 || *number <= get_most (key));
}

gchar *
schema_dup_wrong_number (const SchemaKey *key, const gchar *text)
{
  g_autofree gchar *range = schema_dup_range (key);

  return g_strdup_printf ("\"%s\" is not %s%sa %s %s%s", text, key->zero ? key->zero : "",
      key->zero ? " or " : "", schema_get_noun (key), range, get_way (key));
}

// ---- to text ----

gchar *
schema_dup_duration (guint ms)
{
  return ms % 1000 ? g_strdup_printf ("%ums", ms) : g_strdup_printf ("%us", ms / 1000);
}

gchar *
schema_dup_rate (guint64 rate)
{
  return dup_with_unit (rate, 1000, "kM");
}
