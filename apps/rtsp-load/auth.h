// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Basic and digest authentication (RFC 2617) towards an RTSP server.

#include <glib.h>
#include <gst/rtsp/rtsp.h>

typedef struct {
  GstRTSPAuthMethod method; // GST_RTSP_AUTH_NONE: the server sent no challenge
  gchar *realm, *nonce, *algorithm, *opaque;
} Auth;

// Copies the best challenge of a 401, digest before basic. Returns FALSE if it has none that this
// module supports.
gboolean auth_take_challenge (Auth *self, GstRTSPMessage *answer);

// Returns the complete header line with its CRLF, or NULL without a challenge. The caller owns the
// result.
gchar *auth_header (const Auth *self, const gchar *method, const gchar *uri, const gchar *user,
    const gchar *password);

void auth_clear (Auth *self);
