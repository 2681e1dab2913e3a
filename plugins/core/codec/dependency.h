// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The dependency descriptor, an RTP header extension (AV1 RTP specification 1.0, appendix A): tells
// of each frame what the payload may not show, in a form that is the same for every codec.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "rtp/rtp.h"

#define WEIR_DEPENDENCY_URI                                                                        \
  "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
#define WEIR_DEPENDENCY_TEMPLATES 64

// Frames name a template; the templates come with key frames. Zero it to begin.
typedef struct {
  uint8_t offset; // the id of the first template
  uint8_t n;
  uint8_t n_targets;
  struct {
    uint8_t spatial, temporal;
    bool discardable, switch_up;
  } templates[WEIR_DEPENDENCY_TEMPLATES];
} WeirDependency;

// Reads one descriptor. Returns false, and leaves `out` alone, for one that breaks its format or
// names a template that was not seen.
bool weir_dependency_read (
    WeirDependency *self, const uint8_t *descriptor, size_t len, WeirLayer *out);

// The element `id` (1 to 14, with headers of two bytes up to 255) of a packet's header extension
// (RFC 8285), NULL if it is not there.
const uint8_t *weir_rtp_extension (
    const uint8_t *packet, const WeirRtp *rtp, uint8_t id, size_t *len);
