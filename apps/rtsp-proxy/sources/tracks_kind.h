// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The kinds of elementary stream that can be payloaded as RTP.

#include <gst/gst.h>

// A kind of elementary stream, and the parts of the launch line that payloads it.
typedef struct {
  const gchar *caps;
  const gchar *parser;
  const gchar *payloader;
  gboolean video;
  gint pt;              // the static payload type (RFC 3551), which some players insist on; 0: none
  const gchar *known;   // RTP caps without the parameter sets, which are sent in-band
  const gchar *decoder; // an element of `parser`, without which it is of no use
} TracksKind;

// Returns NULL if the stream cannot be payloaded.
const TracksKind *tracks_find_kind (GstCaps *caps);

// Returns the kind of sound that has no form in RTP here, and is decoded for a stage that encodes
// it anew; NULL if the stream is not of such a kind. If the kind's decoder is not installed, no
// other one is.
const TracksKind *tracks_find_sound (GstCaps *caps);

// Prepares a branch that was made of the kind's launch text; `payloader` is the payloader's name.
void tracks_kind_prepare (const TracksKind *kind, GstElement *branch, const gchar *payloader);
