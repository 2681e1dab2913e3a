// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Writes into the RTP-Info of a response to PLAY the first packet that this reader gets of each
// stream, as the sink or the function of the media says; see weir_media_set_rtp_info_func().
// Without such a function the items of other streams stay.
void weir_rtp_info_rewrite (GstRTSPSessionMedia *media, GstRTSPMessage *response);
