// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The parts of access that depend on time: how addresses are slowed down, and how nonces age.
#include "access/digest.h"
#include "access/throttle.h"

#include <libsoup/soup.h>

#define SECOND G_USEC_PER_SEC

static GInetAddress *
address (const gchar *text)
{
  return g_inet_address_new_from_string (text);
}

static void
fail (Throttle *throttle, GInetAddress *from, guint times, gint64 now)
{
  for (guint i = 0; i < times; i++) {
    g_assert_cmpint (throttle_enter (throttle, from, now), >=, 0);
    throttle_leave (throttle, from, TRUE, now);
  }
}

static void
pauses_grow_and_end (void)
{
  Throttle *throttle = throttle_new ();
  GInetAddress *bad = address ("192.0.2.1"), *good = address ("192.0.2.2");
  gint64 now = SECOND, wait = 0, last = 0;

  fail (throttle, bad, THROTTLE_FREE, now);
  for (guint i = 0; i < 8; i++) {
    wait = throttle_enter (throttle, bad, now);
    g_assert_cmpint (wait, >=, last);
    g_assert_cmpint (wait, <=, THROTTLE_PAUSE_MAX_MS * 1000);
    g_assert_cmpint (throttle_enter (throttle, good, now), ==, 0);
    throttle_leave (throttle, good, FALSE, now);
    now += wait;
    throttle_leave (throttle, bad, TRUE, now);
    last = wait;
  }
  g_assert_cmpint (wait, ==, THROTTLE_PAUSE_MAX_MS * 1000);
  now += (THROTTLE_FORGET_S + 1) * SECOND;
  g_assert_cmpint (throttle_enter (throttle, bad, now), ==, 0);
  throttle_leave (throttle, bad, FALSE, now);
  g_assert_cmpuint (throttle_count (throttle), ==, 0);
  throttle_free (throttle);
  g_object_unref (bad);
  g_object_unref (good);
}

static void
parallel_requests_wait_one_after_the_other (void)
{
  Throttle *throttle = throttle_new ();
  GInetAddress *bad = address ("192.0.2.1");
  gint64 now = SECOND, last = 0, wait;

  fail (throttle, bad, THROTTLE_FREE + 8, now);
  for (guint i = 0; i < THROTTLE_WAITING_MAX; i++) {
    wait = throttle_enter (throttle, bad, now);
    g_assert_cmpint (wait, >=, last + (i > 0 ? THROTTLE_PAUSE_MAX_MS * 1000 : 0));
    last = wait;
  }
  g_assert_cmpint (throttle_enter (throttle, bad, now), ==, -1);
  throttle_free (throttle);
  g_object_unref (bad);
}

static void
the_first_requests_in_parallel_are_bounded (void)
{
  Throttle *throttle = throttle_new ();
  GInetAddress *bad = address ("192.0.2.1");

  for (guint i = 0; i < THROTTLE_CHECKED_MAX; i++)
    g_assert_cmpint (throttle_enter (throttle, bad, SECOND), ==, 0);
  g_assert_cmpint (throttle_enter (throttle, bad, SECOND), ==, -1);
  throttle_free (throttle);
  g_object_unref (bad);
}

static void
a_network_of_ipv6_is_one_address (void)
{
  Throttle *throttle = throttle_new ();
  GInetAddress *one = address ("2001:db8::1"), *same = address ("2001:db8::ffff:2"),
               *other = address ("2001:db8:0:1::1");

  fail (throttle, one, THROTTLE_FREE, SECOND);
  g_assert_cmpint (throttle_enter (throttle, same, SECOND), >, 0);
  g_assert_cmpint (throttle_enter (throttle, other, SECOND), ==, 0);
  throttle_free (throttle);
  g_object_unref (one);
  g_object_unref (same);
  g_object_unref (other);
}

static void
the_table_of_addresses_is_bounded (void)
{
  Throttle *throttle = throttle_new ();
  GInetAddress *first = address ("192.0.2.1");

  fail (throttle, first, THROTTLE_FREE, SECOND);
  for (guint i = 0; i < THROTTLE_ADDRESSES_MAX + 100; i++) {
    guint8 bytes[] = { 10, (guint8) (i >> 16), (guint8) (i >> 8), (guint8) i };
    GInetAddress *each = g_inet_address_new_from_bytes (bytes, G_SOCKET_FAMILY_IPV4);

    fail (throttle, each, 1, (2 + i) * SECOND / 1000);
    g_object_unref (each);
  }
  g_assert_cmpuint (throttle_count (throttle), ==, THROTTLE_ADDRESSES_MAX);
  throttle_free (throttle);
  g_object_unref (first);
}

// ---- digest ----

#define SECRET "22b6d57999eb1a98a579e99ce443566f" // MD5 of viewer:rtsp-proxy:pw

static gchar *
md5 (const gchar *text)
{
  return g_compute_checksum_for_string (G_CHECKSUM_MD5, text, -1);
}

// Answers the nonce with the right password, and checks the answer.
static DigestResult
answer (Nonce *nonce, const gchar *text, const gchar *nc, gint64 now)
{
  const AccessRequest request = { .path = "/cam", .mount = "/cam", .method = "DESCRIBE" };
  const User user = { .name = (gchar *) "viewer", .md5_digest = (gchar *) SECRET };
  gchar *a2 = md5 ("DESCRIBE:rtsp://h/cam"), *middle, *response, *header;
  GHashTable *parameters;
  DigestResult result;

  middle = nc ? g_strdup_printf (SECRET ":%s:%s:c:auth:%s", text, nc, a2)
              : g_strdup_printf (SECRET ":%s:%s", text, a2);
  response = md5 (middle);
  header = g_strdup_printf ("username=\"viewer\", realm=\"rtsp-proxy\", nonce=\"%s\", "
                            "uri=\"rtsp://h/cam\", response=\"%s\"%s%s",
      text, response, nc ? ", qop=auth, cnonce=\"c\", nc=" : "", nc ? nc : "");
  parameters = soup_header_parse_param_list_strict (header);
  result = digest_check (parameters, &user, &request, nonce, now);
  soup_header_free_param_list (parameters);
  g_free (header);
  g_free (response);
  g_free (middle);
  g_free (a2);
  return result;
}

static void
a_nonce_ages (void)
{
  Nonce nonce = { 0 };
  gchar *first, *line;

  g_free (digest_dup_challenge (&nonce, TRUE, FALSE, SECOND));
  first = g_strdup (nonce.text);
  g_assert_cmpint (answer (&nonce, first, NULL, 2 * SECOND), ==, DIGEST_RIGHT);
  g_assert_cmpint (answer (&nonce, first, NULL, (NONCE_LIFE_S + 1) * SECOND), ==, DIGEST_STALE);
  line = digest_dup_challenge (&nonce, TRUE, TRUE, (NONCE_LIFE_S + 1) * SECOND);
  g_assert_nonnull (strstr (line, "stale=true"));
  g_assert_cmpstr (nonce.text, !=, first);
  g_assert_cmpint (answer (&nonce, first, NULL, (NONCE_LIFE_S + 2) * SECOND), ==, DIGEST_STALE);
  g_assert_cmpint (
      answer (&nonce, nonce.text, NULL, (NONCE_LIFE_S + 2) * SECOND), ==, DIGEST_RIGHT);
  nonce_clear (&nonce);
  g_free (first);
  g_free (line);
}

static void
a_request_counter_must_grow (void)
{
  Nonce nonce = { 0 };

  g_free (digest_dup_challenge (&nonce, TRUE, FALSE, SECOND));
  g_assert_cmpint (answer (&nonce, nonce.text, "00000001", SECOND), ==, DIGEST_RIGHT);
  g_assert_cmpint (answer (&nonce, nonce.text, "00000001", SECOND), ==, DIGEST_STALE);
  g_assert_cmpint (answer (&nonce, nonce.text, "0000000a", SECOND), ==, DIGEST_RIGHT);
  g_assert_cmpint (answer (&nonce, nonce.text, "00000009", SECOND), ==, DIGEST_STALE);
  g_assert_cmpint (answer (&nonce, nonce.text, "00000000", SECOND), ==, DIGEST_WRONG);
  g_assert_cmpint (answer (&nonce, nonce.text, "1ffffffff", SECOND), ==, DIGEST_WRONG);
  nonce_clear (&nonce);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/access/pauses-grow-and-end", pauses_grow_and_end);
  g_test_add_func ("/access/parallel-requests-wait-one-after-the-other",
      parallel_requests_wait_one_after_the_other);
  g_test_add_func ("/access/the-first-requests-in-parallel-are-bounded",
      the_first_requests_in_parallel_are_bounded);
  g_test_add_func ("/access/a-network-of-ipv6-is-one-address", a_network_of_ipv6_is_one_address);
  g_test_add_func ("/access/the-table-of-addresses-is-bounded", the_table_of_addresses_is_bounded);
  g_test_add_func ("/access/a-nonce-ages", a_nonce_ages);
  g_test_add_func ("/access/a-request-counter-must-grow", a_request_counter_must_grow);
  return g_test_run ();
}
