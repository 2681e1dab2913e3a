// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/json_document.h"

#include <string.h>

#define DEPTH_MAX 16 // the parser calls itself for each level

typedef struct {
  yaml_document_t *document;
  const gchar *at, *end;
  yaml_mark_t mark; // of `at`
  guint depth;
  const gchar *wrong;
} Parser;

// A node's id, or 0: it has failed. Of what follows nothing is read then.
static gint parse_value (Parser *self);

static gint
fail (Parser *self, const gchar *wrong)
{
  if (!self->wrong)
    self->wrong = wrong;
  return 0;
}

// The next byte; 0 at the end, as for a NUL, which belongs nowhere.
static gchar
peek (const Parser *self)
{
  return self->at < self->end ? *self->at : '\0';
}

static void
step (Parser *self)
{
  if (*self->at == '\n') {
    self->mark.line++;
    self->mark.column = 0;
  } else if ((*self->at & 0xc0) != 0x80) {
    self->mark.column++; // in characters
  }
  self->at++;
}

static void
skip_space (Parser *self)
{
  while (peek (self) && strchr (" \t\r\n", peek (self)))
    step (self);
}

static gboolean
take (Parser *self, gchar c)
{
  skip_space (self);
  if (peek (self) != c)
    return FALSE;
  step (self);
  return TRUE;
}

static gint
place (Parser *self, gint node, yaml_mark_t mark)
{
  if (!node)
    return fail (self, "there is no memory for it");
  yaml_document_get_node (self->document, node)->start_mark = mark;
  return node;
}

// ---- scalars ----

// Four hexadecimal digits; -1 if they are not there.
static gint
take_hex (Parser *self)
{
  gint value = 0;

  for (guint i = 0; i < 4; i++) {
    if (!g_ascii_isxdigit (peek (self)))
      return -1;
    value = value << 4 | g_ascii_xdigit_value (peek (self));
    step (self);
  }
  return value;
}

// After "\u". One that lies beyond 0xffff is written as two.
static gboolean
take_unicode (Parser *self, GString *out)
{
  gint c = take_hex (self), low;

  if (c >= 0xd800 && c <= 0xdbff) {
    if (self->end - self->at < 2 || self->at[0] != '\\' || self->at[1] != 'u')
      return FALSE;
    step (self);
    step (self);
    low = take_hex (self);
    if (low < 0xdc00 || low > 0xdfff)
      return FALSE;
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  if (c < 0 || (c >= 0xdc00 && c <= 0xdfff))
    return FALSE;
  if (c == 0)
    g_string_append_c (out, '\0');
  else
    g_string_append_unichar (out, (gunichar) c);
  return TRUE;
}

static gboolean
take_escape (Parser *self, GString *out)
{
  static const gchar escapes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
  gchar c = peek (self);
  const gchar *found = c ? strchr (escapes, c) : NULL;

  if (c)
    step (self);
  if (c == 'u')
    return take_unicode (self, out);
  if (found)
    g_string_append_c (out, means[found - escapes]);
  return found != NULL;
}

// After its first quote.
static gboolean
take_string (Parser *self, GString *out)
{
  while (peek (self) != '"') {
    if (self->at == self->end)
      return fail (self, "a string has no end");
    if ((guchar) peek (self) < 0x20)
      return fail (self, "a control character in a string is written as \\u and its number");
    if (*self->at == '\\') {
      step (self);
      if (!take_escape (self, out))
        return fail (self, "after \\ belongs one of \" \\ / b f n r t, or u and four digits");
    } else {
      g_string_append_c (out, *self->at);
      step (self);
    }
  }
  step (self);
  return TRUE;
}

static gint
parse_string (Parser *self)
{
  yaml_mark_t mark = self->mark;
  GString *out = g_string_new (NULL);
  gint node = 0;

  step (self);
  if (take_string (self, out))
    node = place (self,
        yaml_document_add_scalar (self->document, NULL, (yaml_char_t *) out->str, (gint) out->len,
            YAML_DOUBLE_QUOTED_SCALAR_STYLE),
        mark);
  g_string_free (out, TRUE);
  return node;
}

static gboolean
is_word (const gchar *word)
{
  return g_str_equal (word, "true") || g_str_equal (word, "false") || g_str_equal (word, "null")
         || g_regex_match_simple (
             "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$", word, G_REGEX_DOLLAR_ENDONLY, 0);
}

// A number, true, false or null.
static gint
parse_word (Parser *self)
{
  yaml_mark_t mark = self->mark;
  const gchar *from = self->at;
  gchar *word;
  gint node = 0;

  while (g_ascii_isalnum (peek (self)) || (peek (self) && strchr ("-+.", peek (self))))
    step (self);
  word = g_strndup (from, (gsize) (self->at - from));
  if (is_word (word)) {
    node = place (self,
        yaml_document_add_scalar (
            self->document, NULL, (yaml_char_t *) word, -1, YAML_PLAIN_SCALAR_STYLE),
        mark);
  } else {
    self->mark = mark;
    fail (self, "a value belongs here: a text in double quotes, a number, true, false, null, "
                "{...} or [...]");
  }
  g_free (word);
  return node;
}

// ---- what holds others ----

static gboolean
take_pair (Parser *self, gint mapping)
{
  gint name, value;

  skip_space (self);
  if (peek (self) != '"')
    return fail (self, "a name in double quotes belongs here");
  name = parse_string (self);
  if (name && !take (self, ':'))
    return fail (self, "a : belongs here");
  value = name ? parse_value (self) : 0;
  return value
         && (yaml_document_append_mapping_pair (self->document, mapping, name, value)
             || fail (self, "there is no memory for it"));
}

static gint
parse_object (Parser *self)
{
  gint node = place (
      self, yaml_document_add_mapping (self->document, NULL, YAML_FLOW_MAPPING_STYLE), self->mark);

  step (self);
  if (!node || take (self, '}'))
    return node;
  do {
    if (!take_pair (self, node))
      return 0;
  } while (take (self, ','));
  return take (self, '}') ? node : fail (self, "a , or } belongs here");
}

static gint
parse_array (Parser *self)
{
  gint node = place (self,
      yaml_document_add_sequence (self->document, NULL, YAML_FLOW_SEQUENCE_STYLE), self->mark);
  gint item;

  step (self);
  if (!node || take (self, ']'))
    return node;
  do {
    item = parse_value (self);
    if (!item)
      return 0;
    if (!yaml_document_append_sequence_item (self->document, node, item))
      return fail (self, "there is no memory for it");
  } while (take (self, ','));
  return take (self, ']') ? node : fail (self, "a , or ] belongs here");
}

static gint
parse_value (Parser *self)
{
  gint node;

  skip_space (self);
  if (peek (self) == '"')
    return parse_string (self);
  if (peek (self) != '{' && peek (self) != '[')
    return parse_word (self);
  if (++self->depth > DEPTH_MAX)
    return fail (self, "this is too deep");
  node = peek (self) == '{' ? parse_object (self) : parse_array (self);
  self->depth--;
  return node;
}

const gchar *
json_document_parse (yaml_document_t *document, const gchar *text, gsize len, yaml_mark_t *where)
{
  Parser self = { document, text, text + len, { 0 }, 0, NULL };
  const gchar *valid;

  if (!g_utf8_validate_len (text, len, &valid)) {
    while (self.at < valid)
      step (&self);
    fail (&self, "this is no UTF-8 text");
  } else {
    if (parse_value (&self))
      skip_space (&self);
    if (self.at < self.end)
      fail (&self, "nothing belongs behind the end");
  }
  *where = self.mark;
  return self.wrong;
}
