// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_file.h"

#include "stages/stage_text.h"

#include <string.h>

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

static void
fade_free (gpointer data)
{
  g_free (((StageFade *) data)->property);
  g_free (data);
}

StageFile *
stage_file_new (const gchar *name, const gchar *file)
{
  StageFile *self = g_new0 (StageFile, 1);

  self->name = g_strdup (name);
  self->file = g_strdup (file);
  self->media = STAGE_ANY;
  self->codecs = g_ptr_array_new_with_free_func (codec_free);
  self->params = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_param_free);
  self->fades = g_ptr_array_new_with_free_func (fade_free);
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
  g_ptr_array_unref (self->fades);
  g_free (self->text);
  g_free (self->sum);
  g_strfreev (self->paths);
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

/* Launch text */

typedef struct {
  const StageFile *file;
  gboolean nested; // the text is inserted into another
} Context;

static gboolean
allows_codec (const Context *context)
{
  return !context->nested && context->file->codecs->len > 0;
}

static gboolean
allows_param (const Context *context, const StageParam *param)
{
  const StageChoice *choice = param->choices->len ? param->choices->pdata[0] : NULL;

  return !(context->nested && choice && choice->text);
}

// Returns any text if the placeholder is allowed, else NULL: the caller only checks that.
static gchar *
look_up (const gchar *name, const gchar *form, gpointer data)
{
  const Context *context = data;
  const StageParam *param = stage_file_find_param (context->file, name);
  gchar *value = NULL, *found;

  if (!form && g_str_equal (name, "codec"))
    return allows_codec (context) ? g_strdup ("") : NULL;
  if (!param || !allows_param (context, param))
    return NULL;
  if (param->type == STAGE_PARAM_CHOICE)
    return stage_param_dup_form (
        param, ((StageChoice *) g_ptr_array_index (param->choices, 0))->name, form);
  if (param->default_text)
    g_free (stage_param_check (param, param->default_text, &value));
  found = stage_param_dup_form (param, value ? value : "", form);
  g_free (value);
  return found;
}

// Returns the placeholders that a text may contain, for an error message.
static gchar *
dup_allowed (const Context *context)
{
  GString *all = g_string_new (NULL);

  for (guint i = 0; i < context->file->params->len; i++) {
    const StageParam *param = g_ptr_array_index (context->file->params, i);
    gchar *forms = stage_param_dup_forms (param);

    if (*forms && allows_param (context, param))
      g_string_append_printf (all, "%s%s", all->len ? ", " : "", forms);
    g_free (forms);
  }
  if (allows_codec (context))
    g_string_append_printf (all, "%s{codec}", all->len ? ", " : "");
  return g_string_free (all, FALSE);
}

gchar *
stage_file_check_text (const StageFile *self, const gchar *text, gboolean nested, gsize *offset)
{
  Context context = { self, nested };
  gchar *expanded = stage_text_expand (text, look_up, &context, offset);
  gchar *allowed, *wrong;

  if (expanded) {
    g_free (expanded);
    return NULL;
  }
  text += *offset;
  allowed = dup_allowed (&context);
  wrong = g_strdup_printf ("placeholder %.*s is not allowed here; allowed: %s",
      (int) (strcspn (text, "}") + 1), text, *allowed ? allowed : "none");
  g_free (allowed);
  return wrong;
}
