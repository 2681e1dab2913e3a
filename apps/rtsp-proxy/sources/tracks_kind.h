// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What can be put into RTP.

#include <gst/gst.h>

// A kind of elementary stream, and how it is put into RTP. Parts of launch lines.
typedef struct {
  const gchar *caps;
  const gchar *parser;
  const gchar *payloader;
  gboolean video;
  const gchar *known; // caps without the parameter sets, which come in-band
} TracksKind;

// NULL: of no kind that can be.
const TracksKind *tracks_find_kind (GstCaps *caps);
