// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The text with which an outlet tells, in the log and in the API, which tracks of a relay it leaves
// out, and why: "track 1: HLS cannot carry PCMU; track 2: HLS cannot carry L16".

#include <gst/gst.h>

// Adds a track, numbered as in the relay, to the text, unless that is long.
void left_out_add (GString *text, guint track, const gchar *why, ...) G_GNUC_PRINTF (3, 4);

// Adds a stream of a file that has no form in RTP, likewise.
void left_out_add_stream (GString *text, guint stream, const GstCaps *caps);

// Returns the name of a track's codec, for the reason. (transfer none)
const gchar *left_out_codec (const GstCaps *caps);

// Logs the text, unless it is empty.
void left_out_log (const gchar *label, const gchar *text);
