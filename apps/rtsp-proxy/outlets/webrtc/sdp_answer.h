// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses what of a stream a WebRTC client gets, and writes the SDP answer to its offer (RFC 9429),
// or to that of a publisher. Call from any thread.

#include "outlets/webrtc/sdp_offer.h"

#define SDP_ANSWER_PLAYOUT_DELAY_MS 400 // the most that a browser delays pictures

// A track of the stream.
typedef struct {
  gboolean is_video;
  const gchar *encoding; // in capitals, such as "H264"
  const gchar *fmtp;     // such as "profile-level-id=64001f;...", or NULL
} AnswerTrack;

// An m-line that is taken for a track.
typedef struct {
  guint media, track; // indices
  guint format;       // index in the formats of the m-line
  guint32 ssrc;
  guint32 rtx_ssrc; // 0: no retransmissions of their own
  guint n_layers;   // of a publisher, the first ones of the m-line; 0: it sends one stream
} AnswerChoice;     // the numbers of a publisher's sources are its own: 0

// An address at which the client can reach the proxy.
typedef struct {
  const gchar *address; // numeric
  guint port;
  gboolean is_tcp; // the client connects (RFC 6544, passive)
} AnswerCandidate;

// What the answer says of the proxy.
typedef struct {
  guint64 id; // of the session, for the line o=
  const gchar *ufrag, *pwd, *fingerprint;
  gboolean is_active; // the proxy is the DTLS client
  const gchar *cname;
  const AnswerCandidate *candidates; // the best one first
  guint n_candidates;
  gboolean receives; // the client is a publisher
} AnswerOwn;

// Returns the encoding of the format if the proxy can send it (H.264 in packetization mode 1, and
// whatever else the offer names), or NULL. (transfer none)
const gchar *sdp_answer_get_encoding (const OfferFormat *format);

// Return whether packets of a publisher have retransmissions of their own, and whether they get
// transport-wide feedback.
gboolean sdp_answer_has_rtx (const OfferFormat *format);
gboolean sdp_answer_has_transport_cc (const OfferMedia *line, const OfferFormat *format);

// Returns the id of the header extension that has the transport-wide number of each packet for the
// client, or 0: packets have none. They have none either if the client asks for lost packets but
// offers no retransmissions of their own (RFC 4588): the same packet is then sent again, with the
// same header.
guint sdp_answer_get_transport_id (const SdpOffer *offer, const AnswerChoice *choice);

// Returns whether the client receives anything: an offer without is not one for WHEP.
gboolean sdp_answer_receives (const SdpOffer *offer);

// Returns an array of AnswerChoice with random numbers for the sources: each m-line in which the
// client receives gets the first track of its kind that fits and no other m-line has. Returns NULL
// and sets `error` to both lists, with G_IO_ERROR_NOT_SUPPORTED, if no track fits. (transfer full)
GArray *sdp_answer_choose (
    const SdpOffer *offer, const AnswerTrack *tracks, guint n, GError **error);

// Returns the answer. (transfer full)
gchar *sdp_answer_write (const SdpOffer *offer, const GArray *choices, const AnswerOwn *own);

// Returns the lines of an ICE restart (RFC 8840), for a PATCH. (transfer full)
gchar *sdp_answer_write_fragment (const AnswerOwn *own, const gchar *mid);

// Returns the elements of the header extension of a choice (RFC 8285, one-byte form), for each of
// its packets, or NULL. (transfer full)
GBytes *sdp_answer_make_extensions (const SdpOffer *offer, const AnswerChoice *choice);
