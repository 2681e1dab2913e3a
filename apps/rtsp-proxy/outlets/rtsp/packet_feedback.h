// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Feedback of readers over UDP on each packet of the video
// (draft-holmer-rmcat-transport-wide-cc-extensions-01): when it arrived. A reader asks for it in
// its URL (text/demand.h), because its packets then have a header of their own. Call in the
// client's thread.

#include <gst/rtsp-server/rtsp-server.h>

// Offers it in a description. A track of which the packets may have such numbers of their source
// gets no offer.
void packet_feedback_describe (GstRTSPMedia *media, GstSDPMessage *sdp);

// Begins it, if the track of a SETUP that succeeds is offered with it. Call before the response is
// sent.
void packet_feedback_begin (GstRTSPContext *ctx);
