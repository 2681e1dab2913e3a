// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Passes elementary streams, or the packets of payloaders, to a relay, with one appsink for each
// track. Passes the tracks to the relay when all are known, and again when they change. Holds the
// packets that arrive before that.

#include "sources/pull.h"
#include "sources/tracks_kind.h"

typedef enum {
  TRACKS_PACED,   // packets are sent at their time on the pipeline's clock
  TRACKS_ARRIVAL, // packets are sent as they arrive; the streams still need a parser
} TracksMode;

typedef struct _Tracks Tracks;

// `what` names what is read in the reason if it has no track: "file". `pipeline` and `context` must
// outlive the result.
Tracks *tracks_new (
    const PullContext *context, GstElement *pipeline, TracksMode mode, const gchar *what);
void tracks_free (Tracks *self);

// Makes `parsebin` give out each parsed stream of a supported kind. By itself it refuses one that
// no installed decoder takes.
void tracks_watch_parsebin (GstElement *parsebin);

// Adds a stream of a demuxer or parser. Payloads the stream if its kind is supported, else discards
// it.
void tracks_add_stream (Tracks *self, GstPad *pad);
// Removes the track of a pad that is being removed.
void tracks_remove_stream (Tracks *self, GstPad *pad);

// Adds the packets of a payloader in `bin`, which is in the pipeline. Returns FALSE if the
// payloader has no free pad "src".
gboolean tracks_add_payloader (Tracks *self, GstElement *bin, GstElement *payloader);

// Call when all streams were added.
void tracks_complete (Tracks *self);

// Passes the tracks of a pipeline that has prerolled to the relay. Discards those of which nothing
// has come that RTP can carry. Ends the run and returns FALSE if none is left.
gboolean tracks_begin (Tracks *self);

// Asks the encoder, if any, of the relay's track `index` for a keyframe. Call from any thread.
void tracks_ask_key (Tracks *self, guint index);
