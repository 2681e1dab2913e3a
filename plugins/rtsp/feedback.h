// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// What readers ask for over TCP of a stream of video is taken from now on, unless one can seek in
// the media: then nobody makes it. Before a PLAY, in the client's thread; the transport says that
// it is UDP. More than once is no more than once.
void weir_feedback_open (GstRTSPMedia *media, GstRTSPStreamTransport *transport);

// RTCP that came over TCP, at rtpbin's `recv_rtcp_sink_N`: a PLI or FIR of stream N asks whoever
// makes it for a keyframe. In any thread, with no lock held.
void weir_feedback_take (GstPad *pad, const guint8 *data, gsize size);
