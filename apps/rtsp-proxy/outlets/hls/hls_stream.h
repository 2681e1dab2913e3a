// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A live presentation over HLS: its windows, and the pipeline that fills them while the stream is
// in use. The first window has all tracks; of a stream with more than one track of sound, it has
// the video, or without video the first of them, and each other one has a window of its own.
// Reference-counted. Call from any thread.

#include "mounts/presentation.h"
#include "frames/segment_cutter.h"
#include "outlets/hls/hls_window.h"
#include "svc/layerset.h"

typedef struct _HlsStream HlsStream;

// What a stream shows.
typedef struct {
  Presentation *presentation; // in use
  WeirLayerSet layers;
} HlsVariant;

// Starts. Takes ownership of a reference and a use. The stream is one of those of `common`.
HlsStream *hls_stream_new (const HlsVariant *shown, const HlsSettings *settings, HlsCommon *common);
HlsStream *hls_stream_ref (HlsStream *self);
void hls_stream_unref (HlsStream *self);

// Ends the use of the presentation.
void hls_stream_stop (HlsStream *self);

typedef enum {
  HLS_STREAM_STARTING, // the window's waiters are woken when this changes
  HLS_STREAM_READY,
  HLS_STREAM_FAILED,
  HLS_STREAM_UNSUPPORTED, // HLS cannot carry any of its tracks
  HLS_STREAM_UNFIT,       // as FAILED, and it is of no use to try again
} HlsStreamState;

// Returns the state. Sets `reason` (transfer full) if it has failed or is not supported.
HlsStreamState hls_stream_ask (HlsStream *self, gchar **reason);

gboolean hls_stream_has_failed (HlsStream *self);

// Returns text about the tracks that are left out (relay/left_out.h), or NULL. (transfer full)
gchar *hls_stream_dup_left_out (HlsStream *self);

// Returns one of the SEGMENT_TRACKS_MAX windows. (transfer none)
HlsWindow *hls_stream_get_window (HlsStream *self, guint i);
