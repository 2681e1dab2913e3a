// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/json_strict.h"

#include <math.h>
#include <string.h>

// Returns the end of the string that begins at `at`, or NULL if it does not end, or has a control
// character or a NUL, which would end a C string early.
static const gchar *
skip_string (const gchar *at, const gchar *end)
{
  for (at++; at < end && *at != '"'; at++) {
    if ((guchar) *at < 0x20)
      return NULL;
    if (*at != '\\')
      continue;
    if (end - at >= 6 && memcmp (at, "\\u0000", 6) == 0)
      return NULL;
    at++; // may be a quote
  }
  return at < end ? at + 1 : NULL;
}

static gboolean
may_stand_outside (gchar c)
{
  return g_ascii_isalnum (c) || (c && strchr (" \t\r\n{}[]:,+-.", c));
}

// Checks what json-glib does not: one object, its depth, and no bytes that JSON does not have
// outside of strings.
static gboolean
is_one_object (const gchar *text, gsize len, guint depth)
{
  const gchar *end = text + len;
  gboolean began = FALSE;
  guint open = 0;

  while (text && text < end) {
    gboolean blank = strchr (" \t\r\n", *text) && *text;

    if (!blank && open == 0 && (began || *text != '{'))
      return FALSE;
    if (*text == '"') {
      text = skip_string (text, end);
      continue;
    }
    if (!may_stand_outside (*text))
      return FALSE;
    began |= !blank;
    if (*text == '{' || *text == '[')
      open++;
    else if (*text == '}' || *text == ']')
      open--;
    if (open > depth)
      return FALSE;
    text++;
  }
  return text && began && open == 0;
}

typedef struct {
  GArray *members; // guint, for each open object: the members read so far
  gboolean twice;
} Members;

static void
on_object_start (JsonParser *parser, Members *self)
{
  guint none = 0;

  g_array_append_val (self->members, none);
}

static void
on_member (JsonParser *parser, JsonObject *object, const gchar *name, Members *self)
{
  if (self->members->len > 0)
    g_array_index (self->members, guint, self->members->len - 1)++;
}

// An object keeps the last of two members with one name, so that it has fewer than were read.
static void
on_object_end (JsonParser *parser, JsonObject *object, Members *self)
{
  if (self->members->len == 0)
    return;
  if (g_array_index (self->members, guint, self->members->len - 1) != json_object_get_size (object))
    self->twice = TRUE;
  g_array_set_size (self->members, self->members->len - 1);
}

JsonObject *
json_strict_read (const gchar *text, gsize len, guint depth)
{
  Members members = { NULL };
  JsonObject *object = NULL;
  g_autoptr (JsonParser) parser = NULL;
  JsonNode *root;

  if (len > G_MAXINT || !is_one_object (text, len, depth))
    return NULL;
  members.members = g_array_new (FALSE, FALSE, sizeof (guint));
  parser = json_parser_new ();
  g_signal_connect (parser, "object-start", G_CALLBACK (on_object_start), &members);
  g_signal_connect (parser, "object-member", G_CALLBACK (on_member), &members);
  g_signal_connect (parser, "object-end", G_CALLBACK (on_object_end), &members);
  if (json_parser_load_from_data (parser, text, (gssize) len, NULL) && !members.twice) {
    root = json_parser_get_root (parser);
    if (root && JSON_NODE_HOLDS_OBJECT (root))
      object = json_node_dup_object (root);
  }
  g_array_unref (members.members);
  return object;
}

const gchar *
json_strict_text (JsonObject *object, const gchar *name)
{
  JsonNode *node = json_object_get_member (object, name);
  const gchar *text;

  if (!node || !JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != G_TYPE_STRING)
    return NULL;
  text = json_node_get_string (node);
  return g_utf8_validate (text, -1, NULL) ? text : NULL; // json-glib accepts half a surrogate
}

JsonArray *
json_strict_array (JsonObject *object, const gchar *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

gboolean
json_strict_number (JsonObject *object, const gchar *name, gdouble *number)
{
  JsonNode *node = json_object_get_member (object, name);
  GType type = node && JSON_NODE_HOLDS_VALUE (node) ? json_node_get_value_type (node) : G_TYPE_NONE;

  if (type != G_TYPE_INT64 && type != G_TYPE_DOUBLE)
    return FALSE;
  *number = json_node_get_double (node);
  return isfinite (*number);
}
