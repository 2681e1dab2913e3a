// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers an RTSP server's challenges: basic authentication, and digest authentication by MD5 or
// SHA-256 (RFC 7616), with qop=auth if the server offers it, and without qop otherwise (RFC 2069).

#include "sources/rtsp_parser.h"

// By strength.
typedef enum {
  RTSP_SCHEME_NONE,
  RTSP_SCHEME_BASIC,
  RTSP_SCHEME_MD5,
  RTSP_SCHEME_SHA256,
} RtspScheme;

typedef struct {
  const gchar *user, *password; // may be NULL: no challenge is answered
  RtspScheme scheme;            // of the challenge that was taken
  gchar *realm, *nonce, *opaque;
  gchar *cnonce;   // NULL: without qop
  guint n_answers; // with this nonce
  guint refused;   // bits 1 << RtspScheme of digests that the server did not accept
} RtspAuth;

void rtsp_auth_clear (RtspAuth *self);

// Takes the strongest challenge of an answer that can be answered; `nth` is the number of the
// challenge to this request, from 1. If the server repeats a challenge without calling it stale, or
// gives a third one, it does not accept the digest of that kind: the weaker digest is taken, but
// not basic authentication beside it, which shows the password. Returns FALSE if nothing is left,
// which means that the credentials are wrong.
gboolean rtsp_auth_take (RtspAuth *self, const RtspMessage *answer, guint nth);

// Returns the value of an Authorization header, or NULL if no challenge was taken. (transfer full)
gchar *rtsp_auth_dup_header (RtspAuth *self, const gchar *method, const gchar *uri);
