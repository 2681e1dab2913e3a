// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/start_wait.h"

struct _StartWait {
  gatomicrefcount refs; // the outlet's, and the presentation's
  GMutex lock;          // protects the fields below
  gboolean is_over;
  void (*over) (gpointer owner);
  gpointer owner; // NULL: the outlet has lost interest
};

static void
unref (StartWait *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
on_waited (gpointer data)
{
  StartWait *self = data;

  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  if (self->owner)
    self->over (self->owner);
  g_mutex_unlock (&self->lock);
  unref (self);
}

StartWait *
start_wait_new (Presentation *presentation, void (*over) (gpointer owner), gpointer owner)
{
  StartWait *self = g_new0 (StartWait, 1);

  g_atomic_ref_count_init (&self->refs);
  g_atomic_ref_count_inc (&self->refs);
  g_mutex_init (&self->lock);
  self->over = over;
  self->owner = owner;
  presentation_wait (presentation, on_waited, self);
  return self;
}

gboolean
start_wait_is_over (StartWait *self)
{
  gboolean is_over;

  g_mutex_lock (&self->lock);
  is_over = self->is_over;
  g_mutex_unlock (&self->lock);
  return is_over;
}

void
start_wait_free (StartWait *self)
{
  g_mutex_lock (&self->lock);
  self->owner = NULL;
  g_mutex_unlock (&self->lock);
  unref (self);
}
