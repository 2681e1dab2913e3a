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

typedef enum { WHEP_NOTHING, WHEP_VIDEO, WHEP_AUDIO, WHEP_KINDS } WhepKind;

typedef struct {
  WhepKind kind;
  WeirCodec codec;
  guint32 clock_rate;
} WhepPayload;

typedef struct {
  gchar *ufrag, *password; // of ICE
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];
  gboolean peer_is_client; // of DTLS
  WeirAddress candidates[WHEP_CANDIDATES_MAX];
  guint n_candidates;
  WhepPayload payloads[WHEP_PAYLOAD_TYPES];
} WhepAnswer;

// Returns an offer (transfer full). `fingerprint`: the SHA-256 of the certificate, as text.
gchar *whep_sdp_offer (const gchar *ufrag, const gchar *password, const gchar *fingerprint);

// Reads an answer. Returns NULL, or what it lacks; then, too, call whep_answer_clear().
// Candidates of UDP are kept, those with the address `server` first.
const gchar *whep_sdp_read (WhepAnswer *out, const gchar *text, const WeirAddress *server);
void whep_answer_clear (WhepAnswer *self);
