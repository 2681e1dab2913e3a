// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "track.h"

// The tracks that an SDP describes, in its order, each with its control URI. `base` is what these
// are relative to. NULL, and the reason in `why`, if there is no video in it.
GArray *sdp_tracks (
    const guint8 *text, gsize len, const gchar *base, gboolean video_only, const gchar **why);

// The URI that stands for all tracks together.
gchar *sdp_aggregate (const guint8 *text, gsize len, const gchar *base);
