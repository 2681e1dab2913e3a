// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The parameter sets of H.264 and H.265 that a track's packets carry. A description has those of
// the upstream's, which may be of another picture size by now.

#include <gst/sdp/sdp.h>

#define RELAY_SETS_BYTES_MAX 4096 // of the sets of one picture; more are ignored

typedef struct _RelaySets RelaySets;

// Returns NULL for a track of another codec.
RelaySets *relay_sets_new (const GstCaps *caps);
void relay_sets_free (RelaySets *self);

// Takes the payload of the next packet. If it ends parameter sets that differ from those of `caps`,
// puts them into `*caps`, and the profile and level of H.264.
void relay_sets_take (RelaySets *self, const guint8 *payload, gsize len, GstCaps **caps);

// Returns the parameter sets (of GBytes) that `caps` have and `shown` has not, if a keyframe whose
// first packet has this payload begins without any. NULL: none are missing. (transfer full)
GPtrArray *relay_sets_find_missing (
    const GstCaps *caps, const GstCaps *shown, const guint8 *payload, gsize len);

// Puts the parameter sets of `caps` into a description of the track.
void relay_sets_describe (const GstCaps *caps, GstSDPMedia *media);
