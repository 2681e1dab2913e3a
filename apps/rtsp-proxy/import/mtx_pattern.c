// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_pattern.h"

#include <string.h>

#define GROUPS_MAX 9

// Takes the anchors off. (transfer full)
static gchar *
dup_body (const gchar *expression, gboolean *from_start, gboolean *to_end)
{
  const gsize len = strlen (expression);

  *from_start = expression[0] == '^';
  *to_end = len > 1 && expression[len - 1] == '$' && expression[len - 2] != '\\';
  return g_strndup (expression + *from_start, len - *from_start - *to_end);
}

// Appends literal text. Returns FALSE if there is anything else than characters of paths.
static gboolean
append_literal (GString *out, const gchar *text)
{
  for (; *text; text++) {
    if (text[0] == '\\' && strchr ("./-_", text[1]) && text[1])
      text++;
    else if (!g_ascii_isalnum (*text) && !strchr ("-_~/", *text))
      return FALSE;
    g_string_append_c (out, *text);
  }
  return TRUE;
}

// What stands for a whole segment, or more.
typedef enum { WILD_NONE, WILD_SEGMENT, WILD_REST } Wild;

static Wild
get_wild (const gchar *text)
{
  const gsize len = strlen (text);
  const gchar *end = strchr (text, ']');

  if (g_str_equal (text, ".*") || g_str_equal (text, ".+"))
    return WILD_REST;
  if (g_str_equal (text, "\\w+") || g_str_equal (text, "\\d+"))
    return WILD_SEGMENT;
  return text[0] == '[' && end && end == text + len - 2 && strchr ("+*", end[1]) ? WILD_SEGMENT
                                                                                 : WILD_NONE;
}

// Adds a segment to a path, of which it is number `number`, from 1. Returns FALSE if it is neither
// literal nor a variable.
static gboolean
append_segment (
    GString *path, const gchar *segment, guint number, gboolean is_last, guint *n_groups)
{
  const gsize len = strlen (segment);
  const gboolean is_group = len > 2 && segment[0] == '(' && segment[len - 1] == ')';
  g_autofree gchar *inner = is_group ? g_strndup (segment + 1, len - 2) : g_strdup (segment);
  const Wild wild = get_wild (inner);

  g_string_append_c (path, '/');
  if (wild == WILD_NONE)
    return len > 0 && !is_group && append_literal (path, segment);
  if (is_group)
    g_string_append_printf (path, "{g%u", ++*n_groups);
  else
    g_string_append_printf (path, "{part%u", number);
  g_string_append (path, wild == WILD_REST && is_last ? "*}" : "}");
  return *n_groups <= GROUPS_MAX;
}

// Splits at the slashes outside of brackets. (transfer full)
static GPtrArray *
split (const gchar *body)
{
  GPtrArray *segments = g_ptr_array_new_with_free_func (g_free);
  const gchar *begin = body;
  gboolean in_class = FALSE;

  for (const gchar *c = body;; c++) {
    if (*c == '[' || *c == ']')
      in_class = *c == '[';
    if (*c && (*c != '/' || in_class))
      continue;
    g_ptr_array_add (segments, g_strndup (begin, (gsize) (c - begin)));
    if (!*c)
      return segments;
    begin = c + 1;
  }
}

gchar *
mtx_pattern_dup_path (const gchar *expression)
{
  gboolean from_start, to_end, ok = TRUE;
  g_autofree gchar *body = dup_body (expression, &from_start, &to_end);
  g_autoptr (GPtrArray) segments = split (body);
  GString *path = g_string_new (NULL);
  guint n_groups = 0;

  for (guint i = 0; ok && i < segments->len; i++)
    ok = append_segment (
        path, g_ptr_array_index (segments, i), i + 1, i + 1 == segments->len, &n_groups);
  // Without an anchor, the expression is to be found anywhere in a path.
  ok = ok
       && (from_start || g_str_equal (path->str, "/{part1*}") || g_str_equal (path->str, "/{g1*}"))
       && (to_end || g_str_has_suffix (path->str, "*}"));
  return g_string_free (path, !ok);
}

gchar *
mtx_pattern_dup_permission (const gchar *expression)
{
  gboolean from_start, to_end;
  g_autofree gchar *body = dup_body (expression, &from_start, &to_end);
  g_auto (GStrv) literals = NULL;
  GString *out = g_string_new (from_start ? "/" : "*");
  GString *text = g_string_new (body);
  gboolean ok = TRUE;

  g_string_replace (text, "(.*)", ".*", 0);
  literals = g_strsplit (text->str, ".*", 0);
  g_string_free (text, TRUE);
  for (guint i = 0; ok && literals[i]; i++) {
    g_string_append (out, i ? "*" : "");
    ok = append_literal (out, literals[i]);
  }
  if (!to_end && !g_str_has_suffix (out->str, "*"))
    g_string_append_c (out, '*');
  return g_string_free (out, !ok);
}

gchar *
mtx_pattern_dup_source (const gchar *path, const gchar *uri)
{
  GString *out = g_string_new (uri);
  gboolean ok;

  for (guint i = GROUPS_MAX; i > 0; i--) {
    g_autofree gchar *group = g_strdup_printf ("$G%u", i), *name = g_strdup_printf ("{g%u}", i);
    g_autofree gchar *one = g_strdup (name), *rest = g_strdup_printf ("{g%u*}", i);

    if (strstr (path, one) || strstr (path, rest))
      g_string_replace (out, group, name, 0);
  }
  ok = !strstr (out->str, "$G") && !strstr (out->str, "$MTX");
  return g_string_free (out, !ok);
}
