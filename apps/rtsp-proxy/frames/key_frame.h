// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Collects the packets of keyframes of one track, and reads no others further than their headers.
// For one thread at a time.

#include <glib.h>

#include "codec/layers.h"

#define KEY_FRAME_BYTES_MAX (8 * 1024 * 1024) // a longer frame is dropped

typedef struct {
  WeirLayers layers;
  GByteArray *bytes;   // of the frame that is collected, or NULL
  gboolean has_key;    // the frame is a keyframe
  gboolean is_spoiled; // a packet of the frame was lost, or it is too long
  guint32 timestamp;   // of the last packet
  guint16 seq;
} KeyFrame;

// WEIR_CODEC_OPAQUE stands for JPEG (RFC 2435), of which each frame is a keyframe.
void key_frame_init (KeyFrame *self, WeirCodec codec);
void key_frame_clear (KeyFrame *self);

// Takes an RTP packet. Returns the keyframe that has ended before it, or NULL: its packets, each
// after its length in two bytes, big-endian. A frame of which a packet was lost is dropped.
// (transfer full)
GBytes *key_frame_take (KeyFrame *self, const guint8 *packet, gsize len);
