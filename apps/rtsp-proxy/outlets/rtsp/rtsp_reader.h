// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Implements the functions of a reader (readers/readers.h) for RTSP.

#include <gst/rtsp-server/rtsp-server.h>

#include "readers/readers.h"

typedef void (*RtspReaderCloseFunc) (GstRTSPClient *client, const gchar *reason);

// Returns a reader for a session that plays `media`, of the presentation `own` or, if that is NULL,
// a title. `close` closes the client's connection, from
// any thread.
Reader *rtsp_reader_new (GstRTSPSessionMedia *media, Presentation *own, const gchar *mount,
    const gchar *peer, GstRTSPClient *client, RtspReaderCloseFunc close);

// Sets the layers with which the reader starts. Call before the session plays.
void rtsp_reader_prepare_layers (GstRTSPSessionMedia *media, WeirLayerSet layers);
