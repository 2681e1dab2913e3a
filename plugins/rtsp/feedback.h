// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// Handles keyframe requests of TCP readers for a video stream from now on. Does nothing for a
// seekable media, which has no encoder to ask. Call before a PLAY, in the client's thread, with a
// transport that says UDP. Further calls have no effect.
void weir_feedback_open (GstRTSPMedia *media, GstRTSPStreamTransport *transport);

// Handles RTCP data that arrived over TCP at rtpbin's pad `recv_rtcp_sink_N`: a PLI or FIR asks for
// a keyframe upstream of stream N. Call from any thread, with no lock held.
void weir_feedback_take (GstPad *pad, const guint8 *data, gsize size);
