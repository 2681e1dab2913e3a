// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_file.h"

#include <string.h>

#include "text/config_error.h"

#define TIME_MAX (G_GUINT64_CONSTANT (36500) * 24 * 3600 * 1000) // ms
#define LIST_MAX 1000

void
mtx_fail (MtxFile *self, const YamlNode *node, const gchar *key, const gchar *text)
{
  yaml_fail (self->reader, node, key, CONFIG_ERROR_VALUE, self->error, text);
}

void
mtx_note (MtxFile *self, const YamlNode *node, const gchar *key, const gchar *format, ...)
{
  g_autofree gchar *place = yaml_dup_place (self->reader, node), *text = NULL;
  g_autofree gchar *line = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  line = g_strdup_printf ("%s: %s: %s", place, key, text);
  for (gchar *c = line; *c; c++) {
    if ((guchar) *c < 0x20 || *c == 0x7f) // of the file: keeps each note on one line
      *c = '?';
  }
  g_string_append_printf (self->notes, "%s\n", line);
}

const YamlNode *
mtx_find (const MtxFile *self, const MtxScope *scope, const gchar *key)
{
  const YamlNode *const places[] = { scope->own, scope->defaults };

  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    const YamlNode *value =
        places[i] && yaml_is_mapping (places[i]) ? yaml_get (self->reader, places[i], key) : NULL;

    if (value && !yaml_is_null (value))
      return value;
  }
  return NULL;
}

const gchar *
mtx_text (MtxFile *self, const MtxScope *scope, const gchar *key, const gchar *preset)
{
  const YamlNode *node = mtx_find (self, scope, key);
  const gchar *text = node ? yaml_text (self->reader, node) : NULL;

  if (!node)
    return preset;
  if (!text && !(node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0))
    mtx_fail (self, node, key, "expected a text");
  return text ? text : "";
}

gboolean
mtx_flag (MtxFile *self, const MtxScope *scope, const gchar *key, gboolean preset)
{
  const YamlNode *node = mtx_find (self, scope, key);
  const gchar *text = node ? yaml_text (self->reader, node) : NULL;

  if (!node)
    return preset;
  for (guint i = 0; text && i < 3; i++) {
    if (!g_ascii_strcasecmp (text, ((const gchar *[]) { "yes", "true", "on" })[i]))
      return TRUE;
    if (!g_ascii_strcasecmp (text, ((const gchar *[]) { "no", "false", "off" })[i]))
      return FALSE;
  }
  mtx_fail (self, node, key, "expected yes or no");
  return preset;
}

guint64
mtx_number (MtxFile *self, const MtxScope *scope, const gchar *key, guint64 preset)
{
  const YamlNode *node = mtx_find (self, scope, key);
  const gchar *text = node ? yaml_text (self->reader, node) : NULL;
  guint64 number = preset;

  if (node && (!text || !g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT32, &number, NULL)))
    mtx_fail (self, node, key, "expected a number");
  return number;
}

// Parses numbers that each have a unit.
static gboolean
parse_time (const gchar *text, guint64 *ms)
{
  static const struct {
    const gchar *unit;
    gdouble ms;
  } units[] = { { "ms", 1 }, { "us", 1e-3 }, { "ns", 1e-6 }, { "d", 24 * 3600e3 }, { "h", 3600e3 },
    { "m", 60e3 }, { "s", 1e3 } };
  gdouble sum = 0;
  gchar *end;

  for (guint i; *text; text = end + strlen (units[i].unit)) {
    gdouble number = g_ascii_isdigit (*text) ? g_ascii_strtod (text, &end) : -1;

    if (number < 0)
      return FALSE;
    for (i = 0; i < G_N_ELEMENTS (units) && !g_str_has_prefix (end, units[i].unit);)
      i++;
    if (i == G_N_ELEMENTS (units))
      return FALSE;
    sum += number * units[i].ms;
  }
  if (!(sum <= TIME_MAX))
    return FALSE;
  *ms = (guint64) (sum + 0.5);
  return TRUE;
}

guint64
mtx_time (MtxFile *self, const MtxScope *scope, const gchar *key, guint64 preset)
{
  const YamlNode *node = mtx_find (self, scope, key);
  const gchar *text = node ? yaml_text (self->reader, node) : NULL;
  guint64 ms = preset;

  if (node && (!text || !parse_time (text, &ms)))
    mtx_fail (self, node, key, "expected a time such as 10s, 1h30m or 7d");
  return ms;
}

GPtrArray *
mtx_list (MtxFile *self, const MtxScope *scope, const gchar *key)
{
  const YamlNode *node = mtx_find (self, scope, key), *item;
  GPtrArray *texts = g_ptr_array_new_with_free_func (g_free);
  const gchar *text = node ? yaml_text (self->reader, node) : NULL;
  g_auto (GStrv) parts = text ? g_strsplit (text, ",", LIST_MAX) : NULL;

  for (guint i = 0; parts && parts[i]; i++)
    g_ptr_array_add (texts, g_strdup (g_strstrip (parts[i])));
  if (node && !yaml_is_sequence (node) && !text)
    mtx_fail (self, node, key, "expected a list of texts");
  for (guint i = 0;
      node && yaml_is_sequence (node) && (item = yaml_item (self->reader, node, i)) != NULL; i++) {
    text = yaml_text (self->reader, item);
    if (text && texts->len < LIST_MAX)
      g_ptr_array_add (texts, g_strdup (text));
    else
      mtx_fail (self, item, key, text ? "more than 1000 items" : "expected a text");
  }
  return texts;
}

gchar *
mtx_dup_path (const MtxFile *self, const gchar *name)
{
  return g_canonicalize_filename (name, self->folder);
}
