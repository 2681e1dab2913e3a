// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Takes AAC out of LOAS, the form of digital television (ISO/IEC 14496-3, 1.7): an AudioSyncStream,
// each frame of which has an AudioMuxElement (LATM). One program with one layer is read, whose
// frames have any length; nothing else is in use. Whoever wrote the stream is not trusted.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_LATM_CONFIG_MAX 64 // bytes
#define WEIR_LATM_FRAMES_MAX 64 // in one frame of LOAS

// All zero at first.
typedef struct {
  size_t n_config;                      // 0: none has come yet
  uint8_t config[WEIR_LATM_CONFIG_MAX]; // AudioSpecificConfig; zero bits fill the last byte
  uint32_t rate;                        // Hz, of the core codec; not 0
  unsigned n_samples;                   // of a frame, at this rate
  unsigned n_frames;                    // in one frame of LOAS
} WeirLatm;

// Reads a frame of LOAS of `len` bytes. Writes the frames of AAC in it one behind the other into
// `out`, which has room for `len` bytes, and their sizes into `sizes`. Returns their number, and
// sets
// `*changed` if `latm` has another configuration than before. Otherwise returns -EAGAIN if no
// configuration has come yet, -EINVAL if the frame is malformed, or -ENOTSUP if it has another form
// than can be read. Afterwards `latm` is as before, or has no configuration.
int weir_latm_read (WeirLatm *latm, const uint8_t *data, size_t len, uint8_t *out,
    size_t sizes[WEIR_LATM_FRAMES_MAX], bool *changed);
