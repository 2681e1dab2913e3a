// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_pattern.h"

#include "config/mount_path.h"

#include <string.h>

typedef enum { SEGMENT_FIXED, SEGMENT_ONE, SEGMENT_REST } SegmentKind;

typedef struct {
  SegmentKind kind;
  gchar *text; // of the path, or the name of the variable
} Segment;

struct _MountPattern {
  gatomicrefcount refs;
  gchar *path;
  GArray *segments; // of Segment
};

// ---- a mount ----

gboolean
mount_is_pattern (const MountConfig *self)
{
  return self->pattern && g_str_equal (self->path, self->pattern->path);
}

gchar *
mount_pattern_check_host (SchemaText *it)
{
  for (const gchar *c = it->text; *c; c++) {
    if (!g_ascii_isalnum (*c) && !strchr (".-:[]", *c))
      return g_strdup_printf (
          "\"%s\" is not a host, such as cam1.example.org or 192.0.2.7", it->text);
  }
  return NULL;
}

// ---- reading ----

gboolean
mount_pattern_is (const gchar *path)
{
  return strpbrk (path, "{}") != NULL;
}

static void
clear_segment (gpointer segment)
{
  g_free (((Segment *) segment)->text);
}

static gboolean
is_name (const gchar *text, gsize len)
{
  if (len == 0 || len > 32)
    return FALSE;
  for (gsize i = 0; i < len; i++) {
    if (!g_ascii_isalnum (text[i]) && text[i] != '-' && text[i] != '_')
      return FALSE;
  }
  return TRUE;
}

static gboolean
has_name (const MountPattern *self, const gchar *name)
{
  for (guint i = 0; i < self->segments->len; i++) {
    const Segment *segment = &g_array_index (self->segments, Segment, i);

    if (segment->kind != SEGMENT_FIXED && g_str_equal (segment->text, name))
      return TRUE;
  }
  return FALSE;
}

// Adds a segment of the path. Returns NULL, or an error message that the caller owns.
static gchar *
add_segment (MountPattern *self, const gchar *text, gboolean is_last)
{
  const gsize len = strlen (text);
  const gboolean is_variable = len > 2 && text[0] == '{' && text[len - 1] == '}';
  const gboolean rest = is_variable && text[len - 2] == '*';
  Segment segment = { SEGMENT_FIXED, NULL };

  if (!mount_pattern_is (text)) {
    segment.text = g_strdup (text);
    g_array_append_val (self->segments, segment);
    return NULL;
  }
  if (!is_variable || !is_name (text + 1, len - 2 - rest))
    return g_strdup_printf ("\"%s\" is no variable; between two slashes, write {NAME} with A-Z a-z "
                            "0-9 - _ and nothing else",
        text);
  if (rest && !is_last)
    return g_strdup_printf ("\"%s\" stands for all segments to the end; nothing follows it", text);
  segment.kind = rest ? SEGMENT_REST : SEGMENT_ONE;
  segment.text = g_strndup (text + 1, len - 2 - rest);
  if (has_name (self, segment.text)) {
    g_free (segment.text);
    return g_strdup_printf ("the variable %s appears twice", text);
  }
  g_array_append_val (self->segments, segment);
  return NULL;
}

static gchar *
dup_with_values (const MountPattern *self, const gchar *value)
{
  GString *path = g_string_new (NULL);

  for (guint i = 0; i < self->segments->len; i++) {
    const Segment *segment = &g_array_index (self->segments, Segment, i);

    g_string_append_printf (path, "/%s", segment->kind == SEGMENT_FIXED ? segment->text : value);
  }
  return g_string_free (path, FALSE);
}

MountPattern *
mount_pattern_new (const gchar *path, gchar **wrong)
{
  MountPattern *self = g_new0 (MountPattern, 1);
  g_auto (GStrv) parts = g_strsplit (path[0] == '/' ? path + 1 : path, "/", 0);
  g_autofree gchar *sample = NULL;

  g_atomic_ref_count_init (&self->refs);
  self->path = g_strdup (path);
  self->segments = g_array_new (FALSE, FALSE, sizeof (Segment));
  g_array_set_clear_func (self->segments, clear_segment);
  *wrong = path[0] == '/'
               ? NULL
               : g_strdup_printf ("\"%s\" is not a valid path; write it like /{cam}", path);
  for (guint i = 0; parts[i] && !*wrong; i++)
    *wrong = add_segment (self, parts[i], !parts[i + 1]);
  sample = dup_with_values (self, "x");
  if (!*wrong)
    *wrong = mount_check_path (sample);
  if (*wrong)
    g_clear_pointer (&self, mount_pattern_unref);
  return self;
}

MountPattern *
mount_pattern_ref (MountPattern *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
mount_pattern_unref (MountPattern *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->segments);
  g_free (self->path);
  g_free (self);
}

const gchar *
mount_pattern_get_path (const MountPattern *self)
{
  return self->path;
}

// ---- matching ----

gint
mount_pattern_compare (const MountPattern *a, const MountPattern *b)
{
  for (guint i = 0; i < a->segments->len && i < b->segments->len; i++) {
    const Segment *x = &g_array_index (a->segments, Segment, i);
    const Segment *y = &g_array_index (b->segments, Segment, i);

    if (x->kind != y->kind)
      return (gint) x->kind - (gint) y->kind;
  }
  return strcmp (a->path, b->path);
}

guint
mount_pattern_count_fixed (const MountPattern *self)
{
  guint n = 0;

  while (
      n < self->segments->len && g_array_index (self->segments, Segment, n).kind == SEGMENT_FIXED)
    n++;
  return n;
}

// Reports whether a part of a path between two slashes leads elsewhere, or is a hidden file.
static gboolean
has_dots (const gchar *text)
{
  g_auto (GStrv) parts = g_strsplit (text, "/", 0);

  for (gchar **part = parts; *part; part++) {
    if ((*part)[0] == '.')
      return TRUE;
  }
  return FALSE;
}

GHashTable *
mount_pattern_match (const MountPattern *self, const gchar *path)
{
  g_autoptr (GHashTable) values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autofree gchar *wrong = mount_check_path (path);
  const gchar *at = path;

  for (guint i = 0; !wrong && i < self->segments->len; i++) {
    const Segment *segment = &g_array_index (self->segments, Segment, i);
    g_autofree gchar *part = NULL;

    if (*at != '/')
      return NULL;
    at++;
    part = g_strndup (at, segment->kind == SEGMENT_REST ? strlen (at) : strcspn (at, "/"));
    at += strlen (part);
    if (segment->kind == SEGMENT_FIXED ? !g_str_equal (part, segment->text) : has_dots (part))
      return NULL;
    if (segment->kind != SEGMENT_FIXED)
      g_hash_table_insert (values, g_strdup (segment->text), g_steal_pointer (&part));
  }
  return wrong || *at ? NULL : g_steal_pointer (&values);
}

GHashTable *
mount_pattern_dup_sample (const MountPattern *self)
{
  g_autofree gchar *path = dup_with_values (self, "x");

  return mount_pattern_match (self, path);
}

// ---- URIs ----

// Finds the next {NAME} in a URI. Returns NULL, or its begin; sets `*end` behind it, and `*name`
// (transfer full).
static const gchar *
find_variable (const gchar *uri, const gchar **end, gchar **name)
{
  const gchar *begin = strchr (uri, '{'), *close = begin ? strchr (begin, '}') : NULL;

  if (!close)
    return NULL;
  *end = close + 1;
  *name = g_strndup (begin + 1, (gsize) (close - begin) - 1);
  return begin;
}

// Returns what stands between "://" and the path, which `*path` is set to, or NULL.
static const gchar *
find_authority (const gchar *uri, const gchar **path)
{
  const gchar *authority = strstr (uri, "://");

  if (!authority)
    return NULL;
  authority += strlen ("://");
  *path = authority + strcspn (authority, "/?#");
  return authority;
}

// Returns the host in an authority that ends at `*end`, which is set to its end.
static const gchar *
find_host (const gchar *authority, const gchar **end)
{
  const gchar *at = g_strrstr_len (authority, *end - authority, "@"), *colon;
  const gchar *host = at ? at + 1 : authority;

  colon = g_strrstr_len (host, *end - host, ":");
  if (colon && !memchr (colon, ']', (gsize) (*end - colon)))
    *end = colon;
  return host;
}

gchar *
mount_pattern_dup_host (const gchar *uri)
{
  const gchar *end = NULL, *authority = find_authority (uri, &end), *host;

  if (!authority)
    return g_strdup ("");
  host = find_host (authority, &end);
  return g_strndup (host, (gsize) (end - host));
}

gchar *
mount_pattern_check_uri (const MountPattern *self, const gchar *uri, gboolean *in_host)
{
  const gchar *path = NULL, *authority = find_authority (uri, &path), *end = path, *host;
  const gchar *at = uri, *begin, *behind;
  gchar *name;

  if (!strchr (uri, '{') || g_str_has_prefix (uri, "launch:"))
    return NULL; // braces of a launch line are its own
  if (!authority)
    return g_strdup ("variables may stand in the path and the host of a URI with :// only");
  host = find_host (authority, &end);
  while ((begin = find_variable (at, &behind, &name))) {
    const gboolean known = has_name (self, name);
    gchar *wrong =
        known ? NULL
              : g_strdup_printf ("there is no variable {%s} in the path %s", name, self->path);

    g_free (name);
    if (wrong)
      return wrong;
    if (begin < path && (begin < host || behind > end))
      return g_strdup (
          "a variable may not stand in the scheme, the user, the password or the port");
    *in_host |= begin < path;
    at = behind;
  }
  return strpbrk (at, "{}") ? g_strdup ("a variable is written {NAME}") : NULL;
}

gchar *
mount_pattern_expand (const gchar *uri, GHashTable *values)
{
  GString *out = g_string_new (NULL);
  const gchar *begin, *behind;
  gchar *name;

  if (g_str_has_prefix (uri, "launch:"))
    return g_string_free (g_string_append (out, uri), FALSE);
  while ((begin = find_variable (uri, &behind, &name))) {
    const gchar *value = g_hash_table_lookup (values, name);

    g_string_append_len (out, uri, begin - uri);
    g_string_append (out, value ? value : "");
    g_free (name);
    uri = behind;
  }
  return g_string_free (g_string_append (out, uri), FALSE);
}
