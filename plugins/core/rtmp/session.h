// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The server's side of one RTMP connection on which a client publishes ("Adobe's Real Time
// Messaging Protocol", 1.0): handshake, commands, acknowledgements. It has no socket: bytes go in,
// events and bytes to send come out. Playing is refused.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RTMP_RANDOM 1528           // bytes of the handshake
#define WEIR_RTMP_COMMAND_MAX 16384     // bytes of a message before the client may publish
#define WEIR_RTMP_MESSAGE_MAX (4 << 20) // bytes of a message afterwards

typedef enum {
  WEIR_RTMP_PUBLISH,  // the client asks for a stream; answer before you read on
  WEIR_RTMP_METADATA, // what the stream has; `data` is the values of the message, in AMF 0
  WEIR_RTMP_AUDIO,    // `data` is the body of an FLV tag
  WEIR_RTMP_VIDEO,
  WEIR_RTMP_END, // the client ends the stream
} WeirRtmpEventType;

// Everything that the pointers point to is valid until the next weir_rtmp_session_read().
typedef struct {
  WeirRtmpEventType type;
  uint32_t timestamp; // ms; wraps
  const uint8_t *data;
  size_t len;
  const char *app, *name; // of WEIR_RTMP_PUBLISH, not NULL; may be any text
} WeirRtmpEvent;

typedef struct _WeirRtmpSession WeirRtmpSession;

// `random` is what the handshake sends. NULL: no memory.
WeirRtmpSession *weir_rtmp_session_new (const uint8_t random[WEIR_RTMP_RANDOM]);
void weir_rtmp_session_free (WeirRtmpSession *self);

// Reads on until something has happened. Returns 1 with `event`; 0 if the bytes end before that, or
// if there are bytes to send first; or -1, after which only weir_rtmp_session_get_problem() and the
// functions for bytes to send are of use. `*used` is how many of the `len` bytes were read: give
// the others again, with more behind them, as they may be a part of a header.
int weir_rtmp_session_read (
    WeirRtmpSession *self, const uint8_t *data, size_t len, size_t *used, WeirRtmpEvent *event);

// Says what the client has done wrong, for a log. (static)
const char *weir_rtmp_session_get_problem (const WeirRtmpSession *self);

// Answer WEIR_RTMP_PUBLISH. `code` is the one of an onStatus, such as "NetStream.Publish.BadName";
// `text` says why in up to 256 bytes. Return false if there is no memory.
bool weir_rtmp_session_accept (WeirRtmpSession *self);
bool weir_rtmp_session_refuse (WeirRtmpSession *self, const char *code, const char *text);

// Returns the bytes to send, and how many they are; and drops the first `len` of them.
const uint8_t *weir_rtmp_session_get_output (const WeirRtmpSession *self, size_t *len);
void weir_rtmp_session_drop_output (WeirRtmpSession *self, size_t len);
