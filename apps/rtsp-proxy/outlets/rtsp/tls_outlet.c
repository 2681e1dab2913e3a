// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/tls_outlet.h"

#include "tls/tls_port.h"

struct _TlsOutlet {
  Entry *entry;
  TlsKeys *keys;
  TlsFront *front;
  gchar *address;
  TlsPort *port; // NULL after tls_outlet_stop()
};

static void
on_client (GSocket *client, gpointer data)
{
  TlsOutlet *self = data;

  entry_take (self->entry, client, G_INET_SOCKET_ADDRESS (tls_front_get_peer (client)));
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
    self->port = tls_port_new (
        self->front, config->listen.address, config->listen.port, on_client, self, error);
  if (!self->port)
    g_clear_pointer (&self, tls_outlet_free);
  return self;
}

void
tls_outlet_stop (TlsOutlet *self)
{
  g_clear_pointer (&self->port, tls_port_free);
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
  *listen = (ListenAddress) { self->address, tls_port_get_number (self->port) };
}
