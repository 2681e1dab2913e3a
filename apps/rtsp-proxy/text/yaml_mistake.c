// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/yaml_mistake.h"

#include <string.h>

#define KEY_MAX 1024 // characters of a key before its colon, as YAML allows

typedef struct {
  const yaml_parser_t *parser;
  const gchar *text, *end;
  yaml_mark_t mark; // where the mistake is reported
} Mistake;

// ---- places in the text ----

// Returns the number of bytes of the line break at `at`, or 0 if there is none.
static gsize
get_break (const gchar *at, const gchar *end)
{
  gsize left = (gsize) (end - at);

  if (left >= 2 && at[0] == '\r' && at[1] == '\n')
    return 2;
  if (left >= 1 && (*at == '\n' || *at == '\r'))
    return 1;
  if (left >= 2 && memcmp (at, "\xc2\x85", 2) == 0)
    return 2;
  return left >= 3 && (memcmp (at, "\xe2\x80\xa8", 3) == 0 || memcmp (at, "\xe2\x80\xa9", 3) == 0)
             ? 3
             : 0;
}

static const gchar *
find_end (const Mistake *self, const gchar *line)
{
  while (line < self->end && get_break (line, self->end) == 0)
    line++;
  return line;
}

static const gchar *
find_line (const Mistake *self, gsize line)
{
  const gchar *at = self->text;

  if (self->end - at >= 3 && memcmp (at, "\xef\xbb\xbf", 3) == 0)
    at += 3;
  while (line > 0 && at < self->end) {
    at = find_end (self, at);
    at += get_break (at, self->end);
    line--;
  }
  return at;
}

static const gchar *
find (const Mistake *self, yaml_mark_t mark)
{
  const gchar *at = find_line (self, mark.line);

  for (gsize n = mark.column; n > 0 && at < self->end; n--) {
    at++;
    while (at < self->end && ((guchar) *at & 0xc0) == 0x80) // the rest of a character
      at++;
  }
  return at;
}

// Returns the first character of the text from `mark` on, or NUL at the end.
static gchar
get_char (const Mistake *self, yaml_mark_t mark)
{
  const gchar *at = find (self, mark);

  return at < self->end ? *at : '\0';
}

static const gchar *
skip_blanks (const gchar *at, const gchar *end)
{
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  return at;
}

static gboolean
is_first_of_line (const Mistake *self)
{
  return skip_blanks (find_line (self, self->mark.line), self->end) == find (self, self->mark);
}

// Finds the colon that ends the key of a line: the first with a blank or nothing after it.
static const gchar *
find_colon (const gchar *line, const gchar *end)
{
  for (const gchar *c = line; c < end; c++) {
    if (*c == ':' && (c + 1 == end || c[1] == ' ' || c[1] == '\t'))
      return c;
  }
  return NULL;
}

// ---- mistakes; each function may move `mark` ----

static gchar *
explain_tab (Mistake *self)
{
  return g_strdup ("a tab indents this line; YAML allows spaces only");
}

static gchar *
explain_sign (Mistake *self)
{
  gchar c = get_char (self, self->mark);

  if (c == '\t')
    return explain_tab (self);
  return c > ' ' && c < 0x7f ? g_strdup_printf ("a text that begins with %c needs quotes", c)
                             : NULL;
}

static gchar *
explain_earlier_sign (Mistake *self)
{
  self->mark = self->parser->context_mark;
  return explain_sign (self);
}

static gchar *
explain_open_quote (Mistake *self)
{
  self->mark = self->parser->context_mark;
  return g_strdup_printf (
      "the quote (%c) that begins this text has no end", get_char (self, self->mark));
}

// Explains a line in which no key ends.
static gchar *
explain_line (const gchar *line, const gchar *end)
{
  const gchar *blank = line;

  if (end - line >= 2 && line[0] == '/' && line[1] == '/')
    return g_strdup ("a comment begins with #");
  while (blank < end && !strchr (" \t=:", *blank))
    blank++;
  return g_strdup (blank < end && *blank == ':'
                       ? "a space is missing after the colon of this line"
                       : "expected \"key: value\", but this line has no colon after a key");
}

static gchar *
explain_key_without_colon (Mistake *self)
{
  const gchar *line;

  self->mark = self->parser->context_mark;
  line = find (self, self->mark);
  return explain_line (line, find_end (self, line));
}

// Finds the last line above `mark` with more than a comment. Returns its text and sets `*above`, or
// returns NULL.
static const gchar *
find_above (const Mistake *self, yaml_mark_t *above)
{
  const gchar *line = find_line (self, 0), *text = NULL;

  for (gsize n = 0; n < self->mark.line; n++) {
    const gchar *end = find_end (self, line), *first = skip_blanks (line, end);

    if (first < end && *first != '#') {
      text = first;
      *above = (yaml_mark_t) { .line = n, .column = (gsize) (first - line) };
    }
    line = end + get_break (end, self->end);
  }
  return text;
}

// A colon after a blank stands where no key can end.
static gchar *
explain_colon (Mistake *self)
{
  const gchar *line = find_line (self, self->mark.line), *at = find (self, self->mark), *text;
  yaml_mark_t above;

  line = skip_blanks (line, at);
  if (find_colon (line, at))
    return g_strdup ("a value that contains \": \" needs quotes");
  if (at - line > KEY_MAX)
    return g_strdup_printf ("a key has at most %u characters", KEY_MAX);
  text = find_above (self, &above);
  if (!text)
    return NULL;
  if (!find_colon (text, find_end (self, text))) {
    self->mark = above;
    return explain_line (text, find_end (self, text));
  }
  self->mark.column = (gsize) (line - find_line (self, self->mark.line));
  return g_strdup_printf (
      "this line is indented deeper than line %zu, which has a value already", above.line + 1);
}

static gchar *
explain_no_key (Mistake *self)
{
  const gchar *at = find (self, self->mark), *before = at;
  gchar c = get_char (self, self->mark);

  while (before > self->text && (before[-1] == ' ' || before[-1] == '\t'))
    before--;
  if (c == '}' || c == ']')
    return g_strdup_printf (
        "this %c closes nothing; remove it, or put the text around it in quotes", c);
  if (is_first_of_line (self)) {
    if (c == ':')
      return g_strdup ("the key is missing before this colon");
    if (c == '-')
      return g_strdup ("an item of a list (\"- \") cannot stand here; indent it like the items of "
                       "its list");
    return g_strdup ("the indentation of this line fits none of the lines above");
  }
  if (before > self->text && (before[-1] == '"' || before[-1] == '\''))
    return g_strdup ("a text in quotes ends before this; within double quotes write \\\" for a "
                     "quote, within single ones ''");
  return NULL;
}

static gchar *
explain_no_item (Mistake *self)
{
  return g_strdup ("this line belongs to no item of the list above; indent it like the keys of an "
                   "item, or begin it with \"- \"");
}

// Reports whether a bracket after `at` closes what was open there.
static gboolean
has_end (const Mistake *self, const gchar *at)
{
  gint depth = 0;

  for (; at < self->end && depth >= 0; at++)
    depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
  return depth < 0;
}

static gchar *
explain_no_comma (Mistake *self)
{
  yaml_mark_t open = self->parser->context_mark;
  gchar opener = get_char (self, open), closer = opener == '{' ? '}' : ']';
  gchar c = get_char (self, self->mark);

  if (c == '}' || c == ']')
    return g_strdup_printf ("this %c cannot close the %c of line %zu, column %zu; write %c", c,
        opener, open.line + 1, open.column + 1, closer);
  if (!has_end (self, find (self, self->mark))) {
    self->mark = open;
    return g_strdup_printf ("this %c has no end; add %c", opener, closer);
  }
  return g_strdup_printf ("expected a comma or %c; a text that contains \": \" or quotes needs "
                          "quotes around it",
      closer);
}

static gchar *
explain_no_content (Mistake *self)
{
  gchar c = get_char (self, self->mark);

  if (g_strcmp0 (self->parser->context, "while parsing a flow node") != 0)
    return explain_sign (self);
  if (c == '\0')
    return g_strdup ("a { or [ above has no end; add } or ]");
  return c > ' ' && c < 0x7f ? g_strdup_printf ("a value is missing before this %c", c) : NULL;
}

static gchar *
explain_escape (Mistake *self)
{
  return g_strdup (
      "within double quotes a backslash needs another one (\\\\); or use single quotes");
}

static gchar *
explain_list (Mistake *self)
{
  return g_strdup ("a list begins in the line after its key, or is written [A, B]; a text that "
                   "begins with \"- \" needs quotes");
}

static gchar *
explain_rest (Mistake *self)
{
  return g_strdup (
      self->text < self->end && *self->text == '%'
          ? "a line --- is missing between the lines that begin with % and this one"
          : "what stands above is complete, and this does not belong to it; indent all "
            "keys of the file alike");
}

static const struct {
  const gchar *problem; // how libyaml's words begin
  gchar *(*explain) (Mistake *self);
} rows[] = {
  { "found character that cannot start any token", explain_sign },
  { "found a tab character", explain_tab },
  { "found unexpected end of stream", explain_open_quote },
  { "found unexpected document indicator", explain_open_quote },
  { "mapping values are not allowed", explain_colon },
  { "mapping keys are not allowed", explain_sign },
  { "could not find expected ':'", explain_key_without_colon },
  { "did not find expected key", explain_no_key },
  { "did not find expected '-'", explain_no_item },
  { "did not find expected ','", explain_no_comma },
  { "did not find expected alphabetic or numeric", explain_earlier_sign }, // of an alias
  { "did not find expected comment or line break", explain_earlier_sign }, // of a block of text
  { "did not find expected node content", explain_no_content },
  { "did not find expected <document start>", explain_rest },
  { "found unknown directive name", explain_earlier_sign },
  { "found undefined alias", explain_sign },
  { "second occurrence", explain_sign }, // of an anchor
  { "found unknown escape character", explain_escape },
  { "did not find expected hexdecimal number", explain_escape },
  { "found invalid Unicode character escape code", explain_escape },
  { "block sequence entries are not allowed", explain_list },
};

// ---- what comes before the words of the parser ----

// For bytes that are not text, libyaml reports the offset only.
static gchar *
explain_bytes (Mistake *self)
{
  gsize offset = MIN (self->parser->problem_offset, (gsize) (self->end - self->text));
  gboolean is_rest = g_str_has_prefix (self->parser->problem, "invalid trailing");
  gboolean is_nul = self->text + offset < self->end && !self->text[offset];

  while (is_rest && offset > 0 && (guchar) self->text[offset] < 0xc0) // back to its first byte
    offset--;
  self->mark = (yaml_mark_t) { .index = offset };
  for (gsize i = 0; i < offset; i++) {
    self->mark.column += ((guchar) self->text[i] & 0xc0) != 0x80;
    if (self->text[i] == '\n')
      self->mark = (yaml_mark_t) { .line = self->mark.line + 1 };
  }
  if (is_nul)
    return g_strdup ("a NUL byte; save the file as text in UTF-8");
  if (g_str_has_prefix (self->parser->problem, "control characters"))
    return g_strdup_printf (
        "a control character (U+%04X); remove it", (guint) self->parser->problem_value);
  return g_strdup ("this is not UTF-8; save the file in UTF-8");
}

// If a quote is missing, the text ends at the next one, which is where another text begins. Finds
// the text in quotes that began in an earlier line and ended in that of `mark`.
static gboolean
find_long_quote (const Mistake *self, yaml_mark_t *begin)
{
  yaml_parser_t parser;
  yaml_token_t token;
  gboolean found = FALSE, more = TRUE;

  yaml_parser_initialize (&parser);
  yaml_parser_set_input_string (
      &parser, (const guchar *) self->text, (gsize) (self->end - self->text));
  while (more && yaml_parser_scan (&parser, &token)) {
    more = token.type != YAML_STREAM_END_TOKEN && token.end_mark.line <= self->mark.line;
    if (token.type == YAML_SCALAR_TOKEN && token.end_mark.line == self->mark.line
        && token.start_mark.line < token.end_mark.line
        && (token.data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE
            || token.data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE)) {
      *begin = token.start_mark;
      found = TRUE;
    }
    yaml_token_delete (&token);
  }
  yaml_parser_delete (&parser);
  return found;
}

static gchar *
explain_problem (Mistake *self)
{
  yaml_mark_t begin;

  if (self->parser->error == YAML_READER_ERROR)
    return explain_bytes (self);
  if (self->parser->error != YAML_COMPOSER_ERROR && find_long_quote (self, &begin)) {
    gsize last = self->mark.line + 1;

    self->mark = begin;
    return g_strdup_printf ("the quote (%c) that begins this text is missing at its end: the next "
                            "one is in line %zu",
        get_char (self, begin), last);
  }
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    if (g_str_has_prefix (self->parser->problem, rows[i].problem))
      return rows[i].explain (self);
  }
  return NULL;
}

gchar *
yaml_mistake_explain (const yaml_parser_t *parser, const gchar *text, gsize len, yaml_mark_t *mark)
{
  Mistake self = { parser, text, text + len, parser->problem_mark };
  // The marks are those of characters, as which only UTF-8 is read here.
  gboolean is_utf8 = parser->encoding == YAML_UTF8_ENCODING;
  gchar *wrong = is_utf8 && parser->problem ? explain_problem (&self) : NULL;

  *mark = self.mark;
  if (!wrong)
    wrong = g_strdup_printf ("not YAML: %s", parser->problem ? parser->problem : "out of memory");
  return wrong;
}
