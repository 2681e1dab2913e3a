// SPDX-License-Identifier: LGPL-2.1-or-later

// Keyframe requests, on their way from sinks to the source of a track.

#include "relay/relay_private.h"

// Smallest interval between two requests for a track. Requests within it are merged into the next.
#define KEY_INTERVAL GST_SECOND

struct _RelayKeyHandler {
  RelayAskFunc ask;
  gpointer data;
  GDestroyNotify free;
};

static void
key_handler_clear (gpointer data)
{
  RelayKeyHandler *handler = data;

  handler->free (handler->data);
}

static void
key_handler_release (RelayKeyHandler *handler)
{
  g_atomic_rc_box_release_full (handler, key_handler_clear);
}

void
relay_source_set_key_handler (
    RelaySource *self, RelayAskFunc ask, gpointer data, GDestroyNotify free)
{
  RelayKeyHandler *new = NULL, *old;

  if (ask) {
    new = g_atomic_rc_box_new (RelayKeyHandler);
    *new = (RelayKeyHandler) { ask, data, free };
  }
  g_mutex_lock (&self->relay->lock);
  old = self->handler;
  self->handler = new;
  g_mutex_unlock (&self->relay->lock);
  // Without the lock: the release may free a relay.
  if (old)
    key_handler_release (old);
}

RelayKeyHandler *
relay_source_dup_key_handler (RelaySource *self)
{
  return self->handler ? g_atomic_rc_box_acquire (self->handler) : NULL;
}

RelayKeyHandler *
relay_take_key_request (Relay *self, guint index, gint64 now)
{
  RelayTrack *track = &self->tracks[index];

  if (!track->key_wanted || (track->key_asked && now - track->key_asked < (gint64) KEY_INTERVAL))
    return NULL;
  track->key_wanted = FALSE;
  // Without a source, the next one begins with a keyframe anyway.
  if (!self->current || !self->current->handler)
    return NULL;
  track->key_asked = now;
  return relay_source_dup_key_handler (self->current);
}

void
relay_pass_key_request (RelayKeyHandler *handler, guint index, gint64 now)
{
  if (!handler)
    return;
  handler->ask (handler->data, index, now);
  key_handler_release (handler);
}

void
relay_ask_key (Relay *self, guint index, gint64 now)
{
  RelayKeyHandler *handler = NULL;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    self->tracks[index].key_wanted = TRUE;
    handler = relay_take_key_request (self, index, now);
  }
  g_mutex_unlock (&self->lock);
  relay_pass_key_request (handler, index, now);
}

static void
ask_relay (gpointer from, guint track, gint64 now)
{
  relay_ask_key (from, track, now);
}

static void
unref_relay (gpointer from)
{
  relay_unref (from);
}

void
relay_source_ask_from (RelaySource *self, Relay *from)
{
  relay_source_set_key_handler (self, ask_relay, relay_ref (from), unref_relay);
}
