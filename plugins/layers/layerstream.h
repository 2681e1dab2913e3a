// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The state of a layered stream in svclayerfilter, as RTP packets or as access units: collects a
// frame, decides on it and makes the output. Call from the streaming thread only.

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

// Counts of buffers. in = out + left_out + unfit + late + bad + flushed. Held packets are not in
// `in` yet.
typedef struct {
  guint64 in, out;
  guint64 left_out; // above the selected layers
  guint64 unfit;    // of a picture that cannot be decoded
  guint64 late;     // arrived after its frame was sent, or twice
  guint64 bad;      // malformed, or a fragment whose start was lost
  guint64 flushed;
  guint64 frames_in, frames_out;
  guint64 key_requests;
  guint64 put_in; // inserted packets of parameter sets
  guint64 cut;    // aggregates and access units that were shortened
} LayerCounts;

typedef struct {
  WeirCodec codec;
  gboolean rtp;
  guint length_size; // size of NAL unit lengths in bytes; 0 = start codes
  guint clock_rate;  // RTP clock rate in Hz

  LayerSettings settings;
  WeirFrame frame;
  WeirAu au; // replaces `frame` for access units of codecs other than H.264
  WeirSvc svc;
  WeirRates rates;
  WeirProjection projection;
  WeirLayers tagger;
  gboolean fits;       // the output fits into the target bit rate
  GstClockTime now;    // time of the frame
  GstClockTime key_at; // time of the last keyframe request; GST_CLOCK_TIME_NONE = never
  gint64 last_ts;      // unwrapped RTP timestamp

  // RTP only: the buffers of the frame; WeirFramePacket.owner is the index.
  GArray *held;
  GArray *fates; // a WeirProjected for each packet of the frame

  LayerCounts counts;
} LayerStream;

void layer_stream_init (LayerStream *self);
void layer_stream_clear (LayerStream *self);

// Starts a new stream: resets everything but the counts.
void layer_stream_start (LayerStream *self, WeirCodec codec, gboolean rtp, guint length_size,
    guint clock_rate, const LayerSettings *settings);

// Changes the settings. Call before each frame. A change takes effect at the next frame that allows
// it.
void layer_stream_set (LayerStream *self, const LayerSettings *settings);

// Takes ownership of the packet. Returns TRUE if a frame is complete: call layer_stream_read() and
// layer_stream_pop(). If `*again` is TRUE, the packet belongs to the next frame and still belongs
// to the caller, who pushes it again.
gboolean layer_stream_push (LayerStream *self, GstBuffer *packet, gboolean *again);

// Parses the held frame and selects its layers. Returns FALSE if no frame is held.
gboolean layer_stream_read (LayerStream *self);

// Returns the packets of the held frame to send, or NULL if there are none, and clears the frame.
// (transfer full)
GstBufferList *layer_stream_pop (LayerStream *self);

// Drops the held packets. Packets after this call may be older than those before.
void layer_stream_flush (LayerStream *self);

// Access units: layer_stream_read_au() parses one and selects its layers; it returns FALSE if the
// data is malformed. layer_stream_pop_au() returns the output (transfer full), or NULL if there is
// none; it unmaps `map`, the buffer's mapping, and takes ownership of `au`.
gboolean layer_stream_read_au (LayerStream *self, GstBuffer *au, const GstMapInfo *map);
GstBuffer *layer_stream_pop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map);

// Drops a malformed access unit: replaces layer_stream_pop_au(). Unmaps `map`, takes ownership of
// `au`.
void layer_stream_drop_au (LayerStream *self, GstBuffer *au, GstMapInfo *map);

// Adds the layer meta to a buffer. Takes ownership of `buffer`; returns a writable one. (transfer
// full)
GstBuffer *layer_stream_tag (LayerStream *self, GstBuffer *buffer);

// Returns TRUE if the caller should request a keyframe: at most once in a second of stream time.
gboolean layer_stream_wants_key (LayerStream *self);
