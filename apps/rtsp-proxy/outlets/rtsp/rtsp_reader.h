// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One who reads by RTSP.

#include <gst/rtsp-server/rtsp-server.h>

#include "readers/readers.h"

typedef void (*RtspReaderCloseFunc) (GstRTSPClient *client, const gchar *reason);

// The session media plays. `close`, from any thread: closes the connection.
Reader *rtsp_reader_new (GstRTSPSessionMedia *media, const gchar *mount, const gchar *peer,
    GstRTSPClient *client, RtspReaderCloseFunc close);

// What who plays this begins with, before its media plays.
void rtsp_reader_prepare_layers (GstRTSPSessionMedia *media, WeirLayerSet layers);
