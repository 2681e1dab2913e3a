// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/tls_outlet.h"

#include "base/port.h"

struct _TlsOutlet {
  Entry *entry;
  TlsKeys *keys;
  TlsFront *front;
  gchar *address;
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
tls_outlet_new (Entry *entry, const TlsConfig *config, GError **error)
{
  TlsOutlet *self = g_new0 (TlsOutlet, 1);

  self->entry = entry;
  self->address = g_strdup (config->listen.address);
  self->keys = tls_keys_new (config->certificate, config->key, tls_pair_ref (config->pair));
  self->front = tls_front_new (self->keys, error);
  if (self->front)
    self->port = port_new (
        config->listen.address, config->listen.port, on_connection, entry_refuse, self, error);
  if (!self->port)
    g_clear_pointer (&self, tls_outlet_free);
  return self;
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
  g_clear_pointer (&self->front, tls_front_free);
  tls_keys_free (self->keys);
  g_free (self->address);
  g_free (self);
}

void
tls_outlet_reload (TlsOutlet *self)
{
  tls_keys_reload (self->keys);
}

TlsFront *
tls_outlet_get_front (TlsOutlet *self)
{
  return self->front;
}

void
tls_outlet_get_listen (TlsOutlet *self, ListenAddress *listen)
{
  *listen = (ListenAddress) { self->address, port_get_number (self->port) };
}
