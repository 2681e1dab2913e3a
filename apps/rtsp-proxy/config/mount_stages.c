// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_stages.h"

#include "base/file_roots.h"
#include "base/log.h"
#include "config/mount_inputs.h"
#include "config/mount_renditions.h"
#include "sources/pull.h"
#include "stages/choice.h"

static gchar *
take_message (GError *error)
{
  gchar *message = g_strdup (error->message);

  g_error_free (error);
  return message;
}

// Sets the parameters of `pull` from the mount's own keys.
static gchar *
assign_upstream (const MountConfig *config, Stage *stage)
{
  static const gchar *const transports[] = { "auto", "udp", "tcp" }; // by PullTransport
  g_autoptr (GString) uris = g_string_new (NULL);
  gchar *wrong;

  for (guint i = 0; i < config->pulls->len; i++) {
    const PullConfig *pull = g_ptr_array_index (config->pulls, i);
    g_autofree gchar *shown = pull->launch ? g_strdup (pull->uri) : log_redact (pull->uri);

    g_string_append_printf (uris, "%s%s", i ? " " : "", shown);
  }
  wrong = stage_assign (stage, "upstream", uris->str);
  return wrong ? wrong : stage_assign (stage, "transport", transports[config->pull.transport]);
}

typedef struct {
  MountConfig *config;
  GPtrArray *stages; // that are being made, of Stage
  const gchar *key;
  MountStagesWrong wrong;
  gpointer data;
  gboolean ok;
} Making;

// Takes ownership of `text`; NULL: nothing is wrong.
static void
note_wrong (Making *self, guint line, guint column, gchar *text)
{
  if (!text)
    return;
  self->ok = FALSE;
  self->wrong (self->data, self->key, line, column, CONFIG_ERROR_VALUE, text);
}

// Checks a file that the parameter names. This is the only time: a stage opens what its path leads
// to when it starts.
static void
check_file (Making *self, const Stage *stage, const MountParam *param)
{
  const StageParam *found = stage_file_find_param (stage_get_file (stage), param->name);

  if (!self->ok || !found || found->type != STAGE_PARAM_FILE)
    return;
  if (param->from_api)
    note_wrong (self, param->line, param->column, file_roots_check (param->value));
  if (!self->ok || g_file_test (param->value, G_FILE_TEST_IS_REGULAR))
    return;
  self->ok = FALSE;
  self->wrong (self->data, self->key, param->line, param->column, CONFIG_ERROR_ABSENT,
      g_strdup_printf ("%s: no such file: %s", param->name, param->value));
}

static void
assign_params (Making *self, Stage *stage, const MountStep *step)
{
  gboolean source = g_str_equal (stage_get_file (stage)->name, "pull");

  for (guint i = 0; i < step->params->len; i++) {
    const MountParam *param = g_ptr_array_index (step->params, i);

    note_wrong (self, param->line, param->column,
        source ? g_strdup ("pull takes no parameters here; set upstream and transport of the mount")
               : stage_assign (stage, param->name, param->value));
    check_file (self, stage, param);
  }
  if (source)
    note_wrong (self, step->line, step->column, assign_upstream (self->config, stage));
}

static void
add_step (Making *self, const MountStep *step)
{
  GError *error = NULL;
  Stage *stage = stage_new (self->config->stage_set, step->name, &error);

  if (!stage) {
    note_wrong (self, step->line, step->column, take_message (error));
    return;
  }
  g_ptr_array_add (self->stages, stage);
  assign_params (self, stage, step);
}

static gboolean
encode_sound (const GPtrArray *stages)
{
  for (guint i = 0; stages && i < stages->len; i++) {
    const StageFile *file = stage_get_file (g_ptr_array_index (stages, i));

    if (file->media == STAGE_AUDIO && file->codec && stage_file_find_codec (file, "L16"))
      return TRUE;
  }
  return FALSE;
}

gboolean
mount_config_encodes_sound (const MountConfig *config)
{
  return encode_sound (config->source_chain) || encode_sound (config->stages);
}

static void
add_pull (Making *self, guint line, guint column)
{
  MountStep *pull = mount_step_new ("pull", line, column);

  add_step (self, pull);
  mount_step_free (pull);
}

// Returns why a stage cannot be a source stage, or NULL. (transfer full)
static gchar *
check_source_stage (const StageFile *file)
{
  if (file->takes == STAGE_NOTHING)
    return g_strdup_printf ("stage %s: source stages come after it; leave it out", file->name);
  if (file->inputs)
    return g_strdup_printf (
        "stage %s: takes the media of several mounts; put it into pipeline", file->name);
  return NULL;
}

// Makes the chain of the source stages.
static void
make_source_chain (Making *self)
{
  MountConfig *config = self->config;
  GError *error = NULL;

  self->key = "source-stages";
  self->stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);
  add_pull (self, config->line, config->column);
  for (guint i = 0; i < config->source_steps->len; i++) {
    const MountStep *step = g_ptr_array_index (config->source_steps, i);
    const StageFile *file = stage_set_find (config->stage_set, step->name);

    add_step (self, step);
    note_wrong (self, step->line, step->column, file ? check_source_stage (file) : NULL);
  }
  if (self->ok
      && choice_check (config->stage_set, self->stages, NULL, &config->source_files, &error))
    config->source_chain = choice_make_chain (config->stage_set, self->stages, NULL, NULL, &error);
  if (config->source_chain)
    g_ptr_array_remove_index (config->source_chain, 0); // pull
  if (error) {
    const MountStep *first = g_ptr_array_index (config->source_steps, 0);

    note_wrong (self, first->line, first->column, take_message (error));
  }
  g_ptr_array_unref (self->stages);
}

gboolean
mount_stages_make (MountConfig *config, StageSet *set, guint line, guint column,
    MountStagesWrong wrong, gpointer data)
{
  Making self = { config, NULL, "pipeline", wrong, data, TRUE };
  GError *error = NULL;
  gboolean encodes_sound;

  config->stage_set = stage_set_ref (set);
  if (config->source_steps->len > 0)
    make_source_chain (&self);
  self.key = "pipeline";
  config->stages = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);
  self.stages = config->stages;
  if (config->pipeline->len == 0)
    add_pull (&self, line, column);
  for (guint i = 0; i < config->pipeline->len; i++)
    add_step (&self, g_ptr_array_index (config->pipeline, i));
  encodes_sound = mount_config_encodes_sound (config);
  for (guint i = 0; i < config->pulls->len; i++) {
    PullConfig *pull = g_ptr_array_index (config->pulls, i);

    pull->encodes_sound = encodes_sound;
    pull->wants_cues = config->insert.on_cue != NULL;
  }
  if (self.ok && !choice_check (set, config->stages, config->choices, &config->stage_files, &error))
    note_wrong (&self, line, column, take_message (error));
  if (self.ok)
    note_wrong (&self, line, column, mount_inputs_check_stages (config));
  if (self.ok)
    note_wrong (&self, line, column, mount_renditions_check (config));
  return self.ok;
}
