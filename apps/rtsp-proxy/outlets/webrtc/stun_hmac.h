// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The HMAC-SHA1 of STUN, by GLib, for webrtc/stun.h. Call from any thread.

#include "webrtc/stun.h"

void stun_hmac_sha1 (const uint8_t *key, size_t key_len, const uint8_t *head, size_t head_len,
    const uint8_t *body, size_t body_len, uint8_t out[WEIR_STUN_HMAC]);
