// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/service.h"

#include "base/log.h"

#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <unistd.h>

// `socket` is "/PATH", or "@NAME" in the abstract namespace.
static GSocketAddress *
make_address (const gchar *socket)
{
  if (socket[0] == '@')
    return g_unix_socket_address_new_with_type (socket + 1, -1, G_UNIX_SOCKET_ADDRESS_ABSTRACT);
  return g_unix_socket_address_new (socket);
}

static void
notify (const gchar *text)
{
  const gchar *name = g_getenv ("NOTIFY_SOCKET");
  g_autoptr (GSocketAddress) address = NULL;
  GError *error = NULL;
  GSocket *socket;

  if (!name || !*name)
    return;
  socket = g_socket_new (
      G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_DEFAULT, &error);
  if (socket) {
    address = make_address (name);
    g_socket_send_to (socket, address, text, strlen (text), NULL, &error);
    g_object_unref (socket);
  }
  if (error) {
    log_event ("cannot notify the service manager at %s (NOTIFY_SOCKET): %s", name, error->message);
    g_error_free (error);
  }
}

void
service_tell_ready (void)
{
  notify ("READY=1");
}

void
service_tell_reloading (void)
{
  // The protocol requires a time of CLOCK_MONOTONIC, which g_get_monotonic_time() reads.
  gchar *text =
      g_strdup_printf ("RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT, g_get_monotonic_time ());

  notify (text);
  g_free (text);
}

void
service_tell_stopping (void)
{
  notify ("STOPPING=1");
}

static gboolean
on_watchdog (gpointer unused)
{
  notify ("WATCHDOG=1");
  return G_SOURCE_CONTINUE;
}

guint
service_add_watchdog (void)
{
  const gchar *time = g_getenv ("WATCHDOG_USEC");
  const gchar *pid = g_getenv ("WATCHDOG_PID");
  guint64 usec;

  if (!time || !g_ascii_string_to_unsigned (time, 10, 1, G_MAXUINT, &usec, NULL))
    return 0;
  if (pid && g_ascii_strtoll (pid, NULL, 10) != getpid ()) // meant for another process
    return 0;
  return g_timeout_add (MAX (usec / 2000, 1), on_watchdog, NULL);
}
