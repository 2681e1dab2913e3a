// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The streams of the bench `relay` as both of its ends know them: the origin that sends them, and
// the readers behind the measured server.
//
// Each RTP payload ends with a stamp: its stream, track and session, its number, and when it was
// sent. So readers know each packet, whatever headers the server has written, what is missing, and
// how long each packet took. All bytes of a stamp are 128 or more, so that no parser of H.264 finds
// a start code in it, and a packet is a NAL unit, so that no server has a reason to cut it anew.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RELAY_S INT64_C (1000000000)
#define RELAY_SLOT_NS (RELAY_S / 10) // packets are counted by the slot in which they were sent
#define RELAY_STAMP 24               // bytes
#define RELAY_MESSAGE_MAX 8192       // the longest RTSP message or interleaved frame

typedef struct {
  uint32_t stream, session; // below 2^21
  uint8_t track;            // 0: video, 1: sound
  uint64_t seq;             // from 0 in each session, below 2^35
  int64_t sent_ns;          // CLOCK_MONOTONIC
} RelayStamp;

void relay_stamp_write (uint8_t out[RELAY_STAMP], const RelayStamp *stamp);

// Reads the stamp at the end of a payload. Returns false if it has none.
bool relay_stamp_read (const uint8_t *payload, size_t len, RelayStamp *out);

// Returns the length of the first RTSP message with its body, or interleaved frame, in `data`; 0 if
// it is incomplete; -1 if it cannot be one.
ssize_t relay_message_len (const char *data, size_t len);

// Copies the value of a header of a message, cut to `size` - 1 characters. Returns false, with an
// empty `out`, if the message lacks it.
bool relay_header (const char *message, size_t len, const char *name, char *out, size_t size);

// Sets an address and a port from "ADDRESS:PORT..." in `text`, an IPv4 address. Returns false if it
// is none.
struct sockaddr_in;
bool relay_address (const char *text, struct sockaddr_in *out);
