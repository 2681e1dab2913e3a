// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The spatial layers that svcenc makes, lowest first, by its properties.

#include <gst/video/video.h>

G_BEGIN_DECLS

#define SVC_ENC_LAYERS 4 // at most

typedef struct {
  gint width, height;
  guint bitrate; // bits per second
} SvcEncLayer;

// For pictures of `info`. `sizes` and `bitrates` are lists with a value for each of the n layers,
// as in the element's properties; NULL or "": by default. Returns NULL, or what is wrong, to be
// freed.
gchar *svc_enc_layers_fill (SvcEncLayer *layers, guint n, const GstVideoInfo *info,
    const gchar *sizes, const gchar *bitrates);

G_END_DECLS
