// SPDX-License-Identifier: LGPL-2.1-or-later

// A presentation behind whose chain an outlet has put a further stage.

#include "mounts/presentation_private.h"

static GPtrArray *
append_stage (GPtrArray *stages, MountConfig *config, const gchar *name, GError **error)
{
  Stage *stage = stage_new (config->stage_set, name, error);
  GPtrArray *all;

  if (!stage)
    return NULL;
  all = g_ptr_array_new_with_free_func ((GDestroyNotify) (void (*) (void)) stage_unref);
  for (guint i = 0; i < stages->len; i++)
    g_ptr_array_add (all, stage_ref (g_ptr_array_index (stages, i)));
  g_ptr_array_add (all, stage);
  return all;
}

Presentation *
presentation_derive (Presentation *self, const gchar *stage, const PresentationCallbacks *callbacks,
    gpointer data, GError **error)
{
  GPtrArray *stages = append_stage (self->stages, self->config, stage, error);
  Presentation *derived;

  if (!stages)
    return NULL;
  derived = presentation_new (
      self->graph, self->path, self->query, self->config, stages, self->instance, callbacks, data);
  derived->added = g_strdup (stage);
  if (!self->derived)
    self->derived = g_ptr_array_new ();
  g_ptr_array_add (self->derived, derived);
  g_ptr_array_unref (stages);
  return derived;
}

void
presentation_drop_derived (Presentation *self, Presentation *derived)
{
  if (self->derived)
    g_ptr_array_remove (self->derived, derived);
  presentation_stop (derived);
  presentation_unref (derived);
}

void
presentation_configure_derived (Presentation *self)
{
  for (guint i = 0; self->derived && i < self->derived->len; i++) {
    Presentation *each = g_ptr_array_index (self->derived, i);
    GPtrArray *stages = append_stage (self->stages, self->config, each->added, NULL);

    if (stages)
      presentation_configure (each, self->config, stages);
    g_clear_pointer (&stages, g_ptr_array_unref);
  }
}

void
presentation_stop_derived (Presentation *self)
{
  for (guint i = 0; self->derived && i < self->derived->len; i++)
    presentation_stop (g_ptr_array_index (self->derived, i));
}
