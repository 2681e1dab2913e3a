// SPDX-License-Identifier: LGPL-2.1-or-later
// The sessions of a mount with the key `interval`.
#include "mounts/mount_private.h"

#include <gio/gio.h>

// Limit of running sessions of a stored title.
#define SESSIONS_MAX 1024

// Call with the lock held.
static guint
count_sessions (Mount *self)
{
  GHashTableIter iter;
  gpointer presentation;
  guint n = 0;

  g_hash_table_iter_init (&iter, self->presentations);
  while (g_hash_table_iter_next (&iter, NULL, &presentation))
    n += presentation_get_instance (presentation) != 0;
  return n;
}

// Returns the session that begins at this place, or NULL. Call with the lock held.
static Presentation *
find_running (Mount *self, gint64 at)
{
  GHashTableIter iter;
  gpointer presentation;

  if (at == 0)
    return self->session && presentation_is_at_start (self->session) ? self->session : NULL;
  g_hash_table_iter_init (&iter, self->presentations);
  while (g_hash_table_iter_next (&iter, NULL, &presentation)) {
    if (presentation_get_instance (presentation) && presentation_get_at (presentation) == at
        && presentation_is_at_start (presentation))
      return presentation;
  }
  return NULL;
}

Presentation *
mount_find_session (Mount *self, gint64 at, GError **error)
{
  Presentation *found = find_running (self, at);
  g_autofree gchar *path = NULL;

  if (found) {
    self->n_shared++;
    return found;
  }
  if (self->stopped || count_sessions (self) >= SESSIONS_MAX) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s",
        self->stopped ? "the mount is stopping" : "too many sessions of the title are running");
    return NULL;
  }
  path = g_strdup_printf ("%s/=%u", self->path, ++self->n_sessions);
  found = mount_add_presentation (self, path, NULL, self->main_stages, self->n_sessions);
  presentation_begin_at (found, at, !self->unsought);
  if (at == 0) {
    g_clear_pointer (&self->session, presentation_unref);
    self->session = presentation_ref (found);
  }
  return found;
}

Presentation *
mount_use_at (Mount *self, gint64 at, GError **error)
{
  Presentation *found;

  g_mutex_lock (&self->lock);
  found = mount_find_session (self, at, error);
  if (found)
    presentation_use (presentation_ref (found));
  g_mutex_unlock (&self->lock);
  return found;
}

Presentation *
mount_follow (Mount *self, Presentation *session, GError **error)
{
  Presentation *reader = NULL;
  gboolean follows = FALSE;
  g_autofree gchar *path = NULL;

  g_mutex_lock (&self->lock);
  if (self->stopped) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "the mount is stopping");
  } else {
    path = g_strdup_printf ("%s/=r%u", self->path, ++self->n_readers);
    reader = mount_add_presentation (self, path, NULL, self->main_stages, 0);
    presentation_use (presentation_ref (session));
    follows = presentation_follow (reader, session, error);
    presentation_use (presentation_ref (reader));
  }
  g_mutex_unlock (&self->lock);
  if (!follows)
    g_clear_pointer (&reader, presentation_leave);
  return reader;
}

void
mount_note_unsought (Mount *self)
{
  g_mutex_lock (&self->lock);
  self->unsought = TRUE;
  g_mutex_unlock (&self->lock);
}

void
mount_get_sessions (Mount *self, MountSessions *sessions)
{
  g_mutex_lock (&self->lock);
  *sessions = (MountSessions) {
    .running = count_sessions (self), .hits = self->n_shared, .misses = self->n_sessions
  };
  g_mutex_unlock (&self->lock);
}
