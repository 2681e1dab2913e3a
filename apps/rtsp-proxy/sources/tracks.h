// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// From elementary streams, or from payloaders, into the relay: one appsink a track. The relay is
// told of the tracks once all are known, and again when they become others; what comes before that
// is held.

#include "sources/pull.h"
#include "sources/tracks_kind.h"

typedef enum {
  TRACKS_PACED,   // the pipeline's clock says when a packet's time has come
  TRACKS_ARRIVAL, // packets go out as they come; the streams are not yet parsed
} TracksMode;

typedef struct _Tracks Tracks;

// For `pipeline`, which must outlive it, as `context` must.
Tracks *tracks_new (const PullContext *context, GstElement *pipeline, TracksMode mode);
void tracks_free (Tracks *self);

// What a demuxer or parser gives: payloaded where it is of a kind that can be, else thrown away.
void tracks_add_stream (Tracks *self, GstPad *pad);
// The pad is going: so does its track.
void tracks_remove_stream (Tracks *self, GstPad *pad);

// The packets of an element in `bin`, which is in the pipeline. FALSE if it has no free pad "src".
gboolean tracks_add_payloader (Tracks *self, GstElement *bin, GstElement *payloader);

// There are no more to come.
void tracks_complete (Tracks *self);

// For a pipeline that has prerolled. FALSE: there is no track, or one has no caps.
gboolean tracks_begin (Tracks *self);

// Whatever makes the track with this number in the relay, if it is an encoder. Any thread.
void tracks_ask_key (Tracks *self, guint index);
