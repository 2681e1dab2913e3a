// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_peers.h"

#include <string.h>

// The first byte of a datagram (RFC 7983), and of an RTCP packet the second (RFC 5761).
#define STUN_LAST 3
#define DTLS_FIRST 20
#define DTLS_LAST 63
#define RTP_FIRST 128
#define RTP_LAST 191
#define RTCP_FIRST 192
#define RTCP_LAST 223
#define RTCP_MIN 8
#define RTP_MIN 12

struct _WebrtcPeers {
  WebrtcRefusals *refusals;
  GMutex lock;           // guards all below; never held across a call of a peer
  GHashTable *ufrags;    // text -> WebrtcPeer
  GHashTable *addresses; // WeirAddress -> WebrtcPeer
};

WebrtcPeer *
webrtc_peer_ref (WebrtcPeer *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
webrtc_peer_unref (WebrtcPeer *self)
{
  if (g_atomic_int_dec_and_test (&self->refs))
    self->ops->free (self);
}

static guint
hash_address (gconstpointer address)
{
  const guint8 *bytes = address;
  guint hash = 2166136261u;

  // Normalised addresses have all their bytes at the beginning.
  for (gsize i = 0; i < sizeof (WeirAddress); i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static gboolean
is_same_address (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (WeirAddress)) == 0;
}

WebrtcPeers *
webrtc_peers_new (WebrtcRefusals *refusals)
{
  WebrtcPeers *self = g_new0 (WebrtcPeers, 1);
  GDestroyNotify unref = (GDestroyNotify) webrtc_peer_unref;

  self->refusals = refusals;
  g_mutex_init (&self->lock);
  self->ufrags = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, unref);
  self->addresses = g_hash_table_new_full (hash_address, is_same_address, g_free, unref);
  return self;
}

void
webrtc_peers_free (WebrtcPeers *self)
{
  g_hash_table_unref (self->ufrags);
  g_hash_table_unref (self->addresses);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
webrtc_peers_add (WebrtcPeers *self, const gchar *ufrag, WebrtcPeer *peer)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->ufrags, g_strdup (ufrag), webrtc_peer_ref (peer));
  g_mutex_unlock (&self->lock);
}

// The caller of the two functions below has a reference, so no peer is freed with the lock held.

void
webrtc_peers_remove (WebrtcPeers *self, const gchar *ufrag)
{
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->ufrags, ufrag);
  g_mutex_unlock (&self->lock);
}

void
webrtc_peers_remove_address (WebrtcPeers *self, const WeirAddress *address, const WebrtcPeer *peer)
{
  g_mutex_lock (&self->lock);
  if (g_hash_table_lookup (self->addresses, address) == peer)
    g_hash_table_remove (self->addresses, address);
  g_mutex_unlock (&self->lock);
}

void
webrtc_peers_add_address (WebrtcPeers *self, const WeirAddress *address, WebrtcPeer *peer)
{
  WebrtcPeer *before;

  g_mutex_lock (&self->lock);
  before = g_hash_table_lookup (self->addresses, address);
  if (before != peer) {
    if (before)
      webrtc_peer_ref (before);
    g_hash_table_insert (
        self->addresses, g_memdup2 (address, sizeof *address), webrtc_peer_ref (peer));
  }
  g_mutex_unlock (&self->lock);
  if (before && before != peer)
    webrtc_peer_unref (before);
}

// ---- datagrams ----

static WebrtcPeer *
find_by_address (WebrtcPeers *self, const WeirAddress *address)
{
  WebrtcPeer *peer;

  g_mutex_lock (&self->lock);
  peer = g_hash_table_lookup (self->addresses, address);
  if (peer)
    webrtc_peer_ref (peer);
  g_mutex_unlock (&self->lock);
  return peer;
}

static WebrtcPeer *
find_by_ufrag (WebrtcPeers *self, const gchar *ufrag)
{
  WebrtcPeer *peer;

  g_mutex_lock (&self->lock);
  peer = g_hash_table_lookup (self->ufrags, ufrag);
  if (peer)
    webrtc_peer_ref (peer);
  g_mutex_unlock (&self->lock);
  return peer;
}

static gboolean
refuse (WebrtcPeers *self, WebrtcRefusal reason, const WeirIceTuple *from)
{
  webrtc_refusals_count (self->refusals, reason, &from->address);
  return FALSE;
}

// Messages other than requests ask for nothing: RFC 8445 has agents keep paths open by indications.
static gboolean
take_stun (WebrtcPeers *self, const WeirIceTuple *from, WebrtcPeer **by_tcp, const guint8 *data,
    gsize size, gint64 arrival)
{
  static const gint refusal_of[WEIR_ICE_VERDICTS] = { -1, -1, WEBRTC_REFUSED_FOREIGN,
    WEBRTC_REFUSED_FORGED };
  gchar ufrag[WEIR_ICE_OWN_UFRAG + 1];
  WebrtcPeer *peer = NULL;
  WeirIceVerdict verdict = WEIR_ICE_FOREIGN;
  WeirStun stun;

  if (weir_stun_read (data, size, &stun) < 0)
    return refuse (self, WEBRTC_REFUSED_MALFORMED, from);
  if (stun.type != WEIR_STUN_REQUEST)
    return FALSE;
  if (weir_ice_find_ufrag (&stun, ufrag))
    peer = find_by_ufrag (self, ufrag);
  if (peer && *by_tcp && *by_tcp != peer) // a connection is of one session
    g_clear_pointer (&peer, webrtc_peer_unref);
  if (peer)
    verdict = peer->ops->stun (peer, from, &stun, arrival);
  if (verdict == WEIR_ICE_ANSWERED && from->connection && !*by_tcp)
    *by_tcp = webrtc_peer_ref (peer);
  if (peer)
    webrtc_peer_unref (peer);
  if (refusal_of[verdict] >= 0)
    return refuse (self, (WebrtcRefusal) refusal_of[verdict], from);
  return verdict == WEIR_ICE_ANSWERED;
}

static gboolean
take_other (WebrtcPeers *self, WebrtcPeer *peer, const WeirIceTuple *from, guint8 *datagram,
    gsize size, gint64 arrival)
{
  if (datagram[0] >= DTLS_FIRST && datagram[0] <= DTLS_LAST)
    return peer->ops->dtls (peer, datagram, size) || refuse (self, WEBRTC_REFUSED_EXCESS, from);
  return peer->ops->media (
             peer, datagram, size, datagram[1] >= RTCP_FIRST && datagram[1] <= RTCP_LAST, arrival)
         || refuse (self, WEBRTC_REFUSED_EARLY, from);
}

static gboolean
has_form (const guint8 *datagram, gsize size)
{
  if (size < 2)
    return FALSE;
  if (datagram[0] >= DTLS_FIRST && datagram[0] <= DTLS_LAST)
    return TRUE;
  return datagram[0] >= RTP_FIRST && datagram[0] <= RTP_LAST
         && size >= (datagram[1] >= RTCP_FIRST && datagram[1] <= RTCP_LAST ? RTCP_MIN : RTP_MIN);
}

gboolean
webrtc_peers_take (WebrtcPeers *self, const WeirIceTuple *from, WebrtcPeer **by_tcp,
    guint8 *datagram, gsize size, gint64 arrival)
{
  WebrtcPeer *peer;
  gboolean taken;

  if (size > 0 && datagram[0] <= STUN_LAST)
    return take_stun (self, from, by_tcp, datagram, size, arrival);
  if (!has_form (datagram, size))
    return refuse (self, WEBRTC_REFUSED_MALFORMED, from);
  if (from->connection)
    peer = *by_tcp ? webrtc_peer_ref (*by_tcp) : NULL;
  else
    peer = find_by_address (self, &from->address);
  if (!peer)
    return refuse (self, WEBRTC_REFUSED_STRANGER, from);
  taken = take_other (self, peer, from, datagram, size, arrival);
  webrtc_peer_unref (peer);
  return taken;
}
