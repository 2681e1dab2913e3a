// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the peer to whom a datagram belongs.

#include "outlets/webrtc/webrtc_refusals.h"
#include "webrtc/ice.h"

typedef struct _WebrtcPeer WebrtcPeer;

// What a peer does with its datagrams. The port's thread calls, without a lock.
typedef struct {
  WeirIceVerdict (*stun) (
      WebrtcPeer *peer, const WeirIceTuple *from, const WeirStun *stun, gint64 arrival);
  gboolean (*dtls) (
      WebrtcPeer *peer, const guint8 *datagram, gsize size); // FALSE: it took too many
  // FALSE: it has no keys yet, and keeps no more
  gboolean (*media) (
      WebrtcPeer *peer, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival);
  void (*disconnected) (WebrtcPeer *peer, guint32 connection); // of TCP
  void (*free) (WebrtcPeer *peer);                             // nobody has it any more; any thread
} WebrtcPeerOps;

// Embed it in the peer, first.
struct _WebrtcPeer {
  const WebrtcPeerOps *ops;
  gint refs; // atomic
};

WebrtcPeer *webrtc_peer_ref (WebrtcPeer *self);
void webrtc_peer_unref (WebrtcPeer *self);

typedef struct _WebrtcPeers WebrtcPeers;

// Makes the table. `refusals`, which must outlive it, counts what is nobody's. Call all functions
// from any thread, but for webrtc_peers_take().
WebrtcPeers *webrtc_peers_new (WebrtcRefusals *refusals);
void webrtc_peers_free (WebrtcPeers *self);

// Name a peer by its own part of the user name of STUN, and forget that.
void webrtc_peers_add (WebrtcPeers *self, const gchar *ufrag, WebrtcPeer *peer);
void webrtc_peers_remove (WebrtcPeers *self, const gchar *ufrag);

// Give a peer what comes by UDP from an address, and no longer. An address that another peer had is
// this one's now.
void webrtc_peers_add_address (WebrtcPeers *self, const WeirAddress *address, WebrtcPeer *peer);
void webrtc_peers_remove_address (
    WebrtcPeers *self, const WeirAddress *address, const WebrtcPeer *peer);

// Gives a datagram to its peer, who is known by the address if it came by UDP. `*by_tcp` is the
// peer of a TCP connection: NULL until it sends an authentic STUN request; then it is set, with a
// reference. `arrival` is when it arrived, at most now. Returns whether a peer took the datagram;
// if none did, that is counted. The port's thread calls.
gboolean webrtc_peers_take (WebrtcPeers *self, const WeirIceTuple *from, WebrtcPeer **by_tcp,
    guint8 *datagram, gsize size, gint64 arrival);
