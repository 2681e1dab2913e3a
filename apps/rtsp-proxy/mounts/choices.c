// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/choices.h"

#include <gio/gio.h>

struct _Choices {
  gint n; // atomic
};

Choices *
choices_new (void)
{
  return g_atomic_rc_box_new0 (Choices);
}

Choices *
choices_ref (Choices *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
choices_unref (Choices *self)
{
  g_atomic_rc_box_release (self);
}

gboolean
choices_take (Choices *self, guint max, GError **error)
{
  if ((guint) g_atomic_int_add (&self->n, 1) < max)
    return TRUE;
  g_atomic_int_add (&self->n, -1);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
      "max-presentations: %u presentations with choices are running already", max);
  return FALSE;
}

void
choices_leave (Choices *self)
{
  g_atomic_int_add (&self->n, -1);
}
