// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which parts of a track's caps readers are told, and when two tracks are the same to them. Any
// thread.

#include <gst/gst.h>

// Of a track's application/x-rtp caps: what describes the codec, and this SSRC. Caps of an upstream
// hold all of its SDP; nothing that is private to it, or could break out of a line of SDP, is kept.
GstCaps *relay_caps_publish (const GstCaps *caps, guint32 ssrc);

// Can this be a word of what readers are told, of printable ASCII and not too long? No media can be
// made of a track whose kind or encoding is none.
gboolean relay_caps_can_tell (const gchar *word);

// Would a reader who was told of `told` get along with `now`? Parameter sets of H.264 and H.265 may
// differ, and what is said of them: they come in-band as well. So may the payload type, which the
// relay rewrites, and what readers are not told at all.
gboolean relay_caps_same (const GstCaps *told, const GstCaps *now);
