// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/track_watch.h"

struct _TrackWatch {
  gatomicrefcount refs; // the owner's, the relay's, and those of calls that are on their way
  Relay *relay;
  void (*known) (gpointer owner, GPtrArray *caps);
  gpointer owner; // of the main thread; NULL: it has freed the watch
};

typedef struct {
  TrackWatch *watch;
  GPtrArray *caps;
} Call;

static TrackWatch *
ref (TrackWatch *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
unref (gpointer data)
{
  TrackWatch *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  relay_unref (self->relay);
  g_free (self);
}

static gboolean
on_call (gpointer data)
{
  Call *call = data;
  TrackWatch *self = call->watch;

  if (self->owner)
    self->known (self->owner, call->caps);
  return G_SOURCE_REMOVE;
}

static void
call_free (gpointer data)
{
  Call *call = data;

  unref (call->watch);
  g_ptr_array_unref (call->caps);
  g_free (call);
}

static void
on_begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 start)
{
  Call *call = g_new (Call, 1);

  *call = (Call) { ref (data), g_ptr_array_ref (caps) };
  g_idle_add_full (G_PRIORITY_DEFAULT, on_call, call, call_free);
}

static void
on_push (gpointer self, const RelayPacket *packet)
{
  gst_buffer_unref (packet->buffer);
}

static const RelaySink functions = { .begun = on_begun, .push = on_push, .ended = unref };

TrackWatch *
track_watch_new (Relay *relay, void (*known) (gpointer owner, GPtrArray *caps), gpointer owner)
{
  TrackWatch *self = g_new0 (TrackWatch, 1);

  g_atomic_ref_count_init (&self->refs);
  self->relay = relay_ref (relay);
  self->known = known;
  self->owner = owner;
  relay_add_sink (relay, &functions, ref (self), 0, 0);
  return self;
}

void
track_watch_free (TrackWatch *self)
{
  self->owner = NULL;
  relay_remove_sink (self->relay, self);
  unref (self);
}
