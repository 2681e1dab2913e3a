// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the origin of the bench `relay` sends: the shapes of streams, and their packets' content.

#include <stddef.h>
#include <stdint.h>

#define RELAY_RTP_HEADER 12

typedef struct {
  const char *name;
  unsigned per_second;  // frames
  unsigned denominator; // of per_second
  unsigned clock;       // RTP ticks a second
  unsigned n_packets;   // of a frame, all but the last with `full` bytes
  uint16_t full, last;  // bytes with the RTP header
  // Every `gop` frames a frame has these values instead.
  unsigned gop, key_packets;
  uint16_t key_last;
} RelayShape;

// Returns the shape of this name, or NULL.
const RelayShape *relay_shape (const char *name);
extern const RelayShape relay_sound;

// The payloads of all packets of a frame, each with room for a stamp at its end.
typedef struct {
  unsigned n;
  struct {
    size_t len; // with the RTP header
    uint8_t *payload;
  } packets[32];
} RelayFrame;

// Fills `out` with a frame's payloads. They stay in memory until the process ends.
void relay_frame_make (RelayFrame *out, const RelayShape *shape, int key);

// The media descriptions of SDP. `sound`: with a second track.
const char *relay_sdp (int sound);
