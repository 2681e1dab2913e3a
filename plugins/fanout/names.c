// SPDX-License-Identifier: LGPL-2.1-or-later
// Hosts, ports and tokens by which readers are added.
#include "fanoutsink_private.h"

#include "gioaddress.h"
#include "srtp.h"
#include <string.h>

void
fanout_name_free (Name *name)
{
  if (!name)
    return;
  if (name->connection)
    g_signal_emit_by_name (name->connection, "close", "removed from the sink");
  g_clear_object (&name->connection);
  g_clear_object (&name->inet);
  g_clear_pointer (&name->reader, weir_reader_unref);
  g_clear_object (&name->guest_of);
  g_free (name->key);
  g_free (name->host);
  g_free (name->destination);
  g_free (name->shown);
  g_free (name);
}

gchar *
fanout_name_strip_brackets (const gchar *host)
{
  gsize len = strlen (host);

  return len > 2 && host[0] == '[' && host[len - 1] == ']' ? g_strndup (host + 1, len - 2)
                                                           : g_strdup (host);
}

gchar *
fanout_name_make_key (const gchar *host, gint port)
{
  gchar *plain = fanout_name_strip_brackets (host);
  gchar *key = g_strdup_printf ("%s %d", plain, port);

  g_free (plain);
  return key;
}

gboolean
fanout_name_parse (const gchar *text, gchar **host, gint *port)
{
  const gchar *colon = strrchr (text, ':');
  gboolean in_brackets = colon && text[0] == '[' && colon[-1] == ']';
  guint64 number;

  if (!colon || colon == text || (!in_brackets && strchr (text, ':') != colon)
      || !g_ascii_string_to_unsigned (colon + 1, 10, 1, 65535, &number, NULL))
    return FALSE;
  *host = g_strndup (text, (gsize) (colon - text));
  *port = (gint) number;
  return TRUE;
}

WeirFanout *
fanout_name_get_fanout (const WeirFanoutSink *self, const Name *name)
{
  return name->guest_of ? name->guest_of->fanout : self->fanout;
}

static Name *
name_alloc (const gchar *host, gint port)
{
  Name *name = g_new0 (Name, 1);

  name->key = fanout_name_make_key (host, port);
  name->host = fanout_name_strip_brackets (host);
  name->destination = g_strdup (name->host);
  name->port = port;
  name->link.data = name;
  return name;
}

Name *
fanout_name_new_conn (const gchar *token, gint channel, WeirFraming framing, GError **error)
{
  WeirConn *conn = weir_connection_lookup (token);
  Name *name;

  if (!conn || channel < 0 || channel > 255) {
    g_set_error_literal (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        conn ? "channel must be from 0 to 255" : "no open connection has this token");
    g_clear_pointer (&conn, weir_conn_unref);
    return NULL;
  }
  name = name_alloc (token, channel);
  name->shown = weir_connection_dup_peer (token);
  if (!name->shown) // the connection has just closed
    name->shown = g_strdup ("of a closed connection");
  name->reader = weir_reader_new_conn (conn, framing, (guint8) channel);
  weir_conn_unref (conn);
  return name;
}

static Name *
name_new_udp (const gchar *host, gint port, GCancellable *cancellable, GError **error)
{
  Name *name = NULL;
  GSocketAddress *address;
  GInetAddress *inet;

  if (port < 1 || port > 65535) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "port must be from 1 to 65535");
    return NULL;
  }
  name = name_alloc (host, port);
  name->shown = g_strdup_printf ("%s port %d", name->host, port);
  // Unlike g_inet_address_new_from_string(), this parses the scope of an IPv6 address.
  address = g_inet_socket_address_new_from_string (name->host, (guint) port);
  if (!address && (inet = weir_udp_resolve (name->host, cancellable, error))) {
    address = g_inet_socket_address_new (inet, (guint16) port);
    g_object_unref (inet);
  }
  if (!address) {
    fanout_name_free (name);
    return NULL;
  }
  name->reader = weir_reader_new_udp ();
  name->inet = g_object_ref (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)));
  if (!weir_address_from_gio (address, &name->address)) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "not an IPv4 or IPv6 address");
    g_clear_pointer (&name, fanout_name_free);
  }
  g_object_unref (address);
  return name;
}

static Name *
name_new_plain (
    const gchar *host, gint port, WeirFraming framing, GCancellable *cancellable, GError **error)
{
  return weir_connection_is_token (host) ? fanout_name_new_conn (host, port, framing, error)
                                         : name_new_udp (host, port, cancellable, error);
}

// Without its WeirSrtp a reader is refused, so it never gets packets in the clear.
static Name *
name_new_srtp (const gchar *token, gint port, GCancellable *cancellable, GError **error)
{
  WeirProtect protect;
  WeirFraming framing;
  gchar *destination = weir_srtp_lookup (token, &protect, &framing);
  Name *name;

  if (!destination) {
    g_set_error_literal (
        error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "no WeirSrtp has this token");
    return NULL;
  }
  name = name_new_plain (destination, port, framing, cancellable, error);
  g_free (destination);
  if (!name) {
    protect.release (protect.data);
    return NULL;
  }
  g_free (name->host);
  g_free (name->key);
  name->host = g_strdup (token);
  name->key = fanout_name_make_key (token, port);
  weir_reader_set_protect (name->reader, &protect);
  return name;
}

Name *
fanout_name_new (const gchar *host, gint port, GCancellable *cancellable, GError **error)
{
  return weir_srtp_is_token (host)
             ? name_new_srtp (host, port, cancellable, error)
             : name_new_plain (host, port, WEIR_FRAMING_INTERLEAVED, cancellable, error);
}
