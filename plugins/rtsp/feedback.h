// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/rtsp-server/rtsp-server.h>

// The lower transport that a UDP transport of a WEIR_TYPE_RELAY_MEDIA says while gst-rtsp-server
// completes the streams for a PLAY: all allowed ones at once, for which it makes no element.
#define WEIR_RELAY_LOWER_TRANS                                                                     \
  ((GstRTSPLowerTrans) (GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP))

// Handles keyframe requests of TCP readers for a video stream from now on. Does nothing for a
// seekable media, which has no encoder to ask. Call before a PLAY, in the client's thread, with a
// transport that says UDP. Further calls have no effect.
void weir_feedback_open (GstRTSPMedia *media, GstRTSPStreamTransport *transport);

// Reports whether a stream is video: only then readers may ask for keyframes.
gboolean weir_feedback_is_video (GstRTSPStream *stream);

// Makes the elements of a stream that are missing: its senders as for UDP, and with `source` an
// appsrc for the RTCP of TCP readers, but no udpsrc. Without `task` the appsrc gets no thread; the
// caller takes its packets. Returns the appsrc, which the stream owns, if this call made it, else
// NULL.
GstElement *weir_feedback_complete (
    GstRTSPStream *stream, const GstRTSPTransport *transport, gboolean source, gboolean task);

// Handles RTCP data that arrived over TCP at rtpbin's pad `recv_rtcp_sink_N`: a PLI or FIR asks for
// a keyframe upstream of stream N. Call from any thread, with no lock held.
void weir_feedback_take (GstPad *pad, const guint8 *data, gsize size);
