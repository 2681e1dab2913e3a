// SPDX-License-Identifier: LGPL-2.1-or-later
// Sessions of a stored title whose upstream can seek, and the presentations of their readers.
#include "config/mount_config.h"
#include "mounts/presentation_private.h"
#include "sources/pull.h"

#include <gio/gio.h>

// A session keeps its packets this much longer than `interval`: a reader that has joined it plays a
// little later.
#define SLACK_NS (5 * (gint64) GST_SECOND)

// ---- sessions ----

static gboolean
end_waiting (gpointer self)
{
  presentation_end_waiting (self);
  return G_SOURCE_REMOVE;
}

static void
on_placed (gpointer self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, end_waiting, presentation_ref (self),
      (GDestroyNotify) (void (*) (void)) presentation_unref);
}

// Each reader of a chain with stages would need stages of its own.
static gboolean
is_plain (const Presentation *self)
{
  const MountConfig *config = self->config;
  const PullConfig *pull = g_ptr_array_index (config->pulls, 0);

  return self->stages->len == 1 && config->pulls->len == 1 && !config->slate.path
         && config->cache.time_ms == 0 && pull->client == PULL_LIGHT && pull->uri
         && (g_str_has_prefix (pull->uri, "rtsp:") || g_str_has_prefix (pull->uri, "rtsps:"));
}

void
presentation_begin_at (Presentation *self, gint64 at, gboolean may_seek)
{
  self->at = at;
  if (may_seek && is_plain (self))
    self->tape = tape_new (
        self->relay, (gint64) self->config->interval_ms * GST_MSECOND + SLACK_NS, on_placed, self);
}

gint64
presentation_get_at (const Presentation *self)
{
  return self->at;
}

void
presentation_note_up (Presentation *self)
{
  TitlePlace place;

  if (self->tape && !tape_get_place (self->tape, &place))
    tape_stop (self->tape, self->relay);
}

gboolean
presentation_awaits_place (const Presentation *self)
{
  TitlePlace place;

  return self->tape && tape_get_place (self->tape, &place) && place.from < 0;
}

// ---- readers ----

gboolean
presentation_follows (const Presentation *self)
{
  return self->player != NULL;
}

TapePlayer *
presentation_dup_player (Presentation *self)
{
  return self->player ? tape_player_ref (self->player) : NULL;
}

static gboolean
at_end (gpointer data)
{
  Presentation *self = data;

  if (!self->stopped)
    presentation_close_at_end (self, 0);
  return G_SOURCE_REMOVE;
}

static void
on_ended (gpointer self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, at_end, presentation_ref (self),
      (GDestroyNotify) (void (*) (void)) presentation_unref);
}

// Returns the session that the reader plays (transfer full), or NULL.
static Presentation *
dup_session (Presentation *self)
{
  Presentation *session;

  g_mutex_lock (&self->lock);
  session = self->session ? presentation_ref (self->session) : NULL;
  g_mutex_unlock (&self->lock);
  return session;
}

gboolean
presentation_get_place (Presentation *self, TitlePlace *place)
{
  g_autoptr (Presentation) session = self->player ? dup_session (self) : presentation_ref (self);

  return session && session->tape && tape_get_place (session->tape, place) && place->from >= 0;
}

// Replaces the session. Takes over a use, and ends that of the one before.
static void
take_session (Presentation *self, Presentation *session)
{
  Presentation *old;

  g_mutex_lock (&self->lock);
  if (self->stopped) {
    old = session;
  } else {
    old = self->session;
    self->session = session;
  }
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old, presentation_leave);
}

gboolean
presentation_follow (Presentation *self, Presentation *session, GError **error)
{
  self->player = tape_player_new (self->relay, session->tape, on_ended, self, error);
  if (self->player) {
    self->known = TRUE;
    self->session = session;
    return TRUE;
  }
  if (error && !*error)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, NO_MEDIA_PROBLEM, self->label);
  presentation_leave (session);
  return FALSE;
}

void
presentation_play (
    Presentation *self, Presentation *session, PresentationDoneFunc done, gpointer data)
{
  tape_player_begin (self->player, session ? session->tape : NULL, done, data);
  if (session)
    take_session (self, session);
}

// ---- the end ----

void
presentation_stop_title (Presentation *self)
{
  Presentation *session;

  g_mutex_lock (&self->lock);
  session = g_steal_pointer (&self->session);
  g_mutex_unlock (&self->lock);
  if (self->player)
    tape_player_stop (self->player);
  if (self->tape)
    tape_stop (self->tape, self->relay);
  g_clear_pointer (&session, presentation_leave);
}
