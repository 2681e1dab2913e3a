// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Chooses what of the offer of a WebRTC publisher is taken (RFC 9725), and describes it. Call from
// any thread.

#include <gst/gst.h>

#include "outlets/webrtc/sdp_answer.h"

// Returns whether the client sends anything: an offer without is not one for WHIP.
gboolean sdp_sent_is (const SdpOffer *offer);

// Returns an array of AnswerChoice, one for each m-line in which the client sends: H.264 in
// packetization mode 1, Opus, or else the first codec of the line that the relay takes. Of several
// layers, all are taken with `simulcast`, or else the first one. Returns NULL and sets `error` to
// what is wrong: G_IO_ERROR_NOT_SUPPORTED if the relay takes no codec of a line,
// G_IO_ERROR_INVALID_ARGUMENT if there are more lines than it takes. (transfer full)
GArray *sdp_sent_choose (const SdpOffer *offer, gboolean simulcast, GError **error);

// Returns the application/x-rtp caps of a choice. (transfer full)
GstCaps *sdp_sent_make_caps (const SdpOffer *offer, const AnswerChoice *choice);
