// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the dependency descriptor, an RTP header extension (AV1 RTP specification 1.0, appendix A).
// It describes a frame's layer the same way for every codec, even where the payload does not show
// it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/layers.h"
#include "rtp/rtp.h"

#define WEIR_DEPENDENCY_URI                                                                        \
  "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
#define WEIR_DEPENDENCY_TEMPLATES 64

// The templates that frames refer to; key frames bring them. Set to all zeros before the first
// packet.
typedef struct {
  uint8_t offset; // id of the first template
  uint8_t n;
  uint8_t n_targets;
  struct {
    uint8_t spatial, temporal;
    bool discardable, switch_up;
  } templates[WEIR_DEPENDENCY_TEMPLATES];
} WeirDependency;

// Reads one descriptor of `len` bytes. Returns false, and leaves `out` unchanged, if it is invalid
// or refers to an unknown template.
bool weir_dependency_read (
    WeirDependency *self, const uint8_t *descriptor, size_t len, WeirLayer *out);

// Finds the element `id` in a packet's header extension (RFC 8285); ids are 1 to 14 with one-byte
// headers and 1 to 255 with two-byte headers. Returns a pointer into `packet`, or NULL if the
// element is absent.
const uint8_t *weir_rtp_extension (
    const uint8_t *packet, const WeirRtp *rtp, uint8_t id, size_t *len);
