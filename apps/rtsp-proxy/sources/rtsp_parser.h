// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Splits the bytes of an RTSP connection (RFC 2326) into messages and interleaved packets. All
// lengths are bounded, because the peer may be hostile.

#include <glib.h>

#define RTSP_HEAD_MAX (16 * 1024) // bytes of a message's lines
#define RTSP_BODY_MAX (64 * 1024) // bytes
#define RTSP_HEADERS_MAX 64       // further headers are ignored
// The longest incomplete message or packet that a parser keeps, in bytes.
#define RTSP_KEPT_MAX (RTSP_HEAD_MAX + RTSP_BODY_MAX)

typedef struct {
  const gchar *name, *value;
} RtspHeader;

// A message. Its strings are valid during the callback.
typedef struct {
  const gchar *method; // of a request; NULL: this is a response
  const gchar *uri;    // of a request
  guint status;        // of a response, from 100 to 999
  RtspHeader headers[RTSP_HEADERS_MAX];
  guint n_headers;
  const gchar *body; // with a 0 behind it
  gsize body_len;
} RtspMessage;

// Returns the value of the header `name` number `nth`, from 0, or NULL.
const gchar *rtsp_message_get (const RtspMessage *self, const gchar *name, guint nth);

// Bytes between two packets that are skipped, at most.
#define RTSP_SKIP_MAX (64 * 1024)

// Callbacks; each may call rtsp_parser_stop().
typedef struct {
  void (*message) (gpointer data, const RtspMessage *message);
  // Takes an interleaved packet. Its bytes may be changed.
  void (*packet) (gpointer data, guint8 channel, guint8 *bytes, gsize len);
  // Says that bytes were skipped that are neither a message nor a packet. May be NULL.
  void (*skipped) (gpointer data);
} RtspParserOps;

typedef struct {
  const RtspParserOps *ops;
  gpointer data;
  guint8 *kept; // an incomplete message or packet
  gsize n_kept;
  gboolean stopped;
  guint64 channels[4]; // bit `c % 64` of number `c / 64`: packets of channel c are expected
  gboolean is_synced;  // a packet of such a channel came
  gboolean is_lost;    // looks for the next packet or answer
  gsize n_skipped;     // since the last one
} RtspParser;

// Initialises a parser. Free its memory with rtsp_parser_clear().
void rtsp_parser_init (RtspParser *self, const RtspParserOps *ops, gpointer data);
void rtsp_parser_clear (RtspParser *self);

// Says that packets of a channel are expected. After the first of them, bytes that are neither a
// message nor a packet are skipped up to the next packet of such a channel, or answer; at most
// RTSP_SKIP_MAX of them.
void rtsp_parser_expect (RtspParser *self, guint8 channel);

// Has rtsp_parser_take() return without another callback.
void rtsp_parser_stop (RtspParser *self);

// Moves the bytes that were kept to `buffer`, which has room for RTSP_KEPT_MAX bytes. Returns their
// number. New bytes go behind them.
gsize rtsp_parser_restore (RtspParser *self, guint8 *buffer);

// Parses `len` bytes, which the function changes; `bytes[len]` must be writable. Keeps the
// incomplete rest. Returns NULL, or why the bytes are not RTSP.
const gchar *rtsp_parser_take (RtspParser *self, guint8 *bytes, gsize len);
