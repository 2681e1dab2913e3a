// SPDX-License-Identifier: LGPL-2.1-or-later
#include "events/events.h"

#include <json-glib/json-glib.h>

struct _EventsWatch {
  void (*added) (gpointer data);
  gpointer data;
  gboolean freed;
};

static const gchar *const names[] = { "up", "down", "reader", "reader-left", "publish",
  "publish-end", "record", "record-done" };

static GMutex lock;              // protects the fields below
static Event *kept[EVENTS_KEPT]; // event N is at N % EVENTS_KEPT
static guint64 first, newest;    // numbers; `first` is 0 before there are any
static gboolean pending;         // the main thread will look

static GPtrArray *watches; // of EventsWatch; main thread only

const gchar *
event_get_name (EventKind kind)
{
  return names[kind];
}

static void
clear_event (gpointer data)
{
  Event *self = data;

  g_free (self->mount);
  g_free (self->json);
}

void
event_unref (Event *self)
{
  g_atomic_rc_box_release_full (self, clear_event);
}

// Sets the first number: the time in us, so that a restart makes larger ones. Call with the lock
// held.
static void
set_first (void)
{
  if (first)
    return;
  first = (guint64) g_get_real_time ();
  newest = first - 1;
}

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, valid);
}

// Begins the object, without the number.
static JsonBuilder *
begin_object (EventKind kind, const gchar *mount)
{
  JsonBuilder *builder = json_builder_new ();
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree gchar *seconds = g_date_time_format (now, "%Y-%m-%dT%H:%M:%S");
  g_autofree gchar *time =
      g_strdup_printf ("%s.%03dZ", seconds, g_date_time_get_microsecond (now) / 1000);

  json_builder_begin_object (builder);
  add_text (builder, "event", names[kind]);
  add_text (builder, "time", time);
  add_text (builder, "mount", mount);
  return builder;
}

static gchar *
finish_object (JsonBuilder *builder)
{
  JsonNode *root;
  gchar *json;

  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  json = json_to_string (root, FALSE);
  json_node_unref (root);
  g_object_unref (builder);
  return json;
}

static gboolean
tell_watches (gpointer unused)
{
  g_mutex_lock (&lock);
  pending = FALSE;
  g_mutex_unlock (&lock);
  for (guint i = 0; watches && i < watches->len; i++) {
    EventsWatch *watch = g_ptr_array_index (watches, i);

    if (!watch->freed)
      watch->added (watch->data);
  }
  for (guint i = watches ? watches->len : 0; i-- > 0;) {
    if (((EventsWatch *) g_ptr_array_index (watches, i))->freed)
      g_ptr_array_remove_index (watches, i);
  }
  return G_SOURCE_REMOVE;
}

void
events_add (EventKind kind, const gchar *mount, ...)
{
  JsonBuilder *builder = begin_object (kind, mount);
  Event *event = g_atomic_rc_box_new0 (Event), *oldest;
  gboolean tells;
  va_list pairs;

  va_start (pairs, mount);
  for (const gchar *name; (name = va_arg (pairs, const gchar *));) {
    const gchar *text = va_arg (pairs, const gchar *);

    if (text)
      add_text (builder, name, text);
  }
  va_end (pairs);
  event->kind = kind;
  event->mount = g_strdup (mount);
  g_mutex_lock (&lock);
  set_first ();
  event->number = ++newest;
  json_builder_set_member_name (builder, "number");
  json_builder_add_int_value (builder, (gint64) event->number);
  event->json = finish_object (builder);
  oldest = kept[newest % EVENTS_KEPT];
  kept[newest % EVENTS_KEPT] = event;
  tells = !pending;
  pending = TRUE;
  g_mutex_unlock (&lock);
  if (tells)
    g_idle_add_full (G_PRIORITY_DEFAULT, tell_watches, NULL, NULL);
  g_clear_pointer (&oldest, event_unref);
}

Event *
events_next (guint64 number, gboolean *lost)
{
  Event *event = NULL;
  guint64 oldest, next;

  g_mutex_lock (&lock);
  set_first ();
  oldest = newest >= first + EVENTS_KEPT ? newest - EVENTS_KEPT + 1 : first;
  *lost = number + 1 < oldest || number > newest;
  next = *lost ? oldest : number + 1;
  if (next <= newest)
    event = g_atomic_rc_box_acquire (kept[next % EVENTS_KEPT]);
  g_mutex_unlock (&lock);
  return event;
}

guint64
events_get_newest (void)
{
  guint64 number;

  g_mutex_lock (&lock);
  set_first ();
  number = newest;
  g_mutex_unlock (&lock);
  return number;
}

EventsWatch *
events_watch_new (void (*added) (gpointer data), gpointer data)
{
  EventsWatch *self = g_new0 (EventsWatch, 1);

  self->added = added;
  self->data = data;
  if (!watches)
    watches = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (watches, self);
  return self;
}

void
events_watch_free (EventsWatch *self)
{
  self->freed = TRUE;
  // tell_watches() may be at work on the list.
  g_idle_add_full (G_PRIORITY_DEFAULT, tell_watches, NULL, NULL);
}
