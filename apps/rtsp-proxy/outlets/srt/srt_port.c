// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_port.h"

#include <errno.h>
#include <gio/gio.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "outlets/srt/srt_guard.h"

// A datagram that comes before the filter would reach libsrt, so the filter comes first.
static gint
open_socket (GSocketAddress *own, struct sockaddr_storage *native)
{
  gint fd = socket (g_socket_address_get_family (own), SOCK_DGRAM | SOCK_CLOEXEC, 0);

  if (fd < 0)
    return -1;
  if (!srt_guard_attach (fd, SRT_GUARD_UDP))
    log_event ("SRT: this system does not filter datagrams, so libsrt gets malformed ones: %s",
        g_strerror (errno));
  g_socket_address_to_native (own, native, sizeof *native, NULL);
  if (bind (fd, (struct sockaddr *) native, (socklen_t) g_socket_address_get_native_size (own))
      == 0)
    return fd;
  close (fd);
  return -1;
}

static void
read_port (gint fd, ListenAddress *listen)
{
  struct sockaddr_storage native;
  socklen_t len = sizeof native;
  g_autoptr (GSocketAddress) own = NULL;

  if (getsockname (fd, (struct sockaddr *) &native, &len) < 0)
    return;
  own = g_socket_address_new_from_native (&native, len);
  if (G_IS_INET_SOCKET_ADDRESS (own))
    listen->port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (own));
}

gint
srt_port_open (ListenAddress *listen, GError **error)
{
  g_autoptr (GSocketAddress) own =
      g_inet_socket_address_new_from_string (listen->address, listen->port);
  struct sockaddr_storage native;
  gint fd = open_socket (own, &native);

  if (fd < 0)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno),
        "SRT: cannot listen on %s port %u: %s", listen->address, listen->port, g_strerror (errno));
  else
    read_port (fd, listen);
  return fd;
}

guint32
srt_port_count_dropped (gint port)
{
  guint32 info[SK_MEMINFO_VARS] = { 0 };
  socklen_t len = sizeof info;

  return getsockopt (port, SOL_SOCKET, SO_MEMINFO, info, &len) < 0 ? 0 : info[SK_MEMINFO_DROPS];
}
