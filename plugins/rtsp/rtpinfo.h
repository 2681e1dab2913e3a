// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Writes into the response to a PLAY where this reader will begin in each of its streams, as the
// sink can tell, or the media's own function; see weir_media_set_rtp_info_func(). What the response
// says of other streams stays, where there is no such function.
void weir_rtp_info_rewrite (GstRTSPSessionMedia *media, GstRTSPMessage *response);
