// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/port.h"

static void
keep (GSocket *listening, gpointer data)
{
  GSocket **kept = data;

  if (!*kept)
    *kept = g_object_ref (listening);
}

// Returns a client that waits at a port.
static GSocket *
make_client (guint16 number)
{
  GSocketAddress *at = g_inet_socket_address_new_from_string ("127.0.0.1", number);
  GSocket *client =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);

  g_assert_true (g_socket_connect (client, at, NULL, NULL));
  g_object_unref (at);
  return client;
}

// Whoever still has the socket, as a handshake may, sees that it is closed.
static void
an_own_socket_is_closed (void)
{
  GSocket *kept = NULL, *client;
  Port *port = port_new ("127.0.0.1", 0, keep, NULL, &kept, NULL);

  g_assert_nonnull (port);
  client = make_client (port_get_number (port));
  while (!kept)
    g_main_context_iteration (NULL, TRUE);
  port_free (port);
  g_assert_true (g_socket_is_closed (kept));
  g_object_unref (kept);
  g_object_unref (client);
}

static void
a_socket_of_others_stays (void)
{
  GSocketAddress *at = g_inet_socket_address_new_from_string ("127.0.0.1", 0);
  GSocket *listening =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);

  g_assert_true (g_socket_bind (listening, at, TRUE, NULL) && g_socket_listen (listening, NULL));
  port_free (port_new_from_socket (listening, keep, NULL, NULL));
  g_assert_false (g_socket_is_closed (listening));
  g_object_unref (listening);
  g_object_unref (at);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/port/an-own-socket-is-closed", an_own_socket_is_closed);
  g_test_add_func ("/port/a-socket-of-others-stays", a_socket_of_others_stays);
  return g_test_run ();
}
