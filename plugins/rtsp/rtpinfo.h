// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Writes the RTP-Info of a response to PLAY: the first packet that this reader gets of each stream.
// The numbers come from the stream's sink, or else from the function of
// weir_media_set_rtp_info_func(). Without both, a stream keeps gst-rtsp-server's item.
void weir_rtp_info_rewrite (GstRTSPSessionMedia *media, GstRTSPMessage *response);
