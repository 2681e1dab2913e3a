// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/weir_text.h"

#include <string.h>

#define DAY_MS (24 * 3600 * 1000)

// Reports whether a text is the same text without quotes, also between braces.
static gboolean
is_plain (const gchar *text)
{
  static const gchar *const words[] = { "yes", "no", "true", "false", "on", "off", "null", "y", "n",
    NULL };
  g_autofree gchar *lower = g_ascii_strdown (text, -1);

  if (!g_ascii_isalnum (text[0]) && text[0] != '/')
    return FALSE;
  if (g_strv_contains (words, lower) || text[strlen (text) - 1] == ':')
    return FALSE;
  for (const gchar *c = text; *c; c++) {
    if (!g_ascii_isalnum (*c) && !strchr ("/.:_-+=@~;", *c))
      return FALSE;
  }
  return TRUE;
}

void
weir_text_append (GString *out, const gchar *text)
{
  if (is_plain (text)) {
    g_string_append (out, text);
    return;
  }
  g_string_append_c (out, '"');
  for (const gchar *c = text; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f)
      g_string_append_printf (out, "\\x%02x", (guint) (guchar) *c);
    else if (*c == '"' || *c == '\\')
      g_string_append_printf (out, "\\%c", *c);
    else if (c[0] == '$' && c[1] == '{') // or it would name an environment variable
      g_string_append (out, "$$");
    else
      g_string_append_c (out, *c);
  }
  g_string_append_c (out, '"');
}

void
weir_text_pair (GString *out, const gchar *key, const gchar *text)
{
  if (out->len > 0)
    g_string_append (out, ", ");
  g_string_append_printf (out, "%s: ", key);
  weir_text_append (out, text);
}

gchar *
weir_text_dup_time (guint64 ms)
{
  static const struct {
    guint ms;
    const gchar *unit;
  } units[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" } };

  ms = MIN (ms, DAY_MS);
  for (guint i = 0; ms > 0 && i < G_N_ELEMENTS (units); i++) {
    if (ms % units[i].ms == 0)
      return g_strdup_printf ("%" G_GUINT64_FORMAT "%s", ms / units[i].ms, units[i].unit);
  }
  return ms ? g_strdup_printf ("%" G_GUINT64_FORMAT "ms", ms) : g_strdup ("0s");
}

gchar *
weir_text_dup_list (const GPtrArray *texts)
{
  GString *out = g_string_new ("[");

  for (guint i = 0; i < texts->len; i++) {
    g_string_append (out, i ? ", " : "");
    weir_text_append (out, g_ptr_array_index (texts, i));
  }
  g_string_append_c (out, ']');
  return g_string_free (out, FALSE);
}
