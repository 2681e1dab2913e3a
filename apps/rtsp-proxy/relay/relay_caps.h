// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Selects the parts of a track's caps that readers see, and compares tracks. Call from any thread.

#include <gst/gst.h>

#include "codec/layers.h"

// Returns the parts of application/x-rtp caps that describe the codec, with SSRC `ssrc`. An
// upstream's caps hold its whole SDP; fields that are private to the upstream, or that could break
// out of an SDP line, are removed. (transfer full)
GstCaps *relay_caps_publish (const GstCaps *caps, guint32 ssrc);

#define RELAY_CAPS_LANGUAGE "a-lang" // a field, as GStreamer names the attribute of an SDP
#define RELAY_LANGUAGE 36            // bytes of a language tag (RFC 5646), with its zero

// Returns the language of a track, such as "de", or NULL. It has letters, digits and hyphens only.
const gchar *relay_caps_get_language (const GstCaps *caps);

// Returns the codec of RTP caps, AUDIO or OPAQUE.
WeirCodec relay_caps_get_codec (const GstCaps *caps);

// Reports whether `word` may stand in an SDP: printable ASCII, at most 8192 bytes. A track needs a
// media type and an encoding for which this is TRUE.
gboolean relay_caps_is_printable (const gchar *word);

// Reports whether a reader that has an SDP of `published` can play `now`. For H.264 and H.265,
// parameter sets, profile and level may differ: the stream itself carries them. Unpublished fields
// and the payload type may differ too; the relay rewrites the latter.
gboolean relay_caps_same (const GstCaps *published, const GstCaps *now);

// Reports whether two lists have the same caps in the same order.
gboolean relay_caps_are_equal (const GPtrArray *a, const GPtrArray *b);
