// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/stage_list.h"

static void
append_param (GString *out, const Stage *stage, const StageParam *param)
{
  g_autofree gchar *range = stage_param_dup_range (param);
  // The default of a choice without a default in its file is the first value that works here.
  const gchar *value =
      param->default_text ? param->default_text : stage_get_value (stage, param->name);

  g_string_append_printf (out, "    %-10s %s%s%s%s", param->name, stage_param_types[param->type],
      param->unit ? " (" : "", param->unit ? param->unit : "", param->unit ? ")" : "");
  if (range)
    g_string_append_printf (out, ", %s", range);
  if (*value)
    g_string_append_printf (out, ", default %s", value);
  g_string_append_c (out, '\n');
  if (param->help)
    g_string_append_printf (out, "               %s\n", param->help);
}

static void
append_formats (GString *out, const StageFile *file)
{
  if (file->takes != STAGE_NOTHING) {
    g_string_append_printf (
        out, "    takes %s %s", stage_media_name (file->media), stage_formats[file->takes]);
    for (guint i = 0; i < file->codecs->len; i++)
      g_string_append_printf (out, "%s%s", i ? ", " : " of ",
          ((StageCodec *) g_ptr_array_index (file->codecs, i))->name);
    if (file->inputs)
      g_string_append_printf (
          out, " of %s%u mounts", file->inputs > 2 ? "2 to " : "", file->inputs);
    g_string_append (out, "; gives ");
  } else {
    g_string_append (out, "    gives ");
  }
  g_string_append_printf (out, "%s%s%s\n", stage_formats[file->gives], file->codec ? " of " : "",
      file->codec ? file->codec : "");
}

gchar *
stage_list_dup (StageSet *set)
{
  g_autoptr (GPtrArray) files = stage_set_dup_files (set);
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < files->len; i++) {
    const StageFile *file = g_ptr_array_index (files, i);
    Stage *stage = stage_new (set, file->name, NULL);

    g_string_append_printf (out, "%s%s: %s\n", i ? "\n" : "", file->name, file->summary);
    append_formats (out, file);
    for (guint j = 0; j < file->params->len; j++)
      append_param (out, stage, g_ptr_array_index (file->params, j));
    stage_unref (stage);
  }
  return g_string_free (out, FALSE);
}
