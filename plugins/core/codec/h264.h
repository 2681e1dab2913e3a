// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the header of an H.264 NAL unit, including the one that annex G (SVC) puts behind the first
// byte of types 14 (prefix of a base slice) and 20 (slice of a higher layer).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits/bytes.h"

enum {
  WEIR_H264_SLICE = 1,
  WEIR_H264_IDR = 5,
  WEIR_H264_SEI = 6,
  WEIR_H264_SPS = 7,
  WEIR_H264_PPS = 8,
  WEIR_H264_AUD = 9,
  WEIR_H264_PREFIX = 14,
  WEIR_H264_SUBSET_SPS = 15,
  WEIR_H264_SLICE_EXT = 20,
  WEIR_H264_STAP_A = 24, // from here on, types of RTP payloads only (RFC 6184, RFC 6190)
  WEIR_H264_STAP_B = 25,
  WEIR_H264_MTAP16 = 26,
  WEIR_H264_MTAP24 = 27,
  WEIR_H264_FU_A = 28,
  WEIR_H264_FU_B = 29,
  WEIR_H264_PACSI = 30,
  WEIR_H264_NI_MTAP = 31,
};

typedef struct {
  uint8_t type;
  uint8_t nri; // nal_ref_idc
  bool svc;    // an SVC header was read; else the layer ids below are 0
  bool idr;
  bool no_inter_layer_pred;
  bool discardable; // no higher spatial layer refers to it
  uint8_t spatial;
  uint8_t quality;
  uint8_t temporal;
  bool first_slice; // first_mb_in_slice is 0: a picture begins
} WeirH264Nal;

// Reads the headers of a unit whose first byte was `header`; `rest` is the bytes behind it. Returns
// false if they are cut short, or if type 14 or 20 is not SVC (it may be MVC).
bool weir_h264_nal_read (uint8_t header, WeirBytes rest, WeirH264Nal *out);

static inline bool
weir_h264_is_slice (uint8_t type)
{
  return (type >= WEIR_H264_SLICE && type <= WEIR_H264_IDR) || type == WEIR_H264_SLICE_EXT;
}

static inline bool
weir_h264_is_parameters (uint8_t type)
{
  return type == WEIR_H264_SPS || type == WEIR_H264_PPS || type == WEIR_H264_SUBSET_SPS;
}

// Reports whether the payload of an RTP packet (RFC 6184, RFC 6190) has a unit that only SVC and
// MVC have, or a fragment of one.
bool weir_h264_payload_has_svc (const uint8_t *payload, size_t len);
