// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What svclayerfilter knows of the stream that goes through it, whatever its form, and the making
// of what comes out. The streaming thread's, but for what is published.

#include <gst/gst.h>

#include "core/svc/au.h"
#include "core/svc/frame.h"
#include "core/svc/project.h"
#include "core/svc/rates.h"
#include "core/svc/svc.h"

typedef enum { LAYER_MODE_FILTER, LAYER_MODE_TAG } LayerMode;

typedef struct {
  WeirLayerSet limit;
  guint64 target_bitrate; // bits per second, 0 = no target
  WeirOutput output;
  gboolean immediate;
  LayerMode mode;
  gboolean infer_temporal;
} LayerSettings;

// Every buffer that came in, and is not held, is counted in `out` or in one of the others.
typedef struct {
  guint64 in, out;
  guint64 left_out; // above the layers that are wanted
  guint64 unfit;    // of a picture that could not have been decoded
  guint64 late;     // too late, or twice
  guint64 bad;      // breaks its format, or a fragment whose start was lost
  guint64 flushed;
  guint64 frames_in, frames_out;
  guint64 key_requests;
  guint64 put_in; // packets of parameter sets, which did not come in
  guint64 cut;    // aggregates and access units that went out in part
} LayerCounts;

typedef struct {
  WeirCodec codec;
  gboolean rtp;
  guint length_size; // of access units with lengths; 0 = start codes
  guint clock_rate;  // of RTP

  LayerSettings settings;
  WeirFrame frame;
  WeirAu au; // in place of the frame, for access units of other codecs than H.264
  WeirSvc svc;
  WeirRates rates;
  WeirProjection projection;
  WeirLayers tagger;
  gboolean fits;       // the target bitrate
  GstClockTime now;    // of the frame
  GstClockTime key_at; // when a key picture was asked for last; GST_CLOCK_TIME_NONE = never
  gint64 last_ts;      // for unwrapping

  // For RTP: the buffers of the frame, by WeirFramePacket.owner.
  GArray *held;
  GArray *fates; // of WeirProjected

  LayerCounts counts;
} LayerStream;

void layer_stream_init (LayerStream *self);
void layer_stream_clear (LayerStream *self);

// For a new stream: forgets everything but the counts.
void layer_stream_start (LayerStream *self, WeirCodec codec, gboolean rtp, guint length_size,
    guint clock_rate, const LayerSettings *settings);

// To be called before each frame. Changes are made by the projection, where they can be.
void layer_stream_set (LayerStream *self, const LayerSettings *settings);

// Takes a packet, and the reference. Returns TRUE when a frame is whole: read it and pop it. With
// `*again` set the packet belongs to the next frame and was not taken.
gboolean layer_stream_push (LayerStream *self, GstBuffer *packet, gboolean *again);

// Reads the frame that is held, and decides on it. FALSE if there is none.
gboolean layer_stream_read (LayerStream *self);

// The frame's packets that go out, NULL if none does. The frame is gone then.
GstBufferList *layer_stream_pop (LayerStream *self);

// Drops what is held. What comes then may be of before.
void layer_stream_flush (LayerStream *self);

// The same for an access unit: reads and decides, FALSE for what breaks its format; and makes what
// goes out of it, NULL if nothing does. `map` is the buffer's; layer_stream_pop_au() takes both.
gboolean layer_stream_read_au (LayerStream *self, GstBuffer *au, const GstMapInfo *map);
GstBuffer *layer_stream_pop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map);

// For one that breaks its format, in the place of layer_stream_pop_au().
void layer_stream_drop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map);

// Puts the layer on a buffer. Takes the reference and gives it back.
GstBuffer *layer_stream_tag (LayerStream *self, GstBuffer *buffer);

// TRUE when it is time to ask for a key picture: at most once a second of stream time.
gboolean layer_stream_wants_key (LayerStream *self);
