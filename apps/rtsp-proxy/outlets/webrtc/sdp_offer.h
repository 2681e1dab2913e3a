// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the SDP offer of a WebRTC client (RFC 9429). Call from any thread.

#include <glib.h>

#include "outlets/webrtc/sdp_layers.h"
#include "tls/tls_fingerprint.h"

#define SDP_OFFER_BYTES_MAX 65536
#define SDP_OFFER_MEDIA_MAX 32    // m-lines
#define SDP_OFFER_FORMATS_MAX 128 // of an m-line
// Header extensions that are read.
#define SDP_OFFER_MID "urn:ietf:params:rtp-hdrext:sdes:mid"
#define SDP_OFFER_RID "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
#define SDP_OFFER_REPAIRED_RID "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
#define SDP_OFFER_TRANSPORT_CC                                                                     \
  "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
#define SDP_OFFER_PLAYOUT_DELAY "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"

// A payload type of an m-line.
typedef struct {
  guint type;      // 0 to 127
  gchar *name;     // as it is written, such as "opus"; "" if the offer does not say it
  gchar *encoding; // the same in capitals
  guint clock_rate, channels;
  gchar *fmtp; // NULL: none
  gint rtx;    // the payload type of its retransmissions (RFC 4588), or -1
  // Feedback that the client sends or takes (RFC 4585, RFC 5104).
  gboolean nack, pli, fir, transport_cc, remb;
} OfferFormat;

typedef struct {
  gchar *media, *proto; // such as "video", "UDP/TLS/RTP/SAVPF"
  gchar *format;        // the first one, as it is written
  gchar *mid;           // NULL: none
  gboolean is_video, is_audio;
  // RTP over the transport of the offer: neither another protocol, nor refused, nor beside BUNDLE.
  gboolean is_usable;
  gboolean receives, sends; // what the client wants to do
  gboolean rsize;           // it takes RTCP packets of reduced size (RFC 5506)
  // Ids of header extensions, 1 to 14; 0: not offered.
  guint playout_delay, mid_id, transport_id, rid_id, repaired_rid_id;
  GArray *formats;  // of OfferFormat, without those of retransmissions
  SdpLayers layers; // none if the line has no header extension that tells them apart
} OfferMedia;

typedef struct {
  GPtrArray *media; // of OfferMedia, in the order of the m-lines
  // Of the one transport.
  gchar *ufrag;
  guint8 fingerprint[TLS_FINGERPRINT_BYTES]; // SHA-256 of the client's certificate
  gboolean is_passive;                       // the client is the DTLS server
} SdpOffer;

// Returns the offer in the first `size` bytes of `text`. Returns NULL and sets `error` to what is
// wrong, and in which line. The caller frees the result with sdp_offer_free().
SdpOffer *sdp_offer_new (const gchar *text, gsize size, GError **error);
void sdp_offer_free (SdpOffer *self);

// Reads the user name of ICE in a part of the client's description (RFC 8840), such as a trickled
// candidate. Sets it to NULL if there is none (transfer full). Returns FALSE and sets `error` if
// the texts of ICE are wrong: G_IO_ERROR_NOT_SUPPORTED if the part is of an m-line that the offer
// does not have, or has nothing of ICE.
gboolean sdp_offer_read_fragment (
    const SdpOffer *self, const gchar *text, gsize size, gchar **ufrag, GError **error);

// Returns the value of a parameter of a fmtp text (transfer full), or NULL; `fmtp` may be NULL.
gchar *sdp_offer_dup_parameter (const gchar *fmtp, const gchar *name);
