// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_file.h"

#include "stages/stage_header.h"
#include "stages/stage_text.h"
#include "text/config_error.h"

#include <string.h>

#define MAX_FILE (64 * 1024)

const gchar *const stage_formats[] = { "nothing", "rtp", "raw", NULL };

const gchar *const stage_media[] = { "video", "audio", "any", NULL }; // StageMedia - 1

const gchar *
stage_media_name (StageMedia media)
{
  return stage_media[media - 1];
}

static void
codec_free (gpointer data)
{
  StageCodec *codec = data;

  g_free (codec->name);
  g_ptr_array_unref (codec->texts);
  g_free (codec);
}

static StageFile *
file_new (const gchar *name, const gchar *file)
{
  StageFile *self = g_new0 (StageFile, 1);

  self->name = g_strdup (name);
  self->file = g_strdup (file);
  self->media = STAGE_ANY;
  self->codecs = g_ptr_array_new_with_free_func (codec_free);
  self->params = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_param_free);
  return self;
}

void
stage_file_free (StageFile *self)
{
  g_free (self->name);
  g_free (self->file);
  g_free (self->summary);
  g_free (self->codec);
  g_ptr_array_unref (self->codecs);
  g_ptr_array_unref (self->params);
  g_free (self->text);
  g_free (self->sum);
  g_free (self);
}

StageParam *
stage_file_find_param (const StageFile *self, const gchar *name)
{
  for (guint i = 0; i < self->params->len; i++) {
    StageParam *param = g_ptr_array_index (self->params, i);

    if (g_str_equal (param->name, name))
      return param;
  }
  return NULL;
}

const StageCodec *
stage_file_find_codec (const StageFile *self, const gchar *name)
{
  for (guint i = 0; i < self->codecs->len; i++) {
    const StageCodec *codec = g_ptr_array_index (self->codecs, i);

    if (g_ascii_strcasecmp (codec->name, name) == 0)
      return codec;
  }
  return NULL;
}

/* The launch text */

typedef struct {
  const StageFile *file;
  gboolean nested; // in a text that is put into another
} Context;

// Only whether there is such a form matters.
static gchar *
look_up (const gchar *name, const gchar *form, gpointer data)
{
  const Context *context = data;
  const StageParam *param = stage_file_find_param (context->file, name);
  const StageChoice *choice;
  gchar *value = NULL, *found;

  if (!context->nested && !form && g_str_equal (name, "codec"))
    return context->file->codecs->len ? g_strdup ("") : NULL;
  if (!param || param->type == STAGE_PARAM_TEXT)
    return NULL;
  if (param->type != STAGE_PARAM_CHOICE) {
    g_free (stage_param_check (param, param->default_text, &value));
    found = stage_param_dup_form (param, value, form);
    g_free (value);
    return found;
  }
  choice = g_ptr_array_index (param->choices, 0);
  return context->nested && choice->text ? NULL : stage_param_dup_form (param, choice->name, form);
}

gchar *
stage_file_check_text (const StageFile *self, const gchar *text, gboolean nested, gsize *offset)
{
  Context context = { self, nested };
  gchar *expanded = stage_text_expand (text, look_up, &context, offset);
  GString *wrong;

  if (expanded) {
    g_free (expanded);
    return NULL;
  }
  text += *offset;
  wrong = g_string_new (NULL);
  g_string_printf (wrong, "%.*s is not one of: ", (int) (strcspn (text, "}") + 1), text);
  for (guint i = 0; i < self->params->len; i++) {
    gchar *forms = stage_param_dup_forms (g_ptr_array_index (self->params, i));

    g_string_append_printf (wrong, "%s%s", i ? ", " : "", forms);
    g_free (forms);
  }
  g_string_append_printf (wrong, "%s%s", self->params->len ? ", " : "", "{codec}");
  return g_string_free (wrong, FALSE);
}

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

// As long as it was, so that places stay.
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
        empty ? "launch text belongs here" : "what is native has no launch text");
  wrong = stage_file_check_text (self, self->text, FALSE, &offset);
  if (!wrong)
    return TRUE;
  fail_at (self->file, text, start + offset, error, wrong);
  g_free (wrong);
  return FALSE;
}

/* The whole */

// Past the line that ends the header; 0 if there is none.
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
    return fail_at (self->file, text, 0, error, "not a text of at most 64 KiB in UTF-8");
  if (!start)
    return fail_at (self->file, text, 0, error,
        "a line \"---\", a header in YAML and another line \"---\" belong here");
  // The first of these lines is YAML's own, so that the lines' numbers are right.
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
  StageFile *self = file_new (name, file);

  self->sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, len);
  if (!parse (self, text, len, error))
    g_clear_pointer (&self, stage_file_free);
  return self;
}
