// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A publisher over WebRTC: one session of a client, whose media go to a publication from when it is
// connected until it ends: the client closes it or is silent, another publisher takes the mount
// over, the mount takes no publishers any more, or webrtc_client_end() is called. Call from any
// thread.

#include "mounts/mounts.h"
#include "outlets/webrtc/webrtc_client.h"

// What a publisher is made of.
typedef struct {
  Mounts *mounts;
  SdpOffer *offer;                     // the publisher takes it over
  GArray *choices;                     // of AnswerChoice, by sdp_sent_choose(); likewise
  const gchar *path, *peer, *identity; // of PublicationClaim
  const MountConfig *config;
} WebrtcPublisherParts;

// Makes a publisher, which has claimed the mount. Returns NULL and sets `error` to G_IO_ERROR_BUSY
// if another one has it; then it has taken nothing over. (transfer full)
WebrtcClient *webrtc_publisher_new (
    const WebrtcContext *context, const WebrtcPublisherParts *parts, GError **error);
