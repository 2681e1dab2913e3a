// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the tracks and the control URIs of a session description (SDP).

#include "track.h"

// Returns the tracks of an SDP in its order, each with its control URI, which is relative to
// `base`. Returns NULL if the SDP has no video; `why` is then the reason, a static text. The caller
// owns the result.
GArray *sdp_tracks (
    const guint8 *text, gsize len, const gchar *base, gboolean video_only, const gchar **why);

// Returns the URI that controls all tracks together. The caller owns the result.
gchar *sdp_aggregate (const guint8 *text, gsize len, const gchar *base);
