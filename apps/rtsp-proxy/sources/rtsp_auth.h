// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers an RTSP server's challenges: basic authentication, and digest authentication without qop,
// by MD5 (RFC 2617) or SHA-256 (RFC 7616).

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
} RtspAuth;

void rtsp_auth_clear (RtspAuth *self);

// Takes the strongest challenge of an answer that can be answered.
// Returns FALSE if there is no such challenge, or if the server repeats the last one without
// calling it stale, which means that the credentials are wrong.
gboolean rtsp_auth_take (RtspAuth *self, const RtspMessage *answer);

// Returns the value of an Authorization header, or NULL if no challenge was taken. (transfer full)
gchar *rtsp_auth_dup_header (const RtspAuth *self, const gchar *method, const gchar *uri);
