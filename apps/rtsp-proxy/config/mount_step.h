// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stage of a mount's pipeline as written, with its place for errors: line and column, from 1.

#include <glib.h>

typedef struct {
  gchar *name, *value;
  guint line, column;
  gboolean from_api; // a file that it names lies below folders of base/file_roots.h
} MountParam;

typedef struct {
  gchar *name;
  GPtrArray *params; // of MountParam
  guint line, column;
} MountStep;

// Makes a stage without parameters. The caller frees it with mount_step_free().
MountStep *mount_step_new (const gchar *name, guint line, guint column);
// Adds a copy of a parameter.
void mount_step_add (MountStep *self, const MountParam *param);
MountStep *mount_step_copy (const MountStep *self);
void mount_step_free (gpointer step);

// Reports whether two stages have the same name and parameters; their places do not matter.
gboolean mount_step_equal (const MountStep *a, const MountStep *b);
