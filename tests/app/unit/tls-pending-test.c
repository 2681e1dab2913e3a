// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_pending.h"

#include <string.h>

#define MOST 6
#define MOST_OF_KEY 3

// Handshakes are named by a letter; capital ones are of clients that have sent something.
static const gchar letters[] = "abcdefghijABCDEFGHIJ";

static gpointer
get (gchar letter)
{
  return (gpointer) strchr (letters, letter);
}

static gboolean
is_silent (gpointer handshake)
{
  return g_ascii_islower (*(const gchar *) handshake);
}

static TlsPending *
make (void)
{
  return tls_pending_new (MOST, MOST_OF_KEY, is_silent);
}

// Adds a handshake of a client. Returns '+' if it was added, '-' if not, or the letter of the one
// that made room.
static gchar
add (TlsPending *self, const gchar *key, gchar letter)
{
  gpointer removed = &removed;
  gboolean ok = tls_pending_add (self, key, get (letter), &removed);

  g_assert_true (ok || !removed);
  return removed ? *(const gchar *) removed : ok ? '+' : '-';
}

// Adds handshakes: pairs of a client's digit and a letter.
static void
fill (TlsPending *self, const gchar *pairs)
{
  for (; *pairs; pairs += 2) {
    const gchar key[] = { pairs[0], '\0' };

    g_assert_cmpint (add (self, key, pairs[1]), ==, '+');
  }
}

static void
a_client_with_too_many_loses_its_oldest_silent_one (void)
{
  TlsPending *self = make ();

  fill (self, "1A2b1c1d");
  g_assert_cmpint (add (self, "1", 'e'), ==, 'c');
  g_assert_cmpint (add (self, "1", 'F'), ==, 'd');
  g_assert_cmpint (add (self, "1", 'G'), ==, 'e');
  g_assert_cmpint (add (self, "1", 'h'), ==, '-');
  g_assert_cmpint (add (self, "2", 'h'), ==, '+');
  tls_pending_free (self);
}

static void
without_room_the_oldest_silent_one_of_all_ends (void)
{
  TlsPending *self = make ();

  fill (self, "1A2b1c3d4e5f");
  g_assert_cmpint (add (self, "6", 'g'), ==, 'b');
  g_assert_cmpint (add (self, "2", 'h'), ==, 'c');
  g_assert_cmpint (add (self, "1", 'i'), ==, 'd');
  tls_pending_free (self);
}

static void
if_none_is_silent_the_client_with_the_most_loses_one (void)
{
  TlsPending *self = make ();

  fill (self, "1A2B2C2D1E3F");
  g_assert_cmpint (add (self, "3", 'G'), ==, 'B'); // now 2, 2, 2
  g_assert_cmpint (add (self, "3", 'H'), ==, '-');
  g_assert_cmpint (add (self, "4", 'H'), !=, '-');
  tls_pending_free (self);
}

static void
a_crowd_of_clients_waits_for_an_end (void)
{
  TlsPending *self = make ();

  fill (self, "1A2B3C4D5E6F");
  g_assert_cmpint (add (self, "7", 'G'), ==, '-');
  g_assert_true (tls_pending_remove (self, get ('C')));
  g_assert_false (tls_pending_remove (self, get ('C')));
  g_assert_cmpint (add (self, "7", 'G'), ==, '+');
  g_assert_cmpint (add (self, "8", 'H'), ==, '-');
  tls_pending_free (self);
}

static void
what_has_ended_is_not_counted (void)
{
  TlsPending *self = make ();

  for (guint i = 0; i < 100; i++) {
    fill (self, "1A1B1C");
    g_assert_cmpint (add (self, "1", 'D'), ==, '-');
    for (const gchar *c = "BAC"; *c; c++)
      g_assert_true (tls_pending_remove (self, get (*c)));
  }
  fill (self, "1a1b1c");
  g_assert_cmpint (add (self, "1", 'd'), ==, 'a');
  g_assert_false (tls_pending_remove (self, get ('a')));
  tls_pending_free (self);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/tls-pending/a client with too many loses its oldest silent one",
      a_client_with_too_many_loses_its_oldest_silent_one);
  g_test_add_func ("/tls-pending/without room the oldest silent one of all ends",
      without_room_the_oldest_silent_one_of_all_ends);
  g_test_add_func ("/tls-pending/if none is silent, the client with the most loses one",
      if_none_is_silent_the_client_with_the_most_loses_one);
  g_test_add_func (
      "/tls-pending/a crowd of clients waits for an end", a_crowd_of_clients_waits_for_an_end);
  g_test_add_func ("/tls-pending/what has ended is not counted", what_has_ended_is_not_counted);
  return g_test_run ();
}
