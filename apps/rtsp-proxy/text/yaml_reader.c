// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/yaml_reader_private.h"

#include "text/config_error.h"
#include "text/yaml_mistake.h"

#include <string.h>

#define MISTAKES_MAX 20 // in a report
#define KEY_MAX 64      // bytes
#define LISTED_MAX 16   // keys in a message
#define SECRET_MIN 4    // bytes of a value that errors do not show; shorter ones are parts of words
#define DEPTH_MAX 32    // libyaml's time for a token grows with the depth, up to hours

typedef struct {
  yaml_mark_t mark;
  gchar *text;
  gint code;
  guint number; // in the order of time, from 0
} Mistake;

static void
clear_mistake (gpointer mistake)
{
  g_free (((Mistake *) mistake)->text);
}

static gboolean
is_before (yaml_mark_t a, yaml_mark_t b)
{
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

static gchar *
join_mistakes (const YamlReader *self)
{
  GString *all = g_string_new (NULL);

  for (guint i = 0; i < self->mistakes->len; i++)
    g_string_append_printf (
        all, "%s%s", i ? "\n" : "", g_array_index (self->mistakes, Mistake, i).text);
  if (self->n_mistakes > self->mistakes->len)
    g_string_append_printf (
        all, "\n%s: and %u more", self->file, self->n_mistakes - self->mistakes->len);
  return g_string_free (all, FALSE);
}

// Reports whether the same was said of a value that several mappings have.
static gboolean
is_known (const YamlReader *self, const Mistake *mistake)
{
  for (guint i = 0; i < self->mistakes->len; i++) {
    const Mistake *known = &g_array_index (self->mistakes, Mistake, i);

    if (known->mark.index == mistake->mark.index && g_str_equal (known->text, mistake->text))
      return TRUE;
  }
  return FALSE;
}

// Takes ownership of `text`.
static gboolean
add_mistake (YamlReader *self, yaml_mark_t mark, gint code, GError **error, gchar *text)
{
  Mistake mistake = { mark, text, code, self->n_mistakes };
  guint at = self->mistakes->len;

  for (gchar *c = text; *c; c++) {
    if ((guchar) *c < 0x20) // keeps each mistake on one line
      *c = '?';
  }
  if (is_known (self, &mistake)) {
    g_free (text);
    return FALSE;
  }
  while (at > 0 && is_before (mark, g_array_index (self->mistakes, Mistake, at - 1).mark))
    at--;
  g_array_insert_val (self->mistakes, at, mistake);
  if (self->mistakes->len > MISTAKES_MAX)
    g_array_set_size (self->mistakes, MISTAKES_MAX);
  self->n_mistakes++;
  if (error && *error) {
    g_free ((*error)->message);
    (*error)->message = join_mistakes (self);
  } else {
    g_set_error_literal (error, CONFIG_ERROR, code, text);
  }
  return FALSE;
}

void
yaml_set_wrong (YamlReader *self, const YamlNode *node)
{
  g_hash_table_add (self->wrong, (gpointer) node);
}

gboolean
yaml_is_wrong (const YamlReader *self, const YamlNode *node)
{
  return g_hash_table_contains (self->wrong, node);
}

guint
yaml_n_mistakes (const YamlReader *self)
{
  return self->n_mistakes;
}

gchar *
yaml_forgive_absences (YamlReader *self, guint n)
{
  GString *lines = NULL;

  // Those that a full report left out are unknown.
  if (self->n_mistakes > self->mistakes->len)
    return NULL;
  for (guint i = 0; i < self->mistakes->len; i++) {
    const Mistake *mistake = &g_array_index (self->mistakes, Mistake, i);

    if (mistake->number >= n && mistake->code != CONFIG_ERROR_ABSENT)
      return NULL;
  }
  for (guint i = self->mistakes->len; i-- > 0;) {
    const Mistake *mistake = &g_array_index (self->mistakes, Mistake, i);

    if (mistake->number < n)
      continue;
    if (lines)
      g_string_prepend (lines, "; ");
    else
      lines = g_string_new (NULL);
    g_string_prepend (lines, mistake->text);
    g_array_remove_index (self->mistakes, i);
  }
  self->n_mistakes = n;
  return lines ? g_string_free (lines, FALSE) : NULL;
}

// Puts the names of environment variables in place of their values, which may be secret.
// (transfer full)
static gchar *
hide_variables (const YamlReader *self, const gchar *text)
{
  GString *shown = g_string_new (text);
  GHashTableIter iter;
  gpointer value, name;

  g_hash_table_iter_init (&iter, self->variables);
  while (g_hash_table_iter_next (&iter, &value, &name)) {
    g_autofree gchar *sign = g_strdup_printf ("${%s}", (const gchar *) name);

    if (strlen (value) >= SECRET_MIN)
      g_string_replace (shown, value, sign, 0);
  }
  return g_string_free (shown, FALSE);
}

// Returns the place of a mark, or `origin` if it is not NULL. (transfer full)
static gchar *
dup_place (const YamlReader *self, yaml_mark_t mark, const gchar *origin)
{
  return origin ? g_strdup (origin)
                : g_strdup_printf ("%s:%zu:%zu", self->file, mark.line + 1, mark.column + 1);
}

static gboolean
fail_at (YamlReader *self, yaml_mark_t mark, const gchar *origin, const gchar *key, gint code,
    GError **error, const gchar *text)
{
  g_autofree gchar *place = dup_place (self, mark, origin), *shown = hide_variables (self, text);

  return add_mistake (self, mark, code, error,
      g_strdup_printf ("%s: %s%s%s", place, key ? key : "", key ? ": " : "", shown));
}

// Returns where the value of a node comes from, if not from the file; or NULL.
static const gchar *
get_origin (const YamlReader *self, const YamlNode *node)
{
  return g_hash_table_lookup (self->origins, GINT_TO_POINTER (yaml_number (self, node)));
}

gboolean
yaml_fail_error (YamlReader *self, const YamlNode *node, gint code, GError **error, GError *found)
{
  add_mistake (self, node->start_mark, code, error, g_strdup (found->message));
  g_error_free (found);
  return FALSE;
}

// Characters that look like those of YAML, as word processors and web pages write them.
static const struct {
  gunichar character;
  const gchar *name, *instead;
} alikes[] = {
  { 0x201c, "a curly quote", "\"" },
  { 0x201d, "a curly quote", "\"" },
  { 0x201e, "a curly quote", "\"" },
  { 0x2018, "a curly quote", "'" },
  { 0x2019, "a curly quote", "'" },
  { 0x2010, "a dash", "-" },
  { 0x2013, "a dash", "-" },
  { 0x2014, "a dash", "-" },
  { 0x2212, "a dash", "-" },
  { 0x00a0, "a no-break space", "a plain one" },
  { 0x202f, "a no-break space", "a plain one" },
  { 0x3000, "a wide space", "a plain one" },
  { 0xff1a, "a wide colon", ":" },
  { 0xff0c, "a wide comma", "," },
  { 0x200b, "an invisible character", "nothing" },
  { 0xfeff, "an invisible character", "nothing" },
};

// Returns what to write in place of such a character of the text of a node, as the end of an error
// message; or NULL. (transfer full)
static gchar *
dup_hint (const YamlNode *node)
{
  const gchar *text = (const gchar *) node->data.scalar.value;

  if (node->type != YAML_SCALAR_NODE)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (alikes); i++) {
    if (g_utf8_strchr (text, -1, alikes[i].character))
      return g_strdup_printf (
          "; it has %s (U+%04X): write %s", alikes[i].name, alikes[i].character, alikes[i].instead);
  }
  return NULL;
}

gboolean
yaml_fail (YamlReader *self, const YamlNode *node, const gchar *key, gint code, GError **error,
    const gchar *text)
{
  g_autofree gchar *hint = dup_hint (node), *whole = hint ? g_strconcat (text, hint, NULL) : NULL;

  fail_at (self, node->start_mark, get_origin (self, node), key, code, error, whole ? whole : text);
  return FALSE;
}

gboolean
yaml_fail_take (YamlReader *self, const YamlNode *node, const gchar *key, gint code, GError **error,
    gchar *text)
{
  yaml_fail (self, node, key, code, error, text);
  g_free (text);
  return FALSE;
}

gboolean
yaml_fail_place (YamlReader *self, guint line, guint column, const gchar *key, gint code,
    GError **error, gchar *text)
{
  yaml_mark_t mark = { .line = line - 1, .column = column - 1 };

  fail_at (self, mark, NULL, key, code, error, text);
  g_free (text);
  return FALSE;
}

// Checks the depth and the number of documents before the document is loaded, and that there is
// nothing but YAML. Returns an error message and sets `*mark`, or returns NULL. (transfer full)
static gchar *
check_structure (const gchar *text, gsize len, yaml_mark_t *mark)
{
  const gchar *wrong = NULL;
  gchar *mistake = NULL;
  guint depth = 0, n_documents = 0;
  yaml_parser_t parser;
  yaml_event_t event;
  gboolean more = TRUE;

  yaml_parser_initialize (&parser);
  yaml_parser_set_input_string (&parser, (const guchar *) text, len);
  while (more && !wrong && yaml_parser_parse (&parser, &event)) {
    *mark = event.start_mark;
    more = event.type != YAML_STREAM_END_EVENT;
    if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT)
      wrong = ++depth > DEPTH_MAX ? "nested too deeply: at most 32 levels are allowed" : NULL;
    else if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
      depth--;
    else if (event.type == YAML_DOCUMENT_START_EVENT && ++n_documents > 1)
      wrong = "a second YAML document begins here; put everything into one";
    yaml_event_delete (&event);
  }
  if (more)
    mistake = wrong ? g_strdup (wrong) : yaml_mistake_explain (&parser, text, len, mark);
  yaml_parser_delete (&parser);
  return mistake;
}

static void
reader_free (YamlReader *self)
{
  g_array_unref (self->mistakes);
  g_hash_table_unref (self->wrong);
  g_hash_table_unref (self->heirs);
  g_hash_table_unref (self->variables);
  g_hash_table_unref (self->origins);
  g_free (self->file);
  g_free (self);
}

YamlReader *
yaml_reader_new (const gchar *name, const gchar *text, gsize len, GError **error)
{
  YamlReader *self = g_new0 (YamlReader, 1);
  yaml_parser_t parser;
  yaml_mark_t mark;
  g_autofree gchar *wrong = NULL;

  self->file = g_strdup (name);
  self->mistakes = g_array_new (FALSE, FALSE, sizeof (Mistake));
  g_array_set_clear_func (self->mistakes, clear_mistake);
  self->wrong = g_hash_table_new (NULL, NULL);
  self->heirs = g_hash_table_new (NULL, NULL);
  self->variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->origins = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  wrong = check_structure (text, len, &mark);
  if (!wrong) {
    yaml_parser_initialize (&parser);
    yaml_parser_set_input_string (&parser, (const guchar *) text, len);
    if (!yaml_parser_load (&parser, &self->document)) // an anchor is missing, or there twice
      wrong = yaml_mistake_explain (&parser, text, len, &mark);
    yaml_parser_delete (&parser);
  }
  if (!wrong)
    return self;
  fail_at (self, mark, NULL, NULL, CONFIG_ERROR_YAML, error, wrong);
  reader_free (self);
  return NULL;
}

YamlReader *
yaml_reader_open (const gchar *file, GError **error)
{
  YamlReader *self;
  GError *read_error = NULL;
  gchar *text = NULL;
  gsize len = 0;

  if (!g_file_get_contents (file, &text, &len, &read_error)) {
    g_set_error_literal (error, CONFIG_ERROR, CONFIG_ERROR_FILE, read_error->message);
    g_error_free (read_error);
    return NULL;
  }
  self = yaml_reader_new (file, text, len, error);
  g_free (text);
  return self;
}

void
yaml_reader_free (YamlReader *self)
{
  yaml_document_delete (&self->document);
  reader_free (self);
}

YamlNode *
yaml_root (YamlReader *self)
{
  return yaml_document_get_root_node (&self->document);
}

gboolean
yaml_is_mapping (const YamlNode *node)
{
  return node->type == YAML_MAPPING_NODE;
}

gboolean
yaml_is_sequence (const YamlNode *node)
{
  return node->type == YAML_SEQUENCE_NODE;
}

gboolean
yaml_is_null (const YamlNode *node)
{
  const gchar *text = (const gchar *) node->data.scalar.value;

  return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
         && (!*text || g_str_equal (text, "~") || g_str_equal (text, "null"));
}

gboolean
yaml_is_missing (const YamlNode *node)
{
  return node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0
         && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

void
yaml_place (const YamlNode *node, guint *line, guint *column)
{
  *line = (guint) node->start_mark.line + 1;
  *column = (guint) node->start_mark.column + 1;
}

gchar *
yaml_dup_place (YamlReader *self, const YamlNode *node)
{
  return dup_place (self, node->start_mark, get_origin (self, node));
}

const gchar *
yaml_text (YamlReader *self, const YamlNode *node)
{
  if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0
      || memchr (node->data.scalar.value, 0, node->data.scalar.length))
    return NULL;
  return (const gchar *) node->data.scalar.value;
}

YamlNode *
yaml_item (YamlReader *self, const YamlNode *sequence, guint i)
{
  yaml_node_item_t *item = sequence->data.sequence.items.start + i;

  if (item >= sequence->data.sequence.items.top)
    return NULL;
  return yaml_document_get_node (&self->document, *item);
}

gboolean
yaml_pair (YamlReader *self, const YamlNode *mapping, guint i, YamlNode **key, YamlNode **value)
{
  yaml_node_pair_t *pair = mapping->data.mapping.pairs.start + i;

  if (pair >= mapping->data.mapping.pairs.top)
    return FALSE;
  *key = yaml_document_get_node (&self->document, pair->key);
  *value = yaml_document_get_node (&self->document, pair->value);
  return TRUE;
}

YamlNode *
yaml_get (YamlReader *self, const YamlNode *mapping, const gchar *name)
{
  YamlNode *key, *value;

  for (guint i = 0; yaml_pair (self, mapping, i, &key, &value); i++) {
    if (!g_strcmp0 (yaml_text (self, key), name))
      return value;
  }
  return NULL;
}

// Compares two characters of keys as a person takes them: "Read_Timeout" is near "read-timeout".
static gboolean
is_same (gchar a, gchar b)
{
  return g_ascii_tolower (a) == g_ascii_tolower (b) || (a == '_' && b == '-');
}

// Returns the number of edits between two keys: of single characters, and of two that are swapped.
static guint
count_edits (const gchar *a, const gchar *b)
{
  const gsize m = strlen (a), n = strlen (b), width = n + 1;
  guint *edits = g_new (guint, (m + 1) * width), result; // [i][j]: of the first i and j characters

  for (gsize i = 0; i <= m; i++) {
    for (gsize j = 0; j <= n; j++) {
      guint *at = edits + i * width + j;

      if (i == 0 || j == 0) {
        *at = (guint) (i + j);
        continue;
      }
      *at = MIN (at[-1], *(at - width)) + 1;
      *at = MIN (*at, *(at - width - 1) + !is_same (a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && is_same (a[i - 1], b[j - 2]) && is_same (a[i - 2], b[j - 1]))
        *at = MIN (*at, *(at - 2 * width - 2) + 1);
    }
  }
  result = edits[m * width + n];
  g_free (edits);
  return result;
}

// Returns the known key that `key` likely stands for, or NULL: a third of it may be wrong.
static const gchar *
find_near (const gchar *key, const gchar *const *keys)
{
  guint least = (guint) MAX (strlen (key) / 3, 1) + 1;
  const gchar *nearest = NULL;

  for (guint i = 0; keys[i]; i++) {
    guint edits = count_edits (key, keys[i]);

    if (edits < least && edits < strlen (keys[i])) {
      least = edits;
      nearest = keys[i];
    }
  }
  return nearest;
}

static gchar *
dup_unknown (const gchar *text, const gchar *const *keys, const gchar *const *renamed)
{
  const gchar *near;
  gchar *all, *wrong;

  if (text[0] == '-')
    return g_strdup_printf ("unknown key \"%.64s\"; a space is missing after the dash", text);
  for (guint i = 0; renamed && renamed[i]; i += 2) {
    if (g_str_equal (text, renamed[i]))
      return g_strdup_printf ("unknown key \"%s\"; it is called \"%s\" now", text, renamed[i + 1]);
  }
  near = strlen (text) > KEY_MAX ? NULL : find_near (text, keys);
  if (near)
    return g_strdup_printf ("unknown key \"%s\"; the nearest known one is \"%s\"", text, near);
  if (g_strv_length ((gchar **) keys) > LISTED_MAX)
    return g_strdup_printf ("unknown key \"%.64s\"; rtsp-proxy --help lists the known ones", text);
  all = g_strjoinv (", ", (gchar **) keys);
  wrong = g_strdup_printf ("unknown key \"%.64s\"; known: %s", text, all);
  g_free (all);
  return wrong;
}

static gboolean
check_key (YamlReader *self, const YamlNode *node, YamlNode *key, const YamlNode *value,
    const gchar *name, const gchar *const *keys, const gchar *const *renamed, GError **error)
{
  const gchar *text = yaml_text (self, key);

  if (!text)
    return yaml_fail (self, key, name, CONFIG_ERROR_KEY, error, "expected a key");
  if (strlen (text) > KEY_MAX || !g_strv_contains (keys, text))
    return yaml_fail_take (
        self, key, name, CONFIG_ERROR_KEY, error, dup_unknown (text, keys, renamed));
  if (yaml_get (self, node, text) != value)
    return yaml_fail_take (
        self, key, name, CONFIG_ERROR_KEY, error, g_strdup_printf ("\"%s\" appears twice", text));
  return TRUE;
}

gboolean
yaml_expect_mapping (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *expected, GError **error)
{
  const gchar *text = yaml_text (self, node), *colon = text ? strchr (text, ':') : NULL;
  const gchar *hint = "";

  if (yaml_is_mapping (node))
    return TRUE;
  if (yaml_is_sequence (node))
    hint = "; this is a list";
  else if (text && text[0] == '-')
    hint = "; a space is missing after the dash";
  else if (colon && colon > text && (gsize) (colon - text) < strcspn (text, " ")
           && !g_str_has_prefix (colon, "://")
           && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
    hint = "; a space is missing after the colon";
  return yaml_fail_take (
      self, node, name, CONFIG_ERROR_VALUE, error, g_strconcat (expected, hint, NULL));
}

gboolean
yaml_check_keys (YamlReader *self, const YamlNode *node, const gchar *name,
    const gchar *const *keys, const gchar *const *renamed, GError **error)
{
  YamlNode *key, *value;
  gboolean ok = TRUE;

  if (!yaml_expect_mapping (self, node, name, "expected \"key: value\" lines", error))
    return FALSE;
  for (guint i = 0; yaml_pair (self, node, i, &key, &value); i++)
    ok = check_key (self, node, key, value, name, keys, renamed, error) && ok;
  return ok;
}

gboolean
yaml_check_alternatives (YamlReader *reader, const YamlNode *mapping, const gchar *prefix,
    const gchar *text, GError **error)
{
  YamlNode *key, *value;
  guint n = 0;

  if (!yaml_is_mapping (mapping))
    return TRUE; // yaml_check_keys() reports it
  for (guint i = 0; yaml_pair (reader, mapping, i, &key, &value); i++) {
    const gchar *name = yaml_text (reader, key);

    if (name && g_str_has_prefix (name, prefix) && !yaml_is_null (value) && ++n > 1)
      return yaml_fail (reader, value, name, CONFIG_ERROR_KEY, error, text);
  }
  return TRUE;
}
