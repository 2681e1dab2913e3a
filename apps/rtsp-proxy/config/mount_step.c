// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_step.h"

static void
param_free (gpointer data)
{
  MountParam *param = data;

  g_free (param->name);
  g_free (param->value);
  g_free (param);
}

MountStep *
mount_step_new (const gchar *name, guint line, guint column)
{
  MountStep *self = g_new (MountStep, 1);

  *self =
      (MountStep) { g_strdup (name), g_ptr_array_new_with_free_func (param_free), line, column };
  return self;
}

void
mount_step_add (MountStep *self, const MountParam *param)
{
  MountParam *copy = g_new (MountParam, 1);

  *copy = *param;
  copy->name = g_strdup (param->name);
  copy->value = g_strdup (param->value);
  g_ptr_array_add (self->params, copy);
}

MountStep *
mount_step_copy (const MountStep *self)
{
  MountStep *copy = mount_step_new (self->name, self->line, self->column);

  for (guint i = 0; i < self->params->len; i++)
    mount_step_add (copy, g_ptr_array_index (self->params, i));
  return copy;
}

void
mount_step_free (gpointer data)
{
  MountStep *step = data;

  g_free (step->name);
  g_ptr_array_unref (step->params);
  g_free (step);
}

gboolean
mount_step_equal (const MountStep *a, const MountStep *b)
{
  if (!g_str_equal (a->name, b->name) || a->params->len != b->params->len)
    return FALSE;
  for (guint i = 0; i < a->params->len; i++) {
    const MountParam *p = g_ptr_array_index (a->params, i), *q = g_ptr_array_index (b->params, i);

    if (!g_str_equal (p->name, q->name) || !g_str_equal (p->value, q->value))
      return FALSE;
  }
  return TRUE;
}
