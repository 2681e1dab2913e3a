// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys of a session with one reader, and the streams that it gets with them, for WeirSrtp.
// Objects have references, because readers of sinks may outlive the WeirSrtp. Call from any thread.

#include <glib.h>

#include "core/net/protect.h"
#include "core/webrtc/look.h"
#include "core/webrtc/srtp.h"
#include "srtpline.h"

G_BEGIN_DECLS

typedef struct _SrtpSession SrtpSession;
typedef struct _SrtpStream SrtpStream;

// Returns a session, or NULL if a key has not the length that the profile asks for, or there is no
// memory. The bytes are a master key and the salt after it.
SrtpSession *srtp_session_new (WeirSrtpProfile profile, GBytes *send_key, GBytes *receive_key);

// Returns a session that encrypts nothing, and takes what comes as it is.
SrtpSession *srtp_session_new_plain (void);
void srtp_session_unref (SrtpSession *session);

// Protects an RTCP packet of `size` bytes in place, in a buffer of `room` bytes. Returns its
// length, or -1 if it is not RTCP or the room does not suffice.
gint srtp_session_protect_rtcp (SrtpSession *session, guint8 *data, guint size, guint room);

// Decrypt a packet of the reader in place. Return its length, or -1 if it is not authentic or was
// received before.
gint srtp_session_unprotect_rtcp (SrtpSession *session, guint8 *data, guint size);
gint srtp_session_unprotect_rtp (SrtpSession *session, guint8 *data, guint size);

// Returns the line to the reader, or NULL: no stream of the session has transport-wide numbers.
SrtpLine *srtp_session_get_line (const SrtpSession *session);

// Returns a stream of the session. With `look` NULL its packets keep their headers. Returns NULL if
// there is no memory. Only one thread at a time adds streams.
SrtpStream *srtp_stream_new (SrtpSession *session, const WeirLook *look);
void srtp_stream_unref (gpointer stream);

// Reports whether a stream with a look sends packets or retransmissions with this SSRC; FALSE for
// 0, which stands for none.
gboolean srtp_stream_has_ssrc (const SrtpStream *stream, guint32 ssrc);

// Returns the operations for one reader, which hold a reference.
WeirProtect srtp_stream_get_protect (SrtpStream *stream);

G_END_DECLS
