// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// SRTP for one reader (RFC 3711; with GCM: RFC 7714), by OpenSSL's libcrypto.
//
// The plugin registers the GObject type `WeirSrtp`. A program creates one for the keys that it has
// agreed on with a reader, with g_object_new (g_type_from_name ("WeirSrtp"), ...), and gives a
// token of it to sinks in place of a host name. The reader's packets are then encrypted. Its
// sequence numbers begin below 32768, and continue when it is removed and added again, so its
// roll-over counter begins with 0. A token is for one sink of RTP, and one of RTCP, at a time.
//
//   destination  string, construct-only. An IP address, or the token of a WeirConnection
//   profile      string, construct-only. "AES_CM_128_HMAC_SHA1_80" (default),
//                "AEAD_AES_128_GCM", or "none": without keys, nothing is encrypted, and what comes
//                is taken as it is
//   send-key     GBytes, construct-only. Master key and salt of the sender: 30 bytes, or 28 with
//                GCM. No two objects may have the same
//   receive-key  GBytes, construct-only. Master key and salt of the reader
//   transport-id  uint, construct-only, up to 14. Unless it is 0 (default), each packet with
//   `token`
//                has a transport-wide number (see add-stream) in the header extension with this id,
//                beside its own elements; but not if its own extension has another form
//   token        string, read-only. Packets of sinks keep their SSRC and payload type with it. NULL
//                if a key has another length, the profile is unknown, or there is no memory
//   next-seq     action (guint seq) -> guint. Returns the sequence number with which the reader
//                of `token` begins at the stream's packet `seq`
//   add-stream   action (GstStructure stream) -> string. Returns a token for packets with a header
//                of the reader's own; NULL if a field is not valid or an SSRC is in use in this
//                object. Fields: "ssrc" and "payload-type", guint; for retransmissions (RFC 4588)
//                "rtx-ssrc" and "rtx-payload-type", guint; "extensions", GBytes: the elements of
//                the one-byte form of RFC 8285 that each packet has, at most 24 bytes, 3 less with
//                "transport-id", guint: the id of the element with the transport-wide number
//                (draft-holmer-rmcat-transport-wide-cc-extensions-01), of which all streams of the
//                object share one row; a stream with it and without retransmissions of its own
//                sends nothing again. The packets' own header extensions are left out. Within a
//                WeirConnection, packets have the framing of RFC 4571; those of `token` are
//                interleaved as in RTSP
//   set-destination  action (string destination). For readers that are added from now on
//   protect      action (gpointer data, guint size, guint room) -> gint. Protects an RTCP packet
//                of the program in place; it grows by at most 20 bytes. Returns its length, or -1
//                if it is no RTCP or `room`, the size of the buffer, does not suffice
//   unprotect    action (gpointer data, guint size) -> gint. Checks and decrypts an SRTCP packet in
//                place. Returns its length, or -1 if it is not authentic or was received before
//   unprotect-rtp  action (gpointer data, guint size) -> gint. The same for an SRTP packet
//   feedback     action (gpointer data, guint size, guint64 now). Takes what an RTCP packet of the
//                reader, as unprotect left it, tells of streams with a "transport-id": when packets
//                arrived, and what rate the reader asks for (REMB). `now` is in ns of
//                CLOCK_MONOTONIC. Nothing is sent again with an SSRC of its own while the line is
//                congested
//   read-estimate  action (gpointer view, guint64 now) -> gboolean. Fills in a WeirEstimateView
//                (core/net/estimate.h): what the line carries. Returns FALSE without such streams
//
// The actions may be called from any thread.

#include <gst/gst.h>

#include "core/net/conn.h"
#include "core/net/protect.h"

G_BEGIN_DECLS

// Registers the type.
void weir_srtp_register (void);

// Reports whether `host` has the form of a token. Such a string is never looked up as a host name.
gboolean weir_srtp_is_token (const gchar *host);

// Finds a token. Returns its destination (transfer full), its framing on a connection, and the
// operations for a reader, which the caller releases; NULL if no WeirSrtp has it.
gchar *weir_srtp_lookup (const gchar *token, WeirProtect *protect, WeirFraming *framing);

// Returns `seq` as it is for the reader of a token, or unchanged if `host` is none.
guint16 weir_srtp_map_seq (const gchar *host, guint16 seq);

G_END_DECLS
