// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/title_outbox.h"

#include <sys/socket.h>
#include <unistd.h>

#include "isolate/title_wire.h"

#define STEP (TITLE_OUTBOX_AHEAD / 5) // of the title, in a message
#define AHEAD 5u                      // messages that are sent beyond what was taken

// The proxy's end of one track, and the worker's.
typedef struct {
  TitleOutbox *outbox;
  gint proxy; // the socket
  WireMessage *message;
  guint32 n_taken;
} Rig;

static void
start (Rig *rig)
{
  const struct timeval limit = { 20, 0 };
  gint pair[2];

  *rig = (Rig) { .outbox = title_outbox_new (), .message = g_new (WireMessage, 1) };
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
  g_assert_cmpint (setsockopt (pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), ==, 0);
  rig->proxy = pair[0];
  g_assert_true (title_outbox_add (rig->outbox, 0, pair[1]));
}

static void
stop (Rig *rig)
{
  title_outbox_free (rig->outbox);
  if (rig->proxy >= 0)
    close (rig->proxy);
  g_free (rig->message);
}

// Puts a message whose content is its number.
static gboolean
put (Rig *rig, guint8 number, GstClockTime at)
{
  wire_begin (rig->message, (WireType) TITLE_WIRE_PACKETS);
  wire_put (rig->message, number, 1);
  return title_outbox_put (rig->outbox, 0, rig->message, at);
}

static void
put_many (Rig *rig, guint first, guint n)
{
  for (guint i = first; i < first + n; i++)
    g_assert_true (put (rig, (guint8) i, i * STEP));
}

static void
expect (Rig *rig, guint first, guint n)
{
  guint8 data[8];

  for (guint i = first; i < first + n; i++) {
    g_assert_cmpint (recv (rig->proxy, data, sizeof data, 0), ==, 2);
    g_assert_cmpuint (data[1], ==, i);
    rig->n_taken++;
  }
}

static void
expect_nothing (Rig *rig)
{
  guint8 data[8];

  g_assert_cmpint (recv (rig->proxy, data, sizeof data, MSG_DONTWAIT), <, 0);
}

static void
tell_taken (Rig *rig, guint32 n)
{
  title_wire_put_taken (rig->message, n);
  g_assert_cmpint (send (rig->proxy, rig->message->data, rig->message->len, 0), >, 0);
}

static void
no_more_is_sent_than_the_lead (void)
{
  Rig rig;

  start (&rig);
  put_many (&rig, 0, 2 * AHEAD);
  expect (&rig, 0, AHEAD);
  expect_nothing (&rig);
  tell_taken (&rig, rig.n_taken - 1); // one was in the socket yet
  expect (&rig, AHEAD, AHEAD - 1);
  expect_nothing (&rig);
  tell_taken (&rig, AHEAD);
  expect (&rig, 2 * AHEAD - 1, 1);
  tell_taken (&rig, rig.n_taken + 1); // more than was sent
  g_assert_true (title_outbox_is_empty (rig.outbox, 0));
  put_many (&rig, 2 * AHEAD, 1);
  g_assert_false (title_outbox_is_empty (rig.outbox, 0));
  stop (&rig);
}

static void
messages_without_a_time_keep_their_place (void)
{
  Rig rig;

  start (&rig);
  put_many (&rig, 0, AHEAD);
  g_assert_true (put (&rig, AHEAD, GST_CLOCK_TIME_NONE));
  put_many (&rig, AHEAD + 1, 1);
  g_assert_true (put (&rig, AHEAD + 2, GST_CLOCK_TIME_NONE));
  expect (&rig, 0, AHEAD + 1);
  expect_nothing (&rig);
  tell_taken (&rig, rig.n_taken);
  expect (&rig, AHEAD + 1, 2);
  stop (&rig);
}

static gpointer
wait_for_room (gpointer data)
{
  title_outbox_wait (((Rig *) data)->outbox, 0);
  return NULL;
}

static void
the_reader_waits_until_half_is_sent (void)
{
  const guint kept = TITLE_OUTBOX_TIME / STEP + 1;
  GThread *waits;
  Rig rig;

  start (&rig);
  put_many (&rig, 0, AHEAD + kept - 1);
  g_assert_false (title_outbox_is_full (rig.outbox, 0));
  put_many (&rig, AHEAD + kept - 1, 1);
  g_assert_true (title_outbox_is_full (rig.outbox, 0));
  waits = g_thread_new ("waits", wait_for_room, &rig);
  for (guint i = 0; i < 2; i++) {
    expect (&rig, i * AHEAD, AHEAD);
    tell_taken (&rig, rig.n_taken);
  }
  g_thread_join (waits);
  stop (&rig);
}

// What was sent is of the old position, so it must not delay the new one.
static void
a_flush_drops_what_is_kept_and_begins_anew (void)
{
  Rig rig;

  start (&rig);
  put_many (&rig, 0, 2 * AHEAD);
  title_outbox_flush (rig.outbox, 0, TRUE);
  g_assert_false (put (&rig, 99, 0));
  title_outbox_flush (rig.outbox, 0, FALSE);
  put_many (&rig, 100, AHEAD);
  expect (&rig, 0, AHEAD);
  expect (&rig, 100, AHEAD);
  expect_nothing (&rig);
  stop (&rig);
}

static void
a_closed_socket_ends_the_track (void)
{
  Rig rig;

  start (&rig);
  put_many (&rig, 0, 2 * AHEAD);
  close (rig.proxy);
  rig.proxy = -1;
  while (!title_outbox_is_empty (rig.outbox, 0))
    g_thread_yield ();
  g_assert_false (put (&rig, 99, 0));
  stop (&rig);
}

static void
malformed_messages_say_nothing (void)
{
  Rig rig;

  start (&rig);
  put_many (&rig, 0, 2 * AHEAD);
  expect (&rig, 0, AHEAD);
  g_assert_cmpint (send (rig.proxy, "\0\0\0\0\0", 5, 0), ==, 5);
  g_assert_cmpint (send (rig.proxy, "x", 1, 0), ==, 1);
  title_wire_put_taken (rig.message, rig.n_taken);
  g_assert_cmpint (send (rig.proxy, rig.message->data, rig.message->len + 1, 0), >, 0);
  expect_nothing (&rig);
  tell_taken (&rig, rig.n_taken);
  expect (&rig, AHEAD, AHEAD);
  stop (&rig);
}

// One thread sends for all titles.
static void
a_title_that_takes_nothing_does_not_hold_others (void)
{
  Rig rigs[2];

  start (&rigs[0]);
  start (&rigs[1]);
  put_many (&rigs[0], 0, 2 * AHEAD);
  for (guint i = 0; i < 10; i++) {
    put_many (&rigs[1], i * AHEAD, AHEAD);
    expect (&rigs[1], i * AHEAD, AHEAD);
    tell_taken (&rigs[1], rigs[1].n_taken);
  }
  stop (&rigs[0]);
  put_many (&rigs[1], 10 * AHEAD, AHEAD);
  expect (&rigs[1], 10 * AHEAD, AHEAD);
  stop (&rigs[1]);
}

// A full socket, not the lead, is what keeps messages here.
static void
what_a_full_socket_keeps_is_sent_when_it_has_room (void)
{
  guint8 *data = g_malloc (WIRE_MAX);
  guint n = 0;
  Rig rig;

  start (&rig);
  while (title_outbox_is_empty (rig.outbox, 0)) {
    wire_begin (rig.message, (WireType) TITLE_WIRE_PACKETS);
    wire_put (rig.message, n++, 4);
    rig.message->len = 16384;
    g_assert_true (title_outbox_put (rig.outbox, 0, rig.message, GST_CLOCK_TIME_NONE));
  }
  for (guint i = 0; i < n; i++) {
    g_assert_cmpint (recv (rig.proxy, data, WIRE_MAX, 0), ==, 16384);
    g_assert_cmpuint (data[4], ==, (guint8) i);
  }
  g_assert_true (title_outbox_is_empty (rig.outbox, 0));
  stop (&rig);
  g_free (data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (NULL, NULL);
#define ADD(function) g_test_add_func ("/title-outbox/" #function, function)
  ADD (no_more_is_sent_than_the_lead);
  ADD (messages_without_a_time_keep_their_place);
  ADD (the_reader_waits_until_half_is_sent);
  ADD (a_flush_drops_what_is_kept_and_begins_anew);
  ADD (a_closed_socket_ends_the_track);
  ADD (malformed_messages_say_nothing);
  ADD (a_title_that_takes_nothing_does_not_hold_others);
  ADD (what_a_full_socket_keeps_is_sent_when_it_has_room);
  return g_test_run ();
}
