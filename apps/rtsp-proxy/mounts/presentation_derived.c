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

// Call with the lock held.
static Presentation *
make (Presentation *self, const gchar *stage, const PresentationCallbacks *callbacks, gpointer data,
    GError **error)
{
  GPtrArray *stages = append_stage (self->stages, self->config, stage, error);
  Presentation *derived;

  if (!stages)
    return NULL;
  derived = presentation_new (
      self->graph, self->path, self->query, self->config, stages, self->instance, callbacks, data);
  derived->added = g_strdup (stage);
  relay_expect_sinks (derived->relay, FALSE); // the outlet adds its sinks before there are packets
  derived->stopped = self->stopped;
  g_ptr_array_unref (stages);
  return derived;
}

// Under one lock, so that neither another configuration nor the stop misses it.
Presentation *
presentation_derive (Presentation *self, const gchar *stage, const PresentationCallbacks *callbacks,
    gpointer data, GError **error)
{
  Presentation *derived;

  g_mutex_lock (&self->lock);
  derived = make (self, stage, callbacks, data, error);
  if (derived)
    g_ptr_array_add (self->derived, derived);
  g_mutex_unlock (&self->lock);
  return derived;
}

void
presentation_drop_derived (Presentation *self, Presentation *derived)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_remove (self->derived, derived);
  g_mutex_unlock (&self->lock);
  presentation_stop (derived);
  presentation_unref (derived);
}

static GPtrArray *
list_derived (Presentation *self)
{
  GPtrArray *list =
      g_ptr_array_new_with_free_func ((GDestroyNotify) (void (*) (void)) presentation_unref);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->derived->len; i++)
    g_ptr_array_add (list, presentation_ref (g_ptr_array_index (self->derived, i)));
  g_mutex_unlock (&self->lock);
  return list;
}

void
presentation_configure_derived (Presentation *self)
{
  GPtrArray *list = list_derived (self);

  for (guint i = 0; i < list->len; i++) {
    Presentation *each = g_ptr_array_index (list, i);
    GPtrArray *stages = append_stage (self->stages, self->config, each->added, NULL);

    if (stages)
      presentation_configure (each, self->config, stages);
    g_clear_pointer (&stages, g_ptr_array_unref);
  }
  g_ptr_array_unref (list);
}

void
presentation_stop_derived (Presentation *self)
{
  GPtrArray *list = list_derived (self);

  for (guint i = 0; i < list->len; i++)
    presentation_stop (g_ptr_array_index (list, i));
  g_ptr_array_unref (list);
}
