// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_text.h"

#include <string.h>

gboolean
stage_text_is_name (const gchar *name)
{
  gsize len = strspn (name, STAGE_NAME_CHARACTERS);

  return g_ascii_islower (*name) && name[len] == '\0' && len <= 32;
}

// Returns the length of the placeholder that begins at `at`, or 0 if none does.
static gsize
placeholder_len (const gchar *at)
{
  gsize len;

  if (at[0] != '{' || !g_ascii_islower (at[1]))
    return 0;
  len = 1 + strspn (at + 1, STAGE_NAME_CHARACTERS);
  if (at[len] == '.')
    len += 1 + strspn (at + len + 1, STAGE_NAME_CHARACTERS);
  return at[len] == '}' ? len + 1 : 0;
}

static gchar *
look_up (const gchar *at, gsize len, StageTextLookup lookup, gpointer data)
{
  gchar *name = g_strndup (at + 1, len - 2);
  gchar *form = strchr (name, '.');
  gchar *found;

  if (form)
    *form++ = '\0';
  found = lookup (name, form, data);
  g_free (name);
  return found;
}

// Replaces a line break and the white space around it by one space.
static void
append_break (GString *out, const gchar **at)
{
  while (out->len && g_ascii_isspace (out->str[out->len - 1]))
    g_string_truncate (out, out->len - 1);
  *at += strspn (*at, " \t\r\n");
  if (out->len && **at)
    g_string_append_c (out, ' ');
}

gchar *
stage_text_expand (const gchar *text, StageTextLookup lookup, gpointer data, gsize *offset)
{
  GString *out = g_string_new (NULL);

  for (const gchar *at = text; *at;) {
    gsize len = placeholder_len (at);

    if (len) {
      gchar *found = look_up (at, len, lookup, data);

      if (!found) {
        *offset = (gsize) (at - text);
        g_string_free (out, TRUE);
        return NULL;
      }
      g_string_append (out, found);
      g_free (found);
      at += len;
    } else if (*at == '\n') {
      append_break (out, &at);
    } else {
      g_string_append_c (out, *at++);
    }
  }
  return g_strstrip (g_string_free (out, FALSE));
}

// The launch text has a quoted string, whose quotes and backslashes the parser of launch text takes
// one backslash from. All other than the usual characters of a path is a number in it: no value can
// end the string, or look like a placeholder.
gchar *
stage_text_dup_value (const gchar *text)
{
  GString *out = g_string_new ("\\\"");

  for (; *text; text++) {
    if (g_ascii_isalnum (*text) || strchr ("_-+/:.", *text))
      g_string_append_c (out, *text);
    else
      g_string_append_printf (out, "\\\\%03o", (guchar) *text);
  }
  return g_string_free (g_string_append (out, "\\\""), FALSE);
}

gchar *
stage_text_next_word (const gchar **at)
{
  const gchar *start = *at + strspn (*at, " \t\r\n");
  const gchar *end = start;
  gchar quote = 0;

  for (; *end && (quote || !strchr (" \t\r\n", *end)); end++) {
    if (*end == '\\' && end[1])
      end++;
    else if (quote)
      quote = *end == quote ? 0 : quote;
    else if (*end == '"' || *end == '\'')
      quote = *end;
  }
  *at = end;
  return end > start ? g_strndup (start, (gsize) (end - start)) : NULL;
}

static gboolean
is_plain (const gchar *word)
{
  return g_str_equal (word, "!")
         || !word[strspn (word, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-+=.,:/@%")];
}

gchar *
stage_text_quote (const gchar *launch)
{
  GString *out = g_string_new (NULL);
  gchar *word;

  while ((word = stage_text_next_word (&launch))) {
    gchar *quoted = is_plain (word) ? g_strdup (word) : g_shell_quote (word);

    g_string_append_printf (out, "%s%s", out->len ? " " : "", quoted);
    g_free (quoted);
    g_free (word);
  }
  return g_string_free (out, FALSE);
}
