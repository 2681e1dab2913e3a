// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/stage_header.h"

#include "stages/stage_text.h"
#include "text/config_error.h"

#include <math.h>
#include <string.h>

static const gchar *const flags[] = { "no", "yes", NULL };

static const gchar *const keys[] = { "summary", "media", "takes", "gives", "inputs", "native",
  "codec", "codecs", "parameters", "fade", NULL };
static const gchar *const param_keys[] = { "type", "choices", "min", "max", "default", "unit",
  "help", NULL };

/* Single values */

static gboolean
read_text (YamlReader *reader, YamlNode *mapping, const gchar *key, gchar **text, GError **error)
{
  YamlNode *node = yaml_get (reader, mapping, key);
  const gchar *value = node ? yaml_text (reader, node) : NULL;

  if (node && !value)
    return yaml_fail (reader, node, key, CONFIG_ERROR_VALUE, error, "expected a single value");
  *text = g_strdup (value);
  return TRUE;
}

// Leaves `*inputs` alone if the key is missing.
static gboolean
read_inputs (YamlReader *reader, YamlNode *mapping, guint *inputs, GError **error)
{
  YamlNode *node = yaml_get (reader, mapping, "inputs");
  const gchar *text = node ? yaml_text (reader, node) : NULL;
  guint64 n = 0;

  if (!node)
    return TRUE;
  if (!text || !g_ascii_string_to_unsigned (text, 10, 2, STAGE_INPUTS_MAX, &n, NULL))
    return yaml_fail (reader, node, "inputs", CONFIG_ERROR_VALUE, error,
        "expected the number of mounts that the stage takes, from 2 to 4");
  *inputs = (guint) n;
  return TRUE;
}

// Leaves `*index` alone if the key is missing.
static gboolean
read_index (YamlReader *reader, YamlNode *mapping, const gchar *key, const gchar *const *names,
    guint *index, GError **error)
{
  YamlNode *node = yaml_get (reader, mapping, key);
  const gchar *value = node ? yaml_text (reader, node) : NULL;
  gchar *all, *wrong;

  if (!node)
    return TRUE;
  for (guint i = 0; value && names[i]; i++) {
    if (g_str_equal (names[i], value)) {
      *index = i;
      return TRUE;
    }
  }
  all = g_strjoinv (", ", (gchar **) names);
  wrong = g_strdup_printf ("expected one of %s", all);
  g_free (all);
  return yaml_fail_take (reader, node, key, CONFIG_ERROR_VALUE, error, wrong);
}

/* Parameters */

static gboolean
read_choice (YamlReader *reader, YamlNode *key, YamlNode *value, StageParam *param, GError **error)
{
  const gchar *name = yaml_text (reader, key);
  StageChoice *choice;

  if (!name || !stage_text_is_name (name) || stage_param_find_choice (param, name))
    return yaml_fail (reader, key, "choices", CONFIG_ERROR_VALUE, error,
        "expected a unique name of a-z, 0-9 and -, at most 32 characters");
  if (value && !yaml_text (reader, value))
    return yaml_fail (reader, value, name, CONFIG_ERROR_VALUE, error, "expected launch text");
  choice = g_new0 (StageChoice, 1);
  choice->name = g_strdup (name);
  choice->text = g_strdup (value ? yaml_text (reader, value) : NULL);
  g_ptr_array_add (param->choices, choice);
  return TRUE;
}

static gboolean
read_choices (YamlReader *reader, YamlNode *node, StageParam *param, GError **error)
{
  YamlNode *key, *value;

  if (yaml_is_sequence (node)) {
    for (guint i = 0; (key = yaml_item (reader, node, i)); i++) {
      if (!read_choice (reader, key, NULL, param, error))
        return FALSE;
    }
    return TRUE;
  }
  if (!yaml_is_mapping (node))
    return yaml_fail (reader, node, "choices", CONFIG_ERROR_VALUE, error,
        "expected a list of names, or {NAME: LAUNCH TEXT}");
  for (guint i = 0; yaml_pair (reader, node, i, &key, &value); i++) {
    if (!read_choice (reader, key, value, param, error))
      return FALSE;
  }
  return TRUE;
}

// Reads a value and checks it against min and max, if these were read before.
static gboolean
check_value (YamlReader *reader, YamlNode *mapping, StageParam *param, const gchar *key,
    gchar **text, GError **error)
{
  gchar *written = NULL, *value = NULL, *wrong;

  if (!read_text (reader, mapping, key, &written, error))
    return FALSE;
  if (!written)
    return TRUE;
  wrong = stage_param_check (param, written, &value);
  g_free (value);
  if (wrong) {
    g_free (written);
    return yaml_fail_take (
        reader, yaml_get (reader, mapping, key), key, CONFIG_ERROR_VALUE, error, wrong);
  }
  *text = written;
  return TRUE;
}

static gboolean
check_shape (YamlReader *reader, YamlNode *key, const StageParam *param, GError **error)
{
  const gchar *wrong = NULL;
  gboolean ranged = param->type < STAGE_PARAM_CHOICE;

  if ((param->type == STAGE_PARAM_CHOICE) != (param->choices->len > 0))
    wrong = "choices and type: choice are allowed only together";
  else if (!ranged && (param->min || param->max))
    wrong = "a parameter of this type has no min and max";
  else if (ranged && !param->default_text)
    wrong = "the default is missing";
  else if (param->type == STAGE_PARAM_FILE && param->default_text)
    wrong = "a parameter of type file has no default";
  if (wrong)
    return yaml_fail (reader, key, param->name, CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}

static gboolean
read_param (YamlReader *reader, YamlNode *key, YamlNode *value, StageFile *self, GError **error)
{
  const gchar *name = yaml_text (reader, key);
  StageParam *param;
  YamlNode *choices;
  guint type = G_MAXUINT;

  if (!name || !stage_text_is_name (name) || g_str_equal (name, "codec")
      || stage_file_find_param (self, name))
    return yaml_fail (reader, key, "parameters", CONFIG_ERROR_KEY, error,
        "expected a unique name of a-z, 0-9 and -, other than codec, at most 32 characters");
  if (!yaml_check_keys (reader, value, name, param_keys, NULL, error)
      || !read_index (reader, value, "type", stage_param_types, &type, error))
    return FALSE;
  if (type == G_MAXUINT)
    return yaml_fail (reader, key, name, CONFIG_ERROR_KEY, error, "the type is missing");

  param = stage_param_new (name);
  param->type = (StageParamType) type;
  g_ptr_array_add (self->params, param);
  choices = yaml_get (reader, value, "choices");
  return (!choices || read_choices (reader, choices, param, error))
         && check_value (reader, value, param, "min", &param->min, error)
         && check_value (reader, value, param, "max", &param->max, error)
         && check_value (reader, value, param, "default", &param->default_text, error)
         && read_text (reader, value, "unit", &param->unit, error)
         && read_text (reader, value, "help", &param->help, error)
         && check_shape (reader, key, param, error);
}

static gint
compare_params (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(StageParam *const *) a)->name, (*(StageParam *const *) b)->name);
}

static gboolean
read_params (YamlReader *reader, YamlNode *node, StageFile *self, GError **error)
{
  YamlNode *key, *value;

  if (!node)
    return TRUE;
  if (!yaml_is_mapping (node))
    return yaml_fail (reader, node, "parameters", CONFIG_ERROR_VALUE, error,
        "expected names with their types: {NAME: {type: TYPE}}");
  for (guint i = 0; yaml_pair (reader, node, i, &key, &value); i++) {
    if (!read_param (reader, key, value, self, error))
      return FALSE;
  }
  g_ptr_array_sort (self->params, compare_params);
  return TRUE;
}

/* Codecs */

static gboolean
read_codec (YamlReader *reader, YamlNode *key, YamlNode *value, StageFile *self, GError **error)
{
  const gchar *name = yaml_text (reader, key);
  gboolean one = yaml_text (reader, value) != NULL;
  StageCodec *codec;
  YamlNode *item;

  if (!name || strlen (name) > 32 || stage_file_find_codec (self, name))
    return yaml_fail (reader, key, "codecs", CONFIG_ERROR_KEY, error,
        "expected the unique name of a codec, such as H264");
  codec = g_new0 (StageCodec, 1);
  codec->name = g_strdup (name);
  codec->texts = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->codecs, codec);
  if (one)
    g_ptr_array_add (codec->texts, g_strdup (yaml_text (reader, value)));
  for (guint i = 0; yaml_is_sequence (value) && (item = yaml_item (reader, value, i)); i++) {
    const gchar *text = yaml_text (reader, item);

    if (!text)
      return yaml_fail (reader, item, name, CONFIG_ERROR_VALUE, error, "expected launch text");
    g_ptr_array_add (codec->texts, g_strdup (text));
  }
  if (codec->texts->len == 0)
    return yaml_fail (reader, value, name, CONFIG_ERROR_VALUE, error,
        "expected launch text, or a list of launch texts");
  return TRUE;
}

static gboolean
read_codecs (YamlReader *reader, YamlNode *node, StageFile *self, GError **error)
{
  YamlNode *key, *value;

  if (!node)
    return TRUE;
  if (!yaml_is_mapping (node) || self->takes != STAGE_RTP)
    return yaml_fail (reader, node, "codecs", CONFIG_ERROR_VALUE, error,
        "expected {CODEC: LAUNCH TEXT}, in a stage that takes rtp");
  for (guint i = 0; yaml_pair (reader, node, i, &key, &value); i++) {
    if (!read_codec (reader, key, value, self, error))
      return FALSE;
  }
  return TRUE;
}

/* Fades */

static gboolean
has_param (const StageFile *self, const gchar *name, StageParamType type)
{
  const StageParam *param = stage_file_find_param (self, name);

  return param && param->type == type;
}

// Reads two numbers: the value before and the value after.
static gboolean
read_range (const gchar *text, StageFade *fade)
{
  gchar *end;

  if (!text)
    return FALSE;
  fade->from = g_ascii_strtod (text, &end);
  if (end == text || *end != ' ')
    return FALSE;
  text = end;
  fade->to = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && isfinite (fade->from) && isfinite (fade->to);
}

static gboolean
read_fades (YamlReader *reader, YamlNode *node, StageFile *self, GError **error)
{
  YamlNode *key, *value;

  if (!node)
    return TRUE;
  if (!yaml_is_mapping (node) || !self->inputs || !has_param (self, "at", STAGE_PARAM_TIME)
      || !has_param (self, "time", STAGE_PARAM_DURATION))
    return yaml_fail (reader, node, "fade", CONFIG_ERROR_VALUE, error,
        "expected {ELEMENT.PROPERTY: BEFORE AFTER}, in a stage that takes several mounts and has "
        "the parameters at, a time, and time, a duration");
  for (guint i = 0; yaml_pair (reader, node, i, &key, &value); i++) {
    const gchar *property = yaml_text (reader, key);
    StageFade fade = { 0 };

    if (!property || !*property || strpbrk (property, " \t\n")
        || !read_range (yaml_text (reader, value), &fade))
      return yaml_fail (reader, key, "fade", CONFIG_ERROR_VALUE, error,
          "expected a property with its value before and after: mix.sink_1::alpha: 1 0");
    fade.property = g_strdup (property);
    g_ptr_array_add (self->fades, g_memdup2 (&fade, sizeof fade));
  }
  return TRUE;
}

/* Inserted texts */

// Checks the launch texts of codecs and choices. Reports errors at the key codecs or parameters.
static gboolean
check_nested (YamlReader *reader, YamlNode *root, const StageFile *self, GError **error)
{
  gchar *wrong = NULL;
  const gchar *key = NULL;
  gsize offset;

  for (guint i = 0; i < self->codecs->len; i++) {
    const StageCodec *codec = g_ptr_array_index (self->codecs, i);

    for (guint j = 0; !wrong && j < codec->texts->len; j++) {
      wrong = stage_file_check_text (self, g_ptr_array_index (codec->texts, j), TRUE, &offset);
      key = "codecs";
    }
  }
  for (guint i = 0; i < self->params->len; i++) {
    const StageParam *param = g_ptr_array_index (self->params, i);

    for (guint j = 0; !wrong && j < param->choices->len; j++) {
      const StageChoice *choice = g_ptr_array_index (param->choices, j);

      wrong = choice->text ? stage_file_check_text (self, choice->text, TRUE, &offset) : NULL;
      key = "parameters";
    }
  }
  if (wrong)
    return yaml_fail_take (
        reader, yaml_get (reader, root, key), key, CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}

/* The header */

static gboolean
check_whole (YamlReader *reader, YamlNode *root, const StageFile *self, GError **error)
{
  const gchar *wrong = NULL;

  if (!self->summary)
    wrong = "the summary is missing";
  else if (self->gives == STAGE_NOTHING)
    wrong = "gives must be rtp or raw";
  else if (self->takes == STAGE_NOTHING && !self->native)
    wrong = "takes must be rtp or raw";
  else if (self->codec && self->gives != STAGE_RTP)
    wrong = "codec is allowed only with gives: rtp";
  else if (self->takes == STAGE_RAW && self->gives == STAGE_RTP && !self->codec)
    wrong = "the codec is missing: the stage makes RTP of raw frames";
  else if (self->inputs && (self->takes != STAGE_RAW || self->media == STAGE_ANY))
    wrong = "inputs is allowed only with takes: raw, and with media: video or media: audio";
  if (wrong)
    return yaml_fail (reader, root, NULL, CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}

gboolean
stage_header_read (YamlReader *reader, StageFile *self, GError **error)
{
  YamlNode *root = yaml_root (reader);
  guint media = STAGE_ANY - 1, takes = STAGE_NOTHING, gives = STAGE_NOTHING, native = FALSE;

  if (!yaml_check_keys (reader, root, NULL, keys, NULL, error)
      || !read_text (reader, root, "summary", &self->summary, error)
      || !read_text (reader, root, "codec", &self->codec, error)
      || !read_index (reader, root, "media", stage_media, &media, error)
      || !read_index (reader, root, "takes", stage_formats, &takes, error)
      || !read_index (reader, root, "gives", stage_formats, &gives, error)
      || !read_inputs (reader, root, &self->inputs, error)
      || !read_index (reader, root, "native", flags, &native, error))
    return FALSE;
  self->media = (StageMedia) (media + 1);
  self->takes = (StageFormat) takes;
  self->gives = (StageFormat) gives;
  self->native = native == 1;
  return check_whole (reader, root, self, error)
         && read_codecs (reader, yaml_get (reader, root, "codecs"), self, error)
         && read_params (reader, yaml_get (reader, root, "parameters"), self, error)
         && read_fades (reader, yaml_get (reader, root, "fade"), self, error)
         && check_nested (reader, root, self, error);
}
