// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/address.h"

#include "access/throttle.h"

static const struct {
  const gchar *text, *key;
  gboolean is_loopback;
} addresses[] = {
  { "192.0.2.1", "192.0.2.1", FALSE },
  { "192.0.2.2", "192.0.2.2", FALSE },
  { "0.0.0.0", "0.0.0.0", FALSE },
  { "127.0.0.1", "127.0.0.1", TRUE },
  { "127.9.9.9", "127.9.9.9", TRUE },
  // IPv4 on an IPv6 socket, in all its forms
  { "::ffff:192.0.2.1", "192.0.2.1", FALSE },
  { "::FFFF:192.0.2.1", "192.0.2.1", FALSE },
  { "::ffff:c000:201", "192.0.2.1", FALSE },
  { "0:0:0:0:0:ffff:c000:0201", "192.0.2.1", FALSE },
  { "::ffff:127.0.0.1", "127.0.0.1", TRUE },
  // almost that form
  { "::fffe:192.0.2.1", "::/64", FALSE },
  { "::ffff:0:192.0.2.1", "::/64", FALSE },
  { "1::ffff:192.0.2.1", "1::/64", FALSE },
  { "::192.0.2.1", "::/64", FALSE },
  // networks
  { "2001:db8:1:2::1", "2001:db8:1:2::/64", FALSE },
  { "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64", FALSE },
  { "2001:0DB8:0001:0002:0:0:0:1", "2001:db8:1:2::/64", FALSE },
  { "2001:db8:1:3::1", "2001:db8:1:3::/64", FALSE },
  { "::1", "::/64", TRUE },
  { "::", "::/64", FALSE },
  // zones, of devices that are and are not there
  { "fe80::1", "fe80::/64", FALSE },
  { "fe80::1%lo", "fe80::/64", FALSE },
  { "fe80::2%no-such-device", "fe80::/64", FALSE },
  { "fe80::2%7", "fe80::/64", FALSE },
  { "fe80::2%", "fe80::/64", FALSE },
  { "::ffff:192.0.2.1%eth0", "192.0.2.1", FALSE },
};

static void
each_form_of_an_address_has_its_key (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (addresses); i++) {
    g_autoptr (GInetAddress) address = address_parse (addresses[i].text);
    g_autofree gchar *key = NULL, *of_text = address_dup_key_of_text (addresses[i].text);

    g_test_message ("%s", addresses[i].text);
    g_assert_nonnull (address);
    key = address_dup_key (address);
    g_assert_cmpstr (key, ==, addresses[i].key);
    g_assert_cmpstr (of_text, ==, addresses[i].key);
    g_assert_cmpint (address_is_loopback (address), ==, addresses[i].is_loopback);
  }
}

static void
an_address_of_a_socket_has_the_key_of_its_text (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (addresses); i++) {
    g_autoptr (GInetAddress) raw = g_inet_address_new_from_string (addresses[i].text);
    g_autofree gchar *key = raw ? address_dup_key (raw) : NULL;

    if (!raw) // a zone that is not there
      continue;
    g_assert_cmpstr (key, ==, addresses[i].key);
    g_assert_cmpint (address_is_loopback (raw), ==, addresses[i].is_loopback);
  }
}

static void
what_is_no_address_is_its_own_key (void)
{
  static const gchar *const texts[] = { "", "?", "cam", "192.0.2", "192.0.2.1:80", "[::1]", "%eth0",
    "::1::2", "192.0.2.1.", "::ffff:192.0.2.256" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autofree gchar *key = address_dup_key_of_text (texts[i]);

    g_assert_null (address_parse (texts[i]));
    g_assert_cmpstr (key, ==, texts[i]);
  }
}

// Sends wrong credentials, and returns the time that the next ones must wait.
static gint64
fail (Throttle *throttle, const gchar *text)
{
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (text);
  gint64 us = throttle_enter (throttle, address, 0);

  g_assert_cmpint (us, >=, 0);
  throttle_leave (throttle, address, TRUE, 0);
  return us;
}

static void
who_sends_wrong_passwords_is_slowed_down_on_all_sockets (void)
{
  Throttle *throttle = throttle_new ();

  for (guint i = 0; i < THROTTLE_FREE; i++)
    g_assert_cmpint (fail (throttle, "192.0.2.1"), ==, 0);
  g_assert_cmpint (fail (throttle, "::ffff:192.0.2.1"), >, 0);
  // Other IPv4 addresses notice nothing, on such a socket either.
  g_assert_cmpint (fail (throttle, "::ffff:192.0.2.2"), ==, 0);
  throttle_free (throttle);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/address/each form of an address has its key", each_form_of_an_address_has_its_key);
  g_test_add_func ("/address/an address of a socket has the key of its text",
      an_address_of_a_socket_has_the_key_of_its_text);
  g_test_add_func ("/address/what is no address is its own key", what_is_no_address_is_its_own_key);
  g_test_add_func ("/address/who sends wrong passwords is slowed down on all sockets",
      who_sends_wrong_passwords_is_slowed_down_on_all_sockets);
  return g_test_run ();
}
