// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Writes into the response to a PLAY where this reader will begin in each of its streams, for those
// whose sink can tell. What the response says of the others stays.
void weir_rtp_info_rewrite (GstRTSPSessionMedia *media, GstRTSPMessage *response);
