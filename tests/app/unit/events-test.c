// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Events: their numbers, those that are kept, and who is told.

#include "events/events.h"

#include <string.h>

#define THREADS 4
#define EACH 1000

static void
numbers_rise_and_the_newest_are_kept (void)
{
  const guint64 before = events_get_newest ();
  guint64 number = before;
  gboolean lost;

  g_assert_null (events_next (before, &lost));
  g_assert_false (lost);
  for (guint i = 0; i < EVENTS_KEPT + 10; i++)
    events_add (EVENT_READER, "/cam", "peer", "192.0.2.1:5", "reason", NULL, NULL);
  g_assert_cmpuint (events_get_newest (), ==, before + EVENTS_KEPT + 10);
  for (guint i = 0; i < EVENTS_KEPT; i++) {
    g_autoptr (Event) event = events_next (number, &lost);

    g_assert_true (lost == (i == 0));
    number = event->number;
    g_assert_cmpuint (number, ==, before + 11 + i);
    g_assert_cmpstr (event->mount, ==, "/cam");
  }
  g_assert_null (events_next (number, &lost));
  g_assert_false (lost);
}

// As after a restart, or of a client that makes numbers up.
static void
an_unknown_number_is_said_to_be_lost (void)
{
  const guint64 numbers[] = { 0, 1, events_get_newest () + 1, G_MAXINT64, G_MAXUINT64 };

  events_add (EVENT_UP, "/cam", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    gboolean lost;
    g_autoptr (Event) event = events_next (numbers[i], &lost);

    // By now, the third one is the newest event.
    g_assert_true (lost == (i != 2));
    g_assert_true (!event == (i == 2));
  }
}

static void
texts_are_json (void)
{
  guint64 before = events_get_newest ();
  gboolean lost;
  g_autoptr (Event) event = NULL;

  events_add (EVENT_DOWN, "/a\"b", "reason", "line\nbreak \xff \"quoted\"", NULL);
  event = events_next (before, &lost);
  g_assert_nonnull (strstr (event->json, "\"event\":\"down\""));
  g_assert_nonnull (strstr (event->json, "\"mount\":\"/a\\\"b\""));
  g_assert_nonnull (strstr (event->json, "line\\nbreak \xef\xbf\xbd \\\"quoted\\\""));
  g_assert_null (strchr (event->json, '\n'));
  g_assert_cmpstr (event_get_name (event->kind), ==, "down");
}

typedef struct {
  guint n;
  EventsWatch *ends; // a watch that is freed when this one is told
} Told;

static void
count (gpointer data)
{
  Told *told = data;

  told->n++;
  g_clear_pointer (&told->ends, events_watch_free);
}

static void
iterate (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

static void
several_events_are_told_once (void)
{
  Told first = { 0 }, second = { 0 };
  EventsWatch *watch;

  iterate (); // what the tests before have left
  watch = events_watch_new (count, &first);
  first.ends = events_watch_new (count, &second);
  events_add (EVENT_UP, "/cam", NULL);
  events_add (EVENT_DOWN, "/cam", NULL);
  g_assert_cmpuint (first.n, ==, 0);
  iterate ();
  g_assert_cmpuint (first.n, >=, 1);
  g_assert_cmpuint (second.n, ==, 0);
  first.n = 0;
  events_add (EVENT_UP, "/cam", NULL);
  iterate ();
  g_assert_cmpuint (first.n, ==, 1);
  events_watch_free (watch);
  events_add (EVENT_UP, "/cam", NULL);
  iterate ();
  g_assert_cmpuint (first.n, ==, 1);
}

static gpointer
add_many (gpointer unused)
{
  for (guint i = 0; i < EACH; i++)
    events_add (EVENT_READER, "/cam", "peer", "x", NULL);
  return NULL;
}

static void
threads_add_beside_each_other (void)
{
  const guint64 before = events_get_newest ();
  GThread *threads[THREADS];
  guint64 number = before;
  gboolean lost;
  Event *event;

  for (guint i = 0; i < THREADS; i++)
    threads[i] = g_thread_new (NULL, add_many, NULL);
  while (number < before + THREADS * EACH) {
    event = events_next (number, &lost);
    if (!event)
      continue;
    g_assert_cmpuint (event->number, >, number);
    number = event->number;
    event_unref (event);
  }
  for (guint i = 0; i < THREADS; i++)
    g_thread_join (threads[i]);
  g_assert_cmpuint (events_get_newest (), ==, before + THREADS * EACH);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/events/numbers-rise-and-the-newest-are-kept", numbers_rise_and_the_newest_are_kept);
  g_test_add_func (
      "/events/an-unknown-number-is-said-to-be-lost", an_unknown_number_is_said_to_be_lost);
  g_test_add_func ("/events/texts-are-json", texts_are_json);
  g_test_add_func ("/events/several-events-are-told-once", several_events_are_told_once);
  g_test_add_func ("/events/threads-add-beside-each-other", threads_add_beside_each_other);
  return g_test_run ();
}
