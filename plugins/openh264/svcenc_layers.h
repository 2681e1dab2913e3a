// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the spatial layers of svcenc from its properties, lowest layer first.

#include <gst/video/video.h>

G_BEGIN_DECLS

#define SVC_ENC_LAYERS 4 // most spatial, and most temporal, layers

typedef struct {
  gint width, height;
  guint bitrate; // bits per second
} SvcEncLayer;

// Fills `layers` for input of the format `info`. `sizes` and `bitrates` are lists with one value
// for each of the `n` layers, in the format of the element's properties; NULL or "" selects the
// defaults. Returns NULL, or an error text. (transfer full)
gchar *svc_enc_layers_fill (SvcEncLayer *layers, guint n, const GstVideoInfo *info,
    const gchar *sizes, const gchar *bitrates);

G_END_DECLS
