// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The descriptions of a WebRTC reader: it offers to receive video and audio as browsers do
// (RFC 8829), and reads the answer.

#include "codec/layers.h"
#include "net/address.h"
#include "outlets/webrtc/dtls.h"

#include <glib.h>

#define WHEP_PAYLOAD_TYPES 128
#define WHEP_CANDIDATES_MAX 8
#define WHEP_EXTENSION_MAX 14 // id of a header extension

typedef enum { WHEP_NOTHING, WHEP_VIDEO, WHEP_AUDIO, WHEP_KINDS } WhepKind;

typedef struct {
  WhepKind kind;
  WeirCodec codec;
  guint32 clock_rate;
  gboolean is_again; // retransmissions (RFC 4588)
} WhepPayload;

typedef struct {
  gchar *ufrag, *password; // of ICE
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];
  gboolean peer_is_client; // of DTLS
  guint transport_id;      // of the header extension with transport-wide numbers; 0: there is none
  WeirAddress candidates[WHEP_CANDIDATES_MAX];
  guint n_candidates;
  WhepPayload payloads[WHEP_PAYLOAD_TYPES];
} WhepAnswer;

// Returns an offer (transfer full). `fingerprint`: the SHA-256 of the certificate, as text. With
// `twcc`, transport-wide feedback is offered, and retransmissions with an SSRC of their own.
gchar *whep_sdp_offer (
    const gchar *ufrag, const gchar *password, const gchar *fingerprint, gboolean twcc);

// Reads an answer. Returns NULL, or what it lacks; then, too, call whep_answer_clear().
// Candidates of UDP are kept, those with the address `server` first.
const gchar *whep_sdp_read (WhepAnswer *out, const gchar *text, const WeirAddress *server);
void whep_answer_clear (WhepAnswer *self);
