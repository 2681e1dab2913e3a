// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Medias with weir_sender_bin_new() instead of rtpbin.

#include <gst/rtsp-server/rtsp-server.h>

// Makes the elements that a stream of such a media needs for a transport that says UDP, and no
// udpsrc: relayrtcp.c reads its sockets until the media is unprepared. Returns TRUE if the stream
// has its elements, so that gst-rtsp-server must not make any; FALSE if it is a stream of another
// media, or gst-rtsp-server has made its elements already. Call before a PLAY, in any thread, with
// a stream that is joined.
gboolean weir_sender_media_complete (GstRTSPMedia *media, GstRTSPStream *stream);
