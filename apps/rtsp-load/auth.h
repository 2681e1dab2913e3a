// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Basic and digest authentication towards an RTSP server, by rtsp-proxy's own client.

#include <gst/rtsp/rtsp.h>

#include "sources/rtsp_auth.h"

// Takes the strongest challenge of a 401. `password` may be NULL. Returns FALSE if it has none that
// can be answered, or refuses the answer before. User and password must live as long as `self`.
gboolean auth_take_challenge (
    RtspAuth *self, const GstRTSPMessage *answer, const gchar *user, const gchar *password);

// Returns the complete header line with its CRLF, or NULL without a challenge. (transfer full)
gchar *auth_header (RtspAuth *self, const gchar *method, const gchar *uri);
