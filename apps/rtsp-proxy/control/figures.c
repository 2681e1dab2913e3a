// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/figures.h"

#include "control/api_answer.h"

guint64
figure_get (const Figure *figure, gconstpointer sample)
{
  return *(const guint64 *) ((const guint8 *) sample + figure->offset);
}

void
figures_write (const Figure *figures, gconstpointer sample, JsonBuilder *builder)
{
  for (; figures->name; figures++)
    api_add_number (builder, figures->name, (gint64) figure_get (figures, sample));
}
