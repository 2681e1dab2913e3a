// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stage_check.h"

// There is one stage: a pipeline of others is refused until there are some.
gchar *
stage_check (const MountConfig *config, guint *line, guint *column)
{
  for (guint i = 0; i < config->pipeline->len; i++) {
    const MountStep *step = g_ptr_array_index (config->pipeline, i);

    if (!g_str_equal (step->name, "pull")) {
      *line = step->line;
      *column = step->column;
      return g_strdup_printf ("there is no stage \"%s\"; there is: pull", step->name);
    }
  }
  return NULL;
}
