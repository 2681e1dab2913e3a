// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/live_media.h"

#include "base/clock.h"
#include "base/log.h"
#include "mounts/waiting.h"

// Shortest time between two attempts to prepare media.
#define RETRY (2 * GST_SECOND)

struct _LiveMedia {
  gatomicrefcount refs;
  Presentation *presentation;
  const LiveMediaOps *ops;
  gpointer owner;
  Waiting *waiting;
  LogLimit failures;

  // Main thread only.
  MountConfig *config; // that the media has
  guint linger;        // timer that releases media that is no longer wanted

  GMutex lock; // protects the fields below
  guint n_users;
  gboolean stopped;
  guint generation;
  gpointer media;       // or NULL
  gboolean opening;     // media is being prepared
  gboolean outdated;    // readers were closed since then, so the media will not be kept
  gint64 failing_until; // after media could not be prepared: when to try again, ns; else 0
};

// Reports whether media keeps something for readers to come. `config` is the presentation's.
static gboolean
keeps_for_readers (LiveMedia *self, const MountConfig *config)
{
  gboolean keeps = config->cache.time_ms > 0 || presentation_get_instance (self->presentation);

  return !config->on_demand || (keeps && presentation_n_users (self->presentation) > 0);
}

static gboolean
is_kept_for_readers (LiveMedia *self)
{
  g_autoptr (MountConfig) config = presentation_dup_config (self->presentation);

  return keeps_for_readers (self, config);
}

// ---- the state, and callbacks that wait for it ----

PresentationState
live_media_ask (LiveMedia *self, GError **error)
{
  PresentationState state;
  gboolean ready, down;
  TitlePlace place;

  g_mutex_lock (&self->lock);
  ready = self->media != NULL;
  down = self->stopped || (!ready && clock_now () < self->failing_until);
  g_mutex_unlock (&self->lock);
  if (ready)
    return PRESENTATION_READY;
  if (down) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, NO_MEDIA_PROBLEM,
        presentation_get_label (self->presentation));
    return PRESENTATION_DOWN;
  }
  state = presentation_ask (self->presentation, error);
  // What can be sought is not opened: each reader has media of its own.
  if (state == PRESENTATION_READY && !presentation_follows (self->presentation)
      && presentation_get_place (self->presentation, &place))
    return PRESENTATION_READY;
  return state == PRESENTATION_READY ? PRESENTATION_STARTING : state;
}

static gboolean
update (gpointer self)
{
  live_media_update (self);
  return G_SOURCE_REMOVE;
}

static void
update_later (LiveMedia *self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, update, live_media_ref (self),
      (GDestroyNotify) (void (*) (void)) live_media_unref);
}

static void
end_waiting (LiveMedia *self)
{
  if (live_media_ask (self, NULL) != PRESENTATION_STARTING)
    waiting_end (self->waiting);
}

typedef struct {
  LiveMedia *live;
  PresentationDoneFunc done;
  gpointer data;
} Wait;

static void
wait_for_media (LiveMedia *self, PresentationDoneFunc done, gpointer data)
{
  MountConfig *config = presentation_dup_config (self->presentation);

  waiting_add (self->waiting, config->start_timeout_ms, done, data);
  mount_config_unref (config);
  end_waiting (self); // it may have been opened meanwhile
  update_later (self);
}

// The presentation has started, or has failed.
static void
on_started (gpointer data)
{
  Wait *wait = data;

  if (live_media_ask (wait->live, NULL) == PRESENTATION_STARTING
      && presentation_ask (wait->live->presentation, NULL) == PRESENTATION_READY)
    wait_for_media (wait->live, wait->done, wait->data);
  else
    wait->done (wait->data);
  live_media_unref (wait->live);
  g_free (wait);
}

void
live_media_wait (LiveMedia *self, PresentationDoneFunc done, gpointer data)
{
  Wait *wait;

  if (live_media_ask (self, NULL) != PRESENTATION_STARTING) {
    done (data);
    return;
  }
  wait = g_new (Wait, 1);
  *wait = (Wait) { live_media_ref (self), done, data };
  presentation_wait (self->presentation, on_started, wait);
}

// ---- media ----

gchar *
live_media_dup_key (LiveMedia *self, gboolean only_ready)
{
  gchar *key = NULL;

  g_mutex_lock (&self->lock);
  if (self->media || !only_ready)
    key = g_strdup_printf ("%s#%u", presentation_get_path (self->presentation), self->generation);
  g_mutex_unlock (&self->lock);
  return key;
}

gboolean
live_media_keep (LiveMedia *self, gpointer media)
{
  gboolean kept_for_readers = is_kept_for_readers (self), keep;

  g_mutex_lock (&self->lock);
  // Unwanted media would not be released: live_media_update() may have run already.
  keep =
      !self->media && !self->stopped && !self->outdated && (self->n_users > 0 || kept_for_readers);
  if (keep)
    self->media = media;
  g_mutex_unlock (&self->lock);
  return keep;
}

// Returns the media (transfer full), or NULL. Readers that join later get new media. Call with the
// lock held.
static gpointer
steal_media (LiveMedia *self)
{
  self->generation++;
  self->failing_until = 0;
  self->outdated = self->opening;
  return g_steal_pointer (&self->media);
}

void
live_media_retire (LiveMedia *self)
{
  gpointer media;

  g_mutex_lock (&self->lock);
  media = steal_media (self);
  g_mutex_unlock (&self->lock);
  if (media)
    self->ops->release (media);
}

void
live_media_opened (LiveMedia *self, const gchar *problem)
{
  gboolean failed;

  g_mutex_lock (&self->lock);
  failed = problem && !self->outdated && !self->stopped;
  if (failed)
    self->failing_until = clock_now () + RETRY;
  self->opening = self->outdated = FALSE;
  g_mutex_unlock (&self->lock);
  if (failed)
    log_event_limited (&self->failures, "mount %s cannot be served: %s",
        presentation_get_label (self->presentation), problem);
  end_waiting (self);
  update_later (self); // readers that joined after the media became outdated have no media
}

// ---- when there is media ----

static gboolean
on_linger_timeout (gpointer data)
{
  LiveMedia *self = data;
  gboolean kept_for_readers = is_kept_for_readers (self);
  gpointer media = NULL;

  self->linger = 0;
  g_mutex_lock (&self->lock);
  // In one step, so that a reader that joins now either keeps the media or gets new media.
  if (self->n_users == 0 && !kept_for_readers)
    media = steal_media (self);
  g_mutex_unlock (&self->lock);
  if (media)
    self->ops->release (media);
  return G_SOURCE_REMOVE;
}

void
live_media_update (LiveMedia *self)
{
  g_autoptr (MountConfig) config = presentation_dup_config (self->presentation);
  gboolean wanted = keeps_for_readers (self, config), lingers;
  gboolean opens = live_media_ask (self, NULL) == PRESENTATION_STARTING
                   && presentation_ask (self->presentation, NULL) == PRESENTATION_READY;

  g_mutex_lock (&self->lock);
  wanted |= self->n_users > 0;
  opens &= wanted && !self->opening && !self->media && !self->stopped;
  self->opening |= opens;
  lingers = self->media && !wanted;
  g_mutex_unlock (&self->lock);
  if (!lingers)
    g_clear_handle_id (&self->linger, g_source_remove);
  else if (!self->linger)
    self->linger = g_timeout_add (config->linger_ms, on_linger_timeout, self);
  if (opens)
    self->ops->open (self->owner);
}

gboolean
live_media_configure (LiveMedia *self)
{
  MountConfig *old = self->config;
  gboolean closes;
  gpointer media;

  self->config = presentation_dup_config (self->presentation);
  closes = mount_config_get_effect (old, self->config) == MOUNT_EFFECT_CLOSES;
  mount_config_unref (old);
  g_mutex_lock (&self->lock);
  media = self->media; // only this thread releases it
  g_mutex_unlock (&self->lock);
  if (media && !closes)
    self->ops->configure (media, self->presentation);
  return !media || !closes;
}

void
live_media_use (LiveMedia *self)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->n_users++ == 0;
  g_mutex_unlock (&self->lock);
  if (first)
    update_later (self);
}

void
live_media_unuse (LiveMedia *self)
{
  gboolean last;

  g_mutex_lock (&self->lock);
  last = --self->n_users == 0;
  g_mutex_unlock (&self->lock);
  if (last)
    update_later (self);
}

// ---- construction ----

LiveMedia *
live_media_new (Presentation *presentation, const LiveMediaOps *ops, gpointer owner)
{
  LiveMedia *self = g_new0 (LiveMedia, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->presentation = presentation_ref (presentation);
  self->ops = ops;
  self->owner = owner;
  self->waiting = waiting_new ();
  self->failures = LOG_LIMIT_FAILURES;
  self->config = presentation_dup_config (presentation);
  return self;
}

Presentation *
live_media_get_presentation (LiveMedia *self)
{
  return self->presentation;
}

void
live_media_stop (LiveMedia *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_mutex_unlock (&self->lock);
  g_clear_handle_id (&self->linger, g_source_remove);
  waiting_end (self->waiting);
  live_media_retire (self);
}

LiveMedia *
live_media_ref (LiveMedia *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
live_media_unref (LiveMedia *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  waiting_free (self->waiting);
  mount_config_unref (self->config);
  presentation_unref (self->presentation);
  g_mutex_clear (&self->lock);
  g_free (self);
}
