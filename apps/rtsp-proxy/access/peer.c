// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/peer.h"

#include "base/address.h"

struct _AccessPeer {
  gint refs;
  GInetAddress *inet;
  gchar *address, *protocol, *id;
  gboolean is_forwarded;
  GMutex lock; // protects the fields below
  Nonce nonce;
  gchar *user; // whose credentials were right last; NULL: nobody's
};

AccessPeer *
access_peer_new (const gchar *address, const gchar *protocol)
{
  AccessPeer *self = g_new0 (AccessPeer, 1);

  self->refs = 1;
  self->inet = address_parse (address);
  if (!self->inet)
    self->inet = g_inet_address_new_any (G_SOCKET_FAMILY_IPV4);
  self->address = g_inet_address_to_string (self->inet);
  self->protocol = g_strdup (protocol);
  self->id = g_uuid_string_random ();
  g_mutex_init (&self->lock);
  return self;
}

AccessPeer *
access_peer_new_forwarded (const gchar *address, const gchar *protocol)
{
  AccessPeer *self = access_peer_new (address, protocol);

  self->is_forwarded = TRUE;
  return self;
}

AccessPeer *
access_peer_ref (AccessPeer *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
access_peer_unref (AccessPeer *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_object_unref (self->inet);
  g_free (self->address);
  g_free (self->protocol);
  g_free (self->id);
  nonce_clear (&self->nonce);
  g_free (self->user);
  g_mutex_clear (&self->lock);
  g_free (self);
}

const gchar *
access_peer_get_address (AccessPeer *self)
{
  return self->address;
}

const gchar *
access_peer_get_protocol (AccessPeer *self)
{
  return self->protocol;
}

const gchar *
access_peer_get_id (AccessPeer *self)
{
  return self->id;
}

GInetAddress *
access_peer_get_inet (AccessPeer *self)
{
  return self->inet;
}

gboolean
access_peer_is_forwarded (AccessPeer *self)
{
  return self->is_forwarded;
}

gboolean
access_peer_is_loopback (AccessPeer *self)
{
  return g_inet_address_get_is_loopback (self->inet);
}

gboolean
access_peer_has_tls (AccessPeer *self)
{
  return g_str_has_suffix (self->protocol, "s");
}

DigestResult
access_peer_check_digest (
    AccessPeer *self, GHashTable *parameters, const User *user, const AccessRequest *request)
{
  DigestResult result;

  g_mutex_lock (&self->lock);
  result = digest_check (parameters, user, request, &self->nonce, g_get_monotonic_time ());
  g_mutex_unlock (&self->lock);
  return result;
}

gchar *
access_peer_dup_challenge (AccessPeer *self, gboolean md5, gboolean stale)
{
  gchar *line;

  g_mutex_lock (&self->lock);
  line = digest_dup_challenge (&self->nonce, md5, stale, g_get_monotonic_time ());
  g_mutex_unlock (&self->lock);
  return line;
}

void
access_peer_set_user (AccessPeer *self, const gchar *user)
{
  g_mutex_lock (&self->lock);
  g_free (self->user);
  self->user = g_strdup (user);
  g_mutex_unlock (&self->lock);
}

gboolean
access_peer_had_user (AccessPeer *self, const gchar *user)
{
  gboolean had;

  g_mutex_lock (&self->lock);
  had = self->user && !g_strcmp0 (self->user, user);
  g_mutex_unlock (&self->lock);
  return had;
}
