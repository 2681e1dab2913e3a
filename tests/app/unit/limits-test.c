// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/connections.h"
#include "readers/reader_limit.h"
#include "text/request_check.h"

#include <stdlib.h>
#include <string.h>

static const RequestLimits few = { .line = 40, .headers = 3, .head = 100, .body = 10 };

// ---- requests ----

static const struct {
  const gchar *text;
  RequestFault fault;
  gsize whole; // 0: incomplete, or refused
} requests[] = {
  { "O * RTSP/1.0\r\n\r\nmore", REQUEST_FINE, 16 },
  { "O * RTSP/1.0\n\nmore", REQUEST_FINE, 14 },
  { "O * RTSP/1.0\r\nContent-Length: 3\r\n\r\nabcd", REQUEST_FINE, 38 },
  { "O * RTSP/1.0\r\nContent-Length : 3 \r\n\r\nabcd", REQUEST_FINE, 40 },
  { "O * RTSP/1.0\r\ncontent-length:3\r\n\r\nab", REQUEST_FINE, 0 },
  { "O * RTSP/1.0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", REQUEST_FINE, 34 },
  { "O * RTSP/1.0\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n", REQUEST_HEADERS_MANY, 0 },
  { "O 3456789012345678901234567890 RTSP/1.0\r", REQUEST_FINE, 0 },
  { "O 34567890123456789012345678901 RTSP/1.0\r", REQUEST_FINE, 0 },
  { "O 345678901234567890123456789012 RTSP/1.0\r", REQUEST_LINE_LONG, 0 },
  { "O 345678901234567890123456789012 RTSP/1.0\n", REQUEST_LINE_LONG, 0 },
  { "O * RTSP/1.0\r\nA: 45678901234567890123456789012345678901\r\n", REQUEST_HEADER_LONG, 0 },
  { "O 567890123456789012345678 RTSP/1.0\nA: 4567890123456789012345678901234567\n"
    "B: 4567890123456789012345678901234\n\n",
      REQUEST_HEAD_LARGE, 0 },
  { "O * RTSP/1.0\r\nContent-Length: 11\r\n", REQUEST_BODY_LARGE, 0 },
  { "O * RTSP/1.0\r\nContent-Length: 1\r\nContent-Length: 2\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/1.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", REQUEST_FINE, 55 },
  { "O * RTSP/1.0\r\nContent-Length: +1\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/1.0\r\nContent-Length:\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/1.0\r\n A: 1\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/1.0\r\nA: 1\r2\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/1.0\r\r\n", REQUEST_MALFORMED, 0 },
  { "O * RTSP/2.0\r\n", REQUEST_VERSION_WRONG, 0 },
  { "O * HTTP/1.1\r\n", REQUEST_VERSION_WRONG, 0 },
  { "O * RTSP\r\n", REQUEST_MALFORMED, 0 },
  { "O RTSP/1.0\r\n", REQUEST_MALFORMED, 0 },
  { "RTSP/1.0 200 OK\r\n", REQUEST_MALFORMED, 0 },
};

// Checks a text in pieces of `piece` bytes, in memory of exactly their size, so that a sanitizer
// sees a read past the end.
static gsize
check_in_pieces (const gchar *text, gsize piece, RequestCheck *check)
{
  gsize len = strlen (text), whole = 0;

  for (gsize n = MIN (piece, len); whole == 0 && check->fault == REQUEST_FINE;
      n = MIN (n + piece, len)) {
    guint8 *exact = g_memdup2 (text, n);

    whole = request_check (check, &few, exact, n);
    g_free (exact);
    if (n == len)
      break;
  }
  return whole;
}

static void
requests_are_checked_as_they_arrive (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (requests); i++) {
    for (gsize piece = 1; piece < 60; piece++) {
      RequestCheck check = { 0 };
      gsize whole = check_in_pieces (requests[i].text, piece, &check);

      g_test_message ("%s in pieces of %" G_GSIZE_FORMAT, requests[i].text, piece);
      g_assert_cmpint (check.fault, ==, requests[i].fault);
      g_assert_cmpuint (whole, ==, requests[i].whole);
    }
  }
}

static void
lines_end_with_cr_lf_behind_the_check (void)
{
  static const gchar text[] = "O * RTSP/1.0\nA: 1\r\nCSeq: 7\n\nbody";
  RequestCheck check = { 0 };
  gsize whole = request_check (&check, &few, (const guint8 *) text, strlen (text));
  GByteArray *head = request_dup_head (&check, (const guint8 *) text);

  g_assert_cmpuint (whole, ==, strlen (text) - 4);
  g_assert_true (check.bare && check.has_cseq && check.cseq == 7);
  g_assert_cmpmem (head->data, head->len, "O * RTSP/1.0\r\nA: 1\r\nCSeq: 7\r\n\r\n", 31);
  g_byte_array_unref (head);
}

static void
a_space_behind_a_name_is_malformed_in_http (void)
{
  static const gchar text[] = "G / HTTP/1.1\r\nA : 1\r\n\r\n";
  RequestCheck check = { .http = TRUE };

  g_assert_cmpuint (request_check (&check, &few, (const guint8 *) text, strlen (text)), ==, 0);
  g_assert_cmpint (check.fault, ==, REQUEST_MALFORMED);
}

static void
random_bytes_stay_within_the_limits (void)
{
  static const gchar pieces[][20] = { "O * RTSP/1.0\r\n", "\r\n", "\n", ":", "A: b\r\n",
    "Content-Length: ", "5", "CSeq: 1\r\n", " ", "\r", "x" };

  for (guint run = 0; run < 20000; run++) {
    GString *text = g_string_new (NULL);
    RequestCheck check = { 0 };
    gsize whole;

    for (guint n = g_test_rand_int_range (0, 40); n > 0; n--)
      g_string_append (text, pieces[g_test_rand_int_range (0, G_N_ELEMENTS (pieces))]);
    whole = check_in_pieces (text->str, (gsize) g_test_rand_int_range (1, 30), &check);
    g_assert_cmpuint (whole, <=, MIN (text->len, few.head + few.body));
    g_assert_true (whole == 0 || check.fault == REQUEST_FINE);
    // An incomplete request is not longer than the limits.
    g_assert_true (
        whole > 0 || check.fault != REQUEST_FINE || text->len <= few.head + few.body + few.line);
    g_string_free (text, TRUE);
  }
}

// ---- connections ----

static gboolean
enter (Connections *connections, const gchar *address, guint all, guint own, RefusedReason *reason)
{
  const Limits limits = { .connections = all, .address_connections = own };
  GInetAddress *inet = g_inet_address_new_from_string (address);
  gboolean entered = connections_enter (connections, &limits, inet, reason);

  g_object_unref (inet);
  return entered;
}

static void
leave (Connections *connections, const gchar *address)
{
  GInetAddress *inet = g_inet_address_new_from_string (address);

  connections_leave (connections, inet);
  g_object_unref (inet);
}

static void
connections_of_an_address_are_bounded (void)
{
  Connections *all = connections_new ();
  RefusedReason reason;

  g_assert_true (enter (all, "192.0.2.1", 9, 2, &reason));
  g_assert_true (enter (all, "192.0.2.1", 9, 2, &reason));
  g_assert_false (enter (all, "192.0.2.1", 9, 2, &reason));
  g_assert_cmpint (reason, ==, REFUSED_ADDRESS);
  // The same address on a socket of both families.
  g_assert_false (enter (all, "::ffff:192.0.2.1", 9, 2, &reason));
  g_assert_true (enter (all, "192.0.2.1", 9, 0, &reason));
  leave (all, "192.0.2.1");
  g_assert_true (enter (all, "192.0.2.2", 9, 2, &reason));
  leave (all, "192.0.2.1");
  g_assert_true (enter (all, "::ffff:192.0.2.1", 9, 2, &reason));
  g_assert_cmpuint (connections_count (all), ==, 3);
  connections_unref (all);
}

static void
addresses_of_a_network_are_one (void)
{
  Connections *all = connections_new ();
  RefusedReason reason;

  g_assert_true (enter (all, "2001:db8:1:2::1", 9, 1, &reason));
  g_assert_false (enter (all, "2001:db8:1:2:ffff::2", 9, 1, &reason));
  g_assert_true (enter (all, "2001:db8:1:3::1", 9, 1, &reason));
  connections_unref (all);
}

static void
loopback_has_only_the_limit_of_all (void)
{
  static const gchar *const addresses[] = { "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1" };
  Connections *all = connections_new ();
  RefusedReason reason;

  for (guint i = 0; i < 8; i++)
    g_assert_true (enter (all, addresses[i % 4], 8, 1, &reason));
  g_assert_false (enter (all, "127.0.0.1", 8, 1, &reason));
  g_assert_cmpint (reason, ==, REFUSED_CONNECTIONS);
  leave (all, "127.0.0.1");
  g_assert_true (enter (all, "192.0.2.1", 8, 1, &reason));
  connections_unref (all);
}

// ---- places ----

static gpointer
take_and_leave (gpointer taken)
{
  for (guint i = 0; i < 10000; i++) {
    if (!reader_limit_take ("/race", 3))
      continue;
    g_assert_cmpint (g_atomic_int_add ((gint *) taken, 1), <, 3);
    g_atomic_int_add ((gint *) taken, -1);
    reader_limit_leave ("/race");
  }
  return NULL;
}

static void
places_are_never_too_many (void)
{
  GThread *threads[6];
  gint taken = 0;

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new (NULL, take_and_leave, &taken);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_true (reader_limit_take ("/race", 1));
  g_assert_false (reader_limit_take ("/race", 1));
  g_assert_true (reader_limit_take ("/race", 0));
  g_assert_true (reader_limit_take ("/other", 1));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/limits/requests are checked as they arrive", requests_are_checked_as_they_arrive);
  g_test_add_func (
      "/limits/lines end with CR LF behind the check", lines_end_with_cr_lf_behind_the_check);
  g_test_add_func ("/limits/a space behind a name is malformed in HTTP",
      a_space_behind_a_name_is_malformed_in_http);
  g_test_add_func (
      "/limits/random bytes stay within the limits", random_bytes_stay_within_the_limits);
  g_test_add_func (
      "/limits/connections of an address are bounded", connections_of_an_address_are_bounded);
  g_test_add_func ("/limits/addresses of a network are one", addresses_of_a_network_are_one);
  g_test_add_func (
      "/limits/loopback has only the limit of all", loopback_has_only_the_limit_of_all);
  g_test_add_func ("/limits/places are never too many", places_are_never_too_many);
  return g_test_run ();
}
