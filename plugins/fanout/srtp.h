// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// SRTP (RFC 3711) for one track of one reader: AES-CM with 128 bits, HMAC-SHA1 with a tag of 80
// bits.
//
// The plugin registers the GObject type `WeirSrtp` if it was built with libsrtp2. A program creates
// one with g_object_new (g_type_from_name ("WeirSrtp"), ...), and gives its `token` to the sinks of
// the track's RTP and RTCP in place of a host name. The reader's packets are then encrypted. Its
// sequence numbers begin below 32768, and continue when it is removed and added again, so its
// rollover counter begins with 0.
//
//   destination  string, construct-only. An IP address, or the token of a WeirConnection
//   send-key     GBytes, construct-only. Master key and salt of the sender, 30 bytes. No two
//   objects
//                may have the same
//   receive-key  GBytes, construct-only. Master key and salt of the reader, for its RTCP
//   token        string, read-only. NULL if a key has another length, or there is no memory
//   next-seq     action (guint seq) -> guint. Returns the sequence number with which the reader
//                begins at the stream's packet `seq`
//   unprotect    action (gpointer data, guint size) -> gint. Checks and decrypts an SRTCP packet in
//                place. Returns its length, or -1 if it is not authentic or was received before

#include <gst/gst.h>

#include "core/net/protect.h"

G_BEGIN_DECLS

#define WEIR_SRTP_KEY_BYTES 30

// Registers the type. Without libsrtp2 it does nothing.
void weir_srtp_register (void);

// Reports whether `host` has the form of a token. Such a string is never looked up as a host name.
gboolean weir_srtp_is_token (const gchar *host);

// Finds a token. Returns its destination (transfer full), and the operations for a reader, which
// the caller releases; NULL if no WeirSrtp has it.
gchar *weir_srtp_lookup (const gchar *token, WeirProtect *protect);

// Returns `seq` as it is for the reader of a token, or unchanged if `host` is none.
guint16 weir_srtp_map_seq (const gchar *host, guint16 seq);

G_END_DECLS
