// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which tracks a container can carry, and in what form.

#include <gst/gst.h>

typedef struct {
  const gchar *encoding;   // the encoding name in SDP, in capitals; NULL ends a table
  gboolean is_byte_stream; // its frames are made by byte_stream_copy()
} CarriageRow;

// A multiplexer.
typedef struct {
  const gchar *name;       // for messages
  const gchar *mux;        // launch text; the element's name is "mux"
  const CarriageRow *rows; // the codecs that it carries
  guint max_video, max_audio;
  const gchar *video_pad, *audio_pad; // of the element; "": it has only one kind
  // The first frame that comes is its time 0. It moves earlier frames of another track there, with
  // all that follow.
  gboolean has_zero;
} Carriage;

extern const Carriage carriage_ts;  // MPEG-TS, ISO/IEC 13818-1
extern const Carriage carriage_flv; // FLV, as RTMP carries it

// Returns the tracks that are carried, a bit for each, of the application/x-rtp caps in `caps`.
// Sets `left_out` to text about the others (relay/left_out.h; transfer full), or NULL.
guint32 carriage_choose (const Carriage *self, const GPtrArray *caps, gchar **left_out);

// Returns the row of RTP caps, or NULL.
const CarriageRow *carriage_find (const Carriage *self, const GstCaps *caps);

// Returns launch text with an appsrc "inN" for the frames of each track of `tracks`, and an appsink
// "out" behind the multiplexer; `tail` follows the multiplexer in place of the appsink unless it is
// NULL. (transfer full)
gchar *carriage_dup_launch (
    const Carriage *self, const GPtrArray *caps, guint32 tracks, const gchar *tail);
