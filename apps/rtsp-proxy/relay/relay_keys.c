// SPDX-License-Identifier: LGPL-2.1-or-later

// Keyframe requests, on their way from sinks to the source of a track.

#include "relay/relay_private.h"

// Smallest interval between two requests for a track. Requests within it are merged into the next.
#define KEY_INTERVAL GST_SECOND

struct _RelayAsker {
  RelayAskFunc ask;
  gpointer data;
  GDestroyNotify free;
};

static void
asker_clear (gpointer data)
{
  RelayAsker *asker = data;

  asker->free (asker->data);
}

static void
asker_release (RelayAsker *asker)
{
  g_atomic_rc_box_release_full (asker, asker_clear);
}

void
relay_source_set_asker (RelaySource *self, RelayAskFunc ask, gpointer data, GDestroyNotify free)
{
  RelayAsker *new = NULL, *old;

  if (ask) {
    new = g_atomic_rc_box_new (RelayAsker);
    *new = (RelayAsker) { ask, data, free };
  }
  g_mutex_lock (&self->relay->lock);
  old = self->asker;
  self->asker = new;
  g_mutex_unlock (&self->relay->lock);
  // Without the lock: the release may free a relay.
  if (old)
    asker_release (old);
}

RelayAsker *
relay_take_key_request (Relay *self, guint index, gint64 now)
{
  RelayTrack *track = &self->tracks[index];

  if (!track->key_wanted || (track->key_asked && now - track->key_asked < (gint64) KEY_INTERVAL))
    return NULL;
  track->key_wanted = FALSE;
  // Without a source, the next one begins with a keyframe anyway.
  if (!self->current || !self->current->asker)
    return NULL;
  track->key_asked = now;
  return g_atomic_rc_box_acquire (self->current->asker);
}

void
relay_pass_key_request (RelayAsker *asker, guint index, gint64 now)
{
  if (!asker)
    return;
  asker->ask (asker->data, index, now);
  asker_release (asker);
}

void
relay_ask_key (Relay *self, guint index, gint64 now)
{
  RelayAsker *asker = NULL;

  g_mutex_lock (&self->lock);
  if (index < self->n_tracks) {
    self->tracks[index].key_wanted = TRUE;
    asker = relay_take_key_request (self, index, now);
  }
  g_mutex_unlock (&self->lock);
  relay_pass_key_request (asker, index, now);
}
