// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes datagrams of whole packets of 188 bytes from those that senders of MPEG-TS make otherwise:
// datagrams that end within a packet, as FFmpeg's without pkt_size, packets with a time before them
// (192 bytes) or error correction behind them (204, 208), and RTP headers before them.

#include <glib.h>

#define TS_FRAMER_PACKET 188
#define TS_FRAMER_STRIDE_MAX 208

// Zeroed at first. All fields are private.
typedef struct {
  guint8 rest[TS_FRAMER_STRIDE_MAX]; // the beginning of a packet that the next datagram ends
  gsize n_rest;
  gsize stride; // from one packet to the next; 0: not known
  gsize skip;   // bytes of the next datagram that are behind its packets
} TsFramer;

// Reports whether the datagram consists of whole packets, and nothing else is waited for: then it
// can be used as it is.
gboolean ts_framer_is_whole (const TsFramer *self, const guint8 *data, gsize len);

// Appends the whole packets that a datagram, and what was kept of the one before, have. Keeps the
// beginning of another one. Returns FALSE if there are no packets in the datagram.
gboolean ts_framer_push (TsFramer *self, const guint8 *data, gsize len, GByteArray *out);
