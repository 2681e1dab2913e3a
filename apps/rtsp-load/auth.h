// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Answers to a server that asks who is there: basic and digest (RFC 2617).

#include <glib.h>
#include <gst/rtsp/rtsp.h>

typedef struct {
  GstRTSPAuthMethod method; // GST_RTSP_AUTH_NONE: nothing was asked
  gchar *realm, *nonce, *algorithm, *opaque;
} Auth;

// Takes the best challenge of a 401. False if there is none that can be met.
gboolean auth_take_challenge (Auth *self, GstRTSPMessage *answer);

// The whole header line, or NULL where none is needed.
gchar *auth_header (const Auth *self, const gchar *method, const gchar *uri, const gchar *user,
    const gchar *password);

void auth_clear (Auth *self);
