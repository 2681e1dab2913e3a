// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers an RTSP server's challenges: basic and digest authentication (RFC 2617, without qop).

#include "sources/rtsp_parser.h"

typedef struct {
  const gchar *user, *password; // may be NULL: no challenge is answered
  gboolean digest;              // otherwise basic
  gchar *realm, *nonce, *opaque;
} RtspAuth;

void rtsp_auth_clear (RtspAuth *self);

// Takes the challenges of an answer: a digest if there is one that can be answered, else basic.
// Returns FALSE if there is no such challenge, or if the server repeats the last one without
// calling it stale, which means that the credentials are wrong.
gboolean rtsp_auth_take (RtspAuth *self, const RtspMessage *answer);

// Returns the value of an Authorization header, or NULL if no challenge was taken. (transfer full)
gchar *rtsp_auth_dup_header (const RtspAuth *self, const gchar *method, const gchar *uri);
