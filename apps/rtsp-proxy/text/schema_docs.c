// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/schema_private.h"

#include <string.h>

#define HELP_COLUMN 36
#define HELP_WIDTH 100

gchar *
schema_dup_form (const SchemaKey *key)
{
  gchar *words, *range, *form;

  switch (key->type) {
    case SCHEMA_WORD:
    case SCHEMA_INDEX:
      words = g_strjoinv ("`, `", (gchar **) key->words);
      form = g_strdup_printf ("`%s`", words);
      g_free (words);
      return form;
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
    case SCHEMA_SIZE:
    case SCHEMA_RATE:
      if (key->form)
        return g_strdup (key->form);
      range = schema_dup_range (key);
      form = g_strdup_printf ("%s%s%s%s %s", key->zero ? "`" : "", key->zero ? key->zero : "",
          key->zero ? "`, or " : "", schema_get_noun (key), range);
      g_free (range);
      return form;
    case SCHEMA_FLAG:
      return g_strdup ("`yes`, `no`");
    default:
      return g_strdup (key->form);
  }
}

gchar *
schema_to_markdown (const SchemaKey *keys, const gchar *prefix, const gchar *const *effects)
{
  GString *out = g_string_new ("| key | value | default | change | meaning |\n"
                               "|---|---|---|---|---|\n");

  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *form = schema_dup_form (key);
    const gchar *quote = key->preset ? "`" : "";

    g_string_append_printf (out, "| `%s%s` | %s | %s%s%s | %s | %s |\n", prefix, key->name, form,
        quote, key->preset ? key->preset : "", quote, effects[key->effect], key->help);
  }
  return g_string_free (out, FALSE);
}

void
schema_each_table (const SchemaKey *keys, const gchar *prefix,
    void (*each) (const SchemaKey *keys, const gchar *prefix, gpointer data), gpointer data)
{
  each (keys, prefix, data);
  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *below = g_strconcat (prefix, key->name, ".", NULL);

    if (key->object)
      schema_each_table (key->object->keys, below, each, data);
  }
}

// Appends a text without its Markdown quotes, wrapped at HELP_WIDTH and indented to HELP_COLUMN.
// The current line of `out` is HELP_COLUMN long.
static void
append_wrapped (GString *out, const gchar *text)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 0);
  gsize column = HELP_COLUMN;

  for (gchar **word = words; *word; word++) {
    g_auto (GStrv) parts = g_strsplit (*word, "`", 0);
    g_autofree gchar *plain = g_strjoinv ("", parts);

    if (column > HELP_COLUMN && column + 1 + strlen (plain) > HELP_WIDTH) {
      g_string_append_printf (out, "\n%*s", HELP_COLUMN, "");
      column = HELP_COLUMN;
    }
    g_string_append_printf (out, "%s%s", column > HELP_COLUMN ? " " : "", plain);
    column += (column > HELP_COLUMN) + strlen (plain);
  }
}

void
schema_append_help (GString *out, const gchar *subject, const gchar *help)
{
  gsize len = strlen (subject);

  g_string_append (out, subject);
  if (len >= HELP_COLUMN) {
    g_string_append_c (out, '\n');
    len = 0;
  }
  g_string_append_printf (out, "%*s", (int) (HELP_COLUMN - len), "");
  append_wrapped (out, help);
  g_string_append_c (out, '\n');
}

gchar *
schema_to_help (const SchemaKey *keys, const gchar *indent)
{
  GString *out = g_string_new (NULL);

  for (const SchemaKey *key = keys; key->name; key++) {
    g_autofree gchar *form = key->preset ? g_strdup (key->preset) : schema_dup_form (key);
    g_autofree gchar *subject = g_strdup_printf ("%s%s: %s", indent, key->name, form);

    schema_append_help (out, subject, key->help);
  }
  return g_string_free (out, FALSE);
}
