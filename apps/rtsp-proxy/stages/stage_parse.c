// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_parse.h"

#include "stages/stage_header.h"
#include "text/config_error.h"

#include <string.h>

#define MAX_FILE (64 * 1024)

/* Launch text */

static gboolean
fail_at (const gchar *file, const gchar *text, gsize offset, GError **error, const gchar *wrong)
{
  guint line = 1, column = 1;

  for (gsize i = 0; i < offset; i++) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE, "%s:%u:%u: %s", file, line, column, wrong);
  return FALSE;
}

// Replaces comments by spaces, so that line and column numbers stay right.
static gchar *
blank_comments (const gchar *text)
{
  gchar *copy = g_strdup (text);

  for (gchar *line = copy; *line; line += *line == '\n') {
    gsize len = strcspn (line, "\n");

    if (line[strspn (line, " \t")] == '#')
      memset (line, ' ', len);
    line += len;
  }
  return copy;
}

// Returns what is wrong with the references to inputs in a launch text (transfer full), or NULL,
// and sets `*offset` to its place. Adds those that are right to the bits `*used`.
static gchar *
find_wrong_input_of (const StageFile *self, const gchar *text, gsize *offset, guint *used)
{
  for (const gchar *at = text; (at = strstr (at, "input")); at++) {
    gsize digits = strspn (at + strlen ("input"), G_CSET_DIGITS);
    guint64 n = g_ascii_strtoull (at + strlen ("input"), NULL, 10);

    if (!digits || at[strlen ("input") + digits] != '.' || (at > text && !g_ascii_isspace (at[-1])))
      continue;
    *offset = (gsize) (at - text);
    if (n >= self->inputs)
      return g_strdup_printf ("there is no input%" G_GUINT64_FORMAT
                              "; with inputs: %u, the stage has input0 to input%u",
          n, self->inputs, self->inputs - 1);
    *used |= 1u << n;
  }
  return NULL;
}

// Returns what is wrong with the references to the stage's inputs (transfer full), or NULL, and
// sets `*offset` to its place. Those in the texts of choices count, too.
static gchar *
find_wrong_input (const StageFile *self, gsize *offset)
{
  gchar *wrong;
  gsize unused;
  guint used = 0;

  if (!self->inputs)
    return NULL;
  wrong = find_wrong_input_of (self, self->text, offset, &used);
  if (wrong)
    return wrong;
  *offset = 0;
  for (guint i = 0; i < self->params->len; i++) {
    const StageParam *param = g_ptr_array_index (self->params, i);

    for (guint j = 0; j < param->choices->len; j++) {
      const StageChoice *choice = g_ptr_array_index (param->choices, j);

      wrong = choice->text ? find_wrong_input_of (self, choice->text, &unused, &used) : NULL;
      if (wrong)
        return wrong;
    }
  }
  for (guint n = 0; n < self->inputs; n++) {
    if (!(used & 1u << n))
      return g_strdup_printf ("the stage does not use input%u; write input%u. ! ELEMENT", n, n);
  }
  return NULL;
}

static gboolean
take_launch (StageFile *self, const gchar *text, gsize start, GError **error)
{
  gchar *wrong;
  gsize offset = 0;
  gboolean empty;

  self->text = blank_comments (text + start);
  empty = !self->text[strspn (self->text, " \t\r\n")];
  if (empty != self->native)
    return fail_at (self->file, text, start, error,
        empty ? "expected launch text" : "a native stage has no launch text");
  wrong = stage_file_check_text (self, self->text, FALSE, &offset);
  if (!wrong)
    wrong = find_wrong_input (self, &offset);
  if (!wrong)
    return TRUE;
  fail_at (self->file, text, start + offset, error, wrong);
  g_free (wrong);
  return FALSE;
}

/* The file */

// Returns the offset after the line that ends the header, or 0 if there is no header.
static gsize
find_launch (const gchar *text)
{
  const gchar *end;

  if (!g_str_has_prefix (text, "---\n"))
    return 0;
  end = strstr (text, "\n---\n");
  return end ? (gsize) (end + 5 - text) : 0;
}

static gboolean
parse (StageFile *self, const gchar *text, gsize len, GError **error)
{
  gsize start = find_launch (text);
  YamlReader *reader;
  gboolean ok;

  if (len > MAX_FILE || strlen (text) != len || !g_utf8_validate (text, (gssize) len, NULL))
    return fail_at (self->file, text, 0, error, "expected UTF-8 text of at most 64 KiB");
  if (!start)
    return fail_at (self->file, text, 0, error, "expected a YAML header between two lines ---");
  // The first line --- belongs to YAML, so the line numbers are right.
  reader = yaml_reader_new (self->file, text, start - strlen ("---\n"), error);
  if (!reader)
    return FALSE;
  if (yaml_root (reader))
    ok = stage_header_read (reader, self, error);
  else
    ok = fail_at (self->file, text, 0, error, "the header is empty");
  yaml_reader_free (reader);
  return ok && take_launch (self, text, start, error);
}

StageFile *
stage_file_parse (
    const gchar *name, const gchar *file, const gchar *text, gsize len, GError **error)
{
  StageFile *self = stage_file_new (name, file);

  self->sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, len);
  if (!parse (self, text, len, error))
    g_clear_pointer (&self, stage_file_free);
  return self;
}
