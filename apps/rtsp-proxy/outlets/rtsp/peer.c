// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/peer.h"

#include <gio/gio.h>

// Returns NULL if the client has no connection. (transfer full)
static GInetSocketAddress *
get_address (GstRTSPClient *client)
{
  GstRTSPConnection *connection = gst_rtsp_client_get_connection (client);
  GSocket *socket = connection ? gst_rtsp_connection_get_read_socket (connection) : NULL;
  GSocketAddress *address = socket ? g_socket_get_remote_address (socket, NULL) : NULL;

  if (address && G_IS_INET_SOCKET_ADDRESS (address))
    return G_INET_SOCKET_ADDRESS (address);
  g_clear_object (&address);
  return NULL;
}

gchar *
peer_dup_name (GstRTSPClient *client)
{
  GInetSocketAddress *address = get_address (client);
  gchar *name =
      address ? g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address)) : g_strdup ("?");

  g_clear_object (&address);
  return name;
}

gchar *
peer_dup_address (GstRTSPClient *client)
{
  GInetSocketAddress *address = get_address (client);
  gchar *text =
      address ? g_inet_address_to_string (g_inet_socket_address_get_address (address)) : NULL;

  g_clear_object (&address);
  return text;
}
