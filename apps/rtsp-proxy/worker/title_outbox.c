// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/title_outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolate/title_loop.h"
#include "isolate/title_wire.h"
#include "relay/relay.h"

typedef struct {
  GstClockTime at;
  gsize len;
  guint8 data[];
} Message;

typedef struct {
  gint socket;     // -1: there is no such track
  guint32 events;  // of epoll, which are waited for
  GQueue kept;     // of Message
  gsize bytes;     // of `kept`
  GArray *sent;    // the times of the messages that the proxy may not have taken; or none
  guint32 n_taken; // messages before those
  gboolean flushes;
  gboolean failed; // the proxy has closed the socket
} Track;

struct _TitleOutbox {
  LoopWatch watch; // first

  GMutex lock; // protects the fields below
  GCond changed;
  Track tracks[RELAY_MAX_TRACKS];
  gboolean stopped;
};

static void
drop (Track *track)
{
  g_queue_clear_full (&track->kept, g_free);
  track->bytes = 0;
}

static gboolean
is_too_early (const Track *track, GstClockTime at)
{
  const GstClockTime *sent = (const GstClockTime *) track->sent->data;

  for (guint i = 0; i < track->sent->len && GST_CLOCK_TIME_IS_VALID (at); i++) {
    if (GST_CLOCK_TIME_IS_VALID (sent[i]))
      return at >= sent[i] + TITLE_OUTBOX_AHEAD;
  }
  return FALSE;
}

// Returns FALSE if it is too early, or the socket has no room.
static gboolean
try_to_send (Track *track, const guint8 *data, gsize len, GstClockTime at)
{
  gssize sent;

  if (is_too_early (track, at))
    return FALSE;
  do
    sent = send (track->socket, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno == EAGAIN)
    return FALSE;
  track->failed |= sent < 0;
  g_array_append_val (track->sent, at);
  return TRUE;
}

// Waits for what is needed to send on: that the proxy takes messages, or the socket has room.
static gboolean
wait_for_events (TitleOutbox *self, Track *track)
{
  const Message *next = g_queue_peek_head (&track->kept);
  guint32 events = EPOLLIN;

  if (next && !is_too_early (track, next->at))
    events |= EPOLLOUT;
  if (track->failed)
    events = 0;
  if (events == track->events)
    return TRUE;
  track->events = events;
  return loop_watch (&self->watch, (guint) (track - self->tracks), track->socket, events);
}

static void
keep (TitleOutbox *self, Track *track, const WireMessage *message, GstClockTime at)
{
  Message *kept = g_malloc (sizeof *kept + message->len);

  kept->at = at;
  kept->len = message->len;
  memcpy (kept->data, message->data, message->len);
  g_queue_push_tail (&track->kept, kept);
  track->bytes += message->len;
  if (track->kept.length == 1)
    wait_for_events (self, track);
}

gboolean
title_outbox_put (TitleOutbox *self, guint number, const WireMessage *message, GstClockTime at)
{
  Track *track = &self->tracks[number];
  gboolean ok;

  if (message->failed)
    return TRUE;
  g_mutex_lock (&self->lock);
  ok = !track->flushes && !track->failed && !self->stopped;
  if (ok && (track->kept.length > 0 || !try_to_send (track, message->data, message->len, at)))
    keep (self, track, message, at);
  ok &= !track->failed;
  g_mutex_unlock (&self->lock);
  return ok;
}

// ---- limits ----

// Returns the time between the first and the last packets that are kept. Messages without a time
// lie between others.
static GstClockTime
get_time (const Track *track)
{
  const Message *first = g_queue_peek_head ((GQueue *) &track->kept),
                *last = g_queue_peek_tail ((GQueue *) &track->kept);

  return first && GST_CLOCK_TIME_IS_VALID (first->at) && GST_CLOCK_TIME_IS_VALID (last->at)
                 && last->at > first->at
             ? last->at - first->at
             : 0;
}

static gboolean
has_more_than (const Track *track, guint part)
{
  return track->bytes >= TITLE_OUTBOX_BYTES / part || get_time (track) >= TITLE_OUTBOX_TIME / part;
}

gboolean
title_outbox_is_full (TitleOutbox *self, guint track)
{
  gboolean full;

  g_mutex_lock (&self->lock);
  full = has_more_than (&self->tracks[track], 1);
  g_mutex_unlock (&self->lock);
  return full;
}

gboolean
title_outbox_is_empty (TitleOutbox *self, guint track)
{
  gboolean empty;

  g_mutex_lock (&self->lock);
  empty = self->tracks[track].kept.length == 0;
  g_mutex_unlock (&self->lock);
  return empty;
}

void
title_outbox_wait (TitleOutbox *self, guint number)
{
  Track *track = &self->tracks[number];

  g_mutex_lock (&self->lock);
  while (has_more_than (track, 2) && !track->flushes && !self->stopped)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

void
title_outbox_flush (TitleOutbox *self, guint number, gboolean flushes)
{
  Track *track = &self->tracks[number];

  g_mutex_lock (&self->lock);
  track->flushes = flushes;
  for (guint i = 0; i < track->sent->len; i++)
    g_array_index (track->sent, GstClockTime, i) = GST_CLOCK_TIME_NONE;
  drop (track);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

// ---- the thread that sends, with the lock held ----

static void
send_kept (TitleOutbox *self, Track *track)
{
  Message *next;

  while ((next = g_queue_peek_head (&track->kept))
         && try_to_send (track, next->data, next->len, next->at)) {
    track->bytes -= next->len;
    g_free (g_queue_pop_head (&track->kept));
  }
  if (track->failed)
    drop (track);
  if (!has_more_than (track, 2))
    g_cond_broadcast (&self->changed);
}

static void
note_taken (Track *track, guint32 n)
{
  if (n - track->n_taken > track->sent->len)
    return;
  g_array_remove_range (track->sent, 0, n - track->n_taken);
  track->n_taken = n;
}

// Reads what the proxy has taken.
static void
read_taken (Track *track)
{
  guint8 data[8];
  guint32 n;
  gssize len = recv (track->socket, data, sizeof data, MSG_DONTWAIT);

  if (len > 0 && title_wire_read_taken (data, (gsize) len, &n))
    note_taken (track, n);
  track->failed |= len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  TitleOutbox *self = (TitleOutbox *) watch;
  Track *track = &self->tracks[number];

  g_mutex_lock (&self->lock);
  if (events & ~(guint32) EPOLLOUT)
    read_taken (track);
  send_kept (self, track);
  wait_for_events (self, track);
  g_mutex_unlock (&self->lock);
}

// ---- lifetime ----

static void
on_left (LoopWatch *watch)
{
  TitleOutbox *self = (TitleOutbox *) watch;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    drop (&self->tracks[i]);
    g_array_unref (self->tracks[i].sent);
    if (self->tracks[i].socket >= 0)
      close (self->tracks[i].socket);
  }
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}

TitleOutbox *
title_outbox_new (void)
{
  static const LoopOps ops = { .ready = on_ready, .left = on_left };
  TitleOutbox *self = g_new0 (TitleOutbox, 1);

  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    self->tracks[i].socket = -1;
    self->tracks[i].sent = g_array_new (FALSE, FALSE, sizeof (GstClockTime));
  }
  loop_join (title_loop_get (), &self->watch, &ops);
  return self;
}

gboolean
title_outbox_add (TitleOutbox *self, guint track, gint socket)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  self->tracks[track].socket = socket;
  ok = wait_for_events (self, &self->tracks[track]);
  if (!ok)
    self->tracks[track].socket = -1;
  g_mutex_unlock (&self->lock);
  return ok;
}

void
title_outbox_stop (TitleOutbox *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
title_outbox_free (TitleOutbox *self)
{
  loop_leave (&self->watch);
}
