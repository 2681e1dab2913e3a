// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_hook.h"

#include <gio/gio.h>
#include <string.h>

#define LIMIT_MS 20000 // less than an idle connection is kept

static gboolean
set_flag (gpointer flag)
{
  *(gboolean *) flag = TRUE;
  return G_SOURCE_REMOVE;
}

// Runs the main loop until the socket has something to read. Returns what that is.
static gssize
receive (GSocket *socket, gchar *bytes, gsize size)
{
  gboolean over = FALSE;
  guint limit = g_timeout_add (LIMIT_MS, set_flag, &over);

  while (!over && !(g_socket_condition_check (socket, G_IO_IN) & G_IO_IN)) {
    g_main_context_iteration (NULL, FALSE);
    g_socket_condition_timed_wait (socket, G_IO_IN, 10000, NULL, NULL);
  }
  g_assert_false (over);
  g_source_remove (limit);
  return g_socket_receive (socket, bytes, size, NULL, NULL);
}

static GSocket *
listen_at (gchar **url)
{
  GSocket *listener =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
  GSocketAddress *any = g_inet_socket_address_new_from_string ("127.0.0.1", 0), *own;

  g_assert_true (g_socket_bind (listener, any, FALSE, NULL) && g_socket_listen (listener, NULL));
  own = g_socket_get_local_address (listener, NULL);
  *url = g_strdup_printf (
      "http://127.0.0.1:%u/", g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (own)));
  g_object_unref (own);
  g_object_unref (any);
  return listener;
}

static void
a_hook_that_is_not_needed_any_more_closes_its_connection (void)
{
  static const gchar answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const RecordingFacts facts = { .start_us = 1800000000000000, .init.timescales = { 1 } };
  gchar *url, bytes[4096];
  GSocket *listener = listen_at (&url), *client;
  RecordingHook *hook = recording_hook_new ("/cam", url);

  recording_hook_add (hook, "/tmp/a.mp4", &facts);
  receive (listener, bytes, 0);
  client = g_socket_accept (listener, NULL, NULL);
  g_assert_cmpint (receive (client, bytes, sizeof bytes), >, 0);
  g_assert_true (g_str_has_prefix (bytes, "POST / HTTP/1.1"));
  g_assert_cmpint (g_socket_send (client, answer, strlen (answer), NULL, NULL), >, 0);
  while (recording_hook_is_busy (hook))
    g_main_context_iteration (NULL, TRUE);
  recording_hook_unref (hook);
  while (receive (client, bytes, sizeof bytes) > 0) // the rest of the request
    ;
  g_object_unref (client);
  g_object_unref (listener);
  g_free (url);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/recording-hook/connection", a_hook_that_is_not_needed_any_more_closes_its_connection);
  return g_test_run ();
}
