// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/peer.h"

#include <gio/gio.h>

gchar *
peer_dup_name (GstRTSPClient *client)
{
  GstRTSPConnection *connection = gst_rtsp_client_get_connection (client);
  GSocket *socket = connection ? gst_rtsp_connection_get_read_socket (connection) : NULL;
  GSocketAddress *address = socket ? g_socket_get_remote_address (socket, NULL) : NULL;
  gchar *name = NULL;

  if (address && G_IS_INET_SOCKET_ADDRESS (address))
    name = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address));
  g_clear_object (&address);
  return name ? name : g_strdup ("?");
}
