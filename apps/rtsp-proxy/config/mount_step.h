// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage of a mount's pipeline, as it was written. Where it was (from 1) is for errors.

#include <glib.h>

typedef struct {
  gchar *name, *value;
  guint line, column;
} MountParam;

typedef struct {
  gchar *name;
  GPtrArray *params; // of MountParam
  guint line, column;
} MountStep;

MountStep *mount_step_new (const gchar *name, guint line, guint column);
void mount_step_add (
    MountStep *self, const gchar *name, const gchar *value, guint line, guint column);
MountStep *mount_step_copy (const MountStep *self);
void mount_step_free (gpointer step);

// Wherever they were written.
gboolean mount_step_equal (const MountStep *a, const MountStep *b);
