// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/tls_outlet.h"

#include "base/port.h"

struct _TlsOutlet {
  Entry *entry;
  TlsFront *front;
  Port *port; // NULL after tls_outlet_stop()
};

static void
on_client (GSocket *client, gpointer data)
{
  TlsOutlet *self = data;

  entry_take (self->entry, client, G_INET_SOCKET_ADDRESS (tls_front_get_peer (client)));
}

static void
on_connection (GSocket *listening, gpointer data)
{
  TlsOutlet *self = data;

  tls_front_accept (self->front, listening, on_client, self);
}

TlsOutlet *
tls_outlet_new (Entry *entry, TlsFront *front, const ListenAddress *listen, GError **error)
{
  TlsOutlet *self = g_new0 (TlsOutlet, 1);

  self->entry = entry;
  self->front = front;
  self->port = port_new (listen->address, listen->port, on_connection, entry_refuse, self, error);
  if (!self->port)
    g_clear_pointer (&self, tls_outlet_free);
  return self;
}

guint16
tls_outlet_get_port (TlsOutlet *self)
{
  return port_get_number (self->port);
}

void
tls_outlet_stop (TlsOutlet *self)
{
  g_clear_pointer (&self->port, port_free);
}

void
tls_outlet_free (TlsOutlet *self)
{
  tls_outlet_stop (self);
  g_free (self);
}
