// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir for programs that serve with gst-rtsp-server. The pkg-config module is weir-rtsp-0.1.
// Everything here is available since 0.1, unless the comment names another version.

#include <gst/rtsp-server/rtsp-server.h>

#include "weir.h"

G_BEGIN_DECLS

// Makes `server` serve every reader over UDP and TCP (interleaved) that connects from now on with
// fanoutsink. Calls weir_use_fanoutsink(), and gives each connection one writer, which sends
// responses and media in order and never waits for a reader. gst-rtsp-server still serves TLS
// connections, HTTP tunnels, and streams that the program allows over TCP only. Call this after
// gst_init() and before the server is attached. Returns FALSE and an error, and changes nothing, if
// GStreamer does not find the plugin.
gboolean weir_serve (GstRTSPServer *server, GError **error);

// Returns the reason for which Weir closed this client's connection, such as "the client stopped
// reading"; NULL if Weir did not close it. The caller owns the result. Call in a handler of the
// client's `closed`.
gchar *weir_client_get_close_reason (GstRTSPClient *client);

// Returns the number of bytes that wait because the client does not read. They are less than 384
// KiB: Weir closes a client before. A response of up to 264 KiB is taken while none waits; else
// responses must not wait with more than 64 KiB. Returns 0 if gst-rtsp-server writes to this client
// by itself. Call from any thread, with a reference to the client.
guint64 weir_client_get_waiting (GstRTSPClient *client);

// Sends a frame of an interleaved channel, such as RTCP to a client that records, between the
// responses. `len` is at most 65535 bytes. Returns FALSE if the client does not read, or if
// gst-rtsp-server writes to this client by itself: then nothing is sent. Call from any thread, with
// a reference to the client.
gboolean weir_client_send_frame (
    GstRTSPClient *client, guint8 channel, gconstpointer data, gsize len);

// Defers the current request, so that the other clients of the thread do not wait with it. Call
// this in a handler of pre-describe-request or another pre-*-request signal. If it returns TRUE,
// the handler returns any status but OK, and the client gets no response yet. Defer a SETUP of a
// session in the check of the client's GstRTSPAuth instead, with the result FALSE: gst-rtsp-server
// leaks the session if pre-setup-request returns another status than OK. Later call
// weir_client_resume() once, from any thread: the client's thread handles the request again, and
// then the requests that arrived after it, in order. A client that sends too many requests
// meanwhile is closed. Returns FALSE if gst-rtsp-server writes to this client by itself (TLS, HTTP
// tunnel), or if the program has set the client's GstRTSPAuth since it connected.
gboolean weir_client_defer (GstRTSPClient *client, GstRTSPContext *ctx);
void weir_client_resume (GstRTSPClient *client);

// Reports whether the current request was deferred and is now handled again.
gboolean weir_client_was_deferred (GstRTSPClient *client, GstRTSPContext *ctx);

// Reports whether requests of a client wait: a deferred one, or those behind it. Call from any
// thread.
gboolean weir_client_has_deferred (GstRTSPClient *client);

// Reports whether a transport of a session is TCP. The `lower_transport` of a TCP transport that
// Weir serves says UDP.
gboolean weir_transport_is_tcp (const GstRTSPTransport *transport);

// Reports whether a datagram, whatever its content, has come to the server from the UDP ports that
// the client of a session named, since it last named one. Most players send one before or soon
// after PLAY. Until then, the ports may be those of somebody else with the client's address. Call
// from any thread.
gboolean weir_session_is_heard (GstRTSPSession *session);

// Reports whether a stream is served over TCP only, because no UDP ports were free when its media
// was prepared, or at its first SETUP. Call from any thread.
gboolean weir_stream_is_tcp_only (GstRTSPStream *stream);

// Returns the fanoutsink that sends the RTP packets of a stream, or NULL if there is none. The
// caller owns the reference.
GstElement *weir_stream_find_sink (GstRTSPStream *stream);

// Reports whether a stream can be served to a client with SRTP: if Weir serves the client.
gboolean weir_client_can_use_srtp (GstRTSPClient *client, GstRTSPStream *stream);

// Encrypts what the reader of a transport gets, over UDP or TCP, with AES-CM (128 bits) and
// HMAC-SHA1 (80 bits), and takes only RTCP of the reader that is encrypted with `receive_key`. A
// key is 30 bytes: the master key and its salt; never use a `send_key` twice. Keys and profile are
// the program's to negotiate: gst-rtsp-server must see RTP/AVP. The reader's rollover counter
// begins with 0, as its sequence numbers begin below 32768; RTP-Info has them. Call this in a
// handler of the client's `send-message`, for the response to a SETUP that succeeds, or clear the
// SRTP of the transport's earlier SETUP there.
void weir_transport_set_srtp (GstRTSPClient *client, GstRTSPStreamTransport *transport,
    GBytes *send_key, GBytes *receive_key);
void weir_transport_clear_srtp (GstRTSPStreamTransport *transport);
gboolean weir_transport_has_srtp (GstRTSPStreamTransport *transport);

// Gives the packets that the reader of a transport over UDP gets a transport-wide sequence number
// (draft-holmer-rmcat-transport-wide-cc-extensions-01), in the element `id`, 1 to 14, of their
// header extension (RFC 8285), and takes the reader's feedback on them. The packets get sequence
// numbers of the reader's own, too; the kernel path does not send them. The program must have told
// the reader of the id. Call it where weir_transport_set_srtp() may be called. Does nothing over
// TCP, and for a transport with SRTP.
void weir_transport_set_feedback (
    GstRTSPClient *client, GstRTSPStreamTransport *transport, guint id);

// Reads what the line to that reader carries at `now`, ns of the monotonic clock. `view` is a
// WeirEstimateView (core/net/estimate.h). Returns FALSE, and leaves it, without
// weir_transport_set_feedback(). Call from any thread, with a reference to the transport.
gboolean weir_transport_read_line (GstRTSPStreamTransport *transport, guint64 now, gpointer view);

// Reads the same of a client's connection, by what waits in its socket. Returns FALSE if
// gst-rtsp-server writes to this client by itself. Call from any thread, with a reference to the
// client.
gboolean weir_client_read_line (GstRTSPClient *client, guint64 now, gpointer view);

// Reports whether any track of a session has SRTP.
gboolean weir_session_media_has_srtp (GstRTSPSessionMedia *media);

// Returns the number of RTCP packets from readers with SRTP that were dropped because they were not
// authentic, or had been received before.
guint64 weir_srtp_get_refused (void);

// Returns the last receiver report of a reader over UDP about its track. Returns NULL if there is
// none yet, and always over TCP and with gst-rtsp-server's own SRTP. Reports from before the
// stream's first sender report are not stored. The caller owns the result. Call from any thread,
// with a reference to the transport, which gst_rtsp_session_media_get_transport() returns.
//   reports        guint64  number of reports so far
//   age            gint64   time since this report, in ns
//   ssrc           guint    SSRC of the stream that the report is about
//   fraction-lost  gdouble  packet loss since the previous report, from 0 to 1
//   packets-lost   gint     packets lost in total; negative if more were duplicated than lost
//   highest-seq    guint    highest sequence number, extended to 32 bits by the number of wraps
//   jitter         guint    interarrival jitter, in ticks of the stream's RTP clock
//   round-trip     gint64   round-trip time in ns; only if the report names a known sender report
GstStructure *weir_transport_get_report (GstRTSPStreamTransport *transport);

// Returns a number that rises with each report that weir_transport_get_report() returns, until the
// next SETUP of the transport, so that a program can ask cheaply whether there is a new one. Read
// it atomically, and release it with g_atomic_rc_box_release(). Returns NULL over TCP. Call from
// any thread, with a reference to the transport.
guint64 *weir_transport_ref_report_count (GstRTSPStreamTransport *transport);

// Sets `seq` and `rtptime` to the numbers of a stream's next packet, for the header RTP-Info.
// Called in the client's thread, for a stream whose sink does not know its next packet. Returns
// FALSE to leave the stream out of the header.
typedef gboolean (*WeirRtpInfoFunc) (
    GstRTSPStream *stream, guint *seq, guint *rtptime, gpointer data);

// Sets the function that completes the header RTP-Info of a media. Call this before the media is
// prepared. `notify` frees `data` with the media; it may be NULL. If each PLAY of the media seeks,
// set `func` to NULL: gst-rtsp-server then writes the header, and the sinks are not asked.
void weir_media_set_rtp_info_func (
    GstRTSPMedia *media, WeirRtpInfoFunc func, gpointer data, GDestroyNotify notify);

// Returns an element (floating) that stands in for `rtpbin` in a media that only sends packets with
// times, to clients of a server that was given to weir_serve(): return it from create_rtpbin of the
// class of the media. It has neither a thread nor an RTP session, and a thread of the process reads
// the RTCP that comes over UDP for all such medias. It sends a sender report each second while
// packets leave, and BYE at the end of a stream. It has no retransmission, and asks nothing of
// upstream.
GstElement *weir_sender_bin_new (void);

// A media whose payloaders only pass RTP on, such as `rtprelaypay`. It costs no thread and has no
// RTP session, so that a server can have thousands. Its streaming threads send the sender reports;
// two threads of the process do the rest for all such medias. Keyframe requests go upstream. It
// serves RTP/AVP over UDP unicast and TCP, to clients of a server that was given to weir_serve();
// SRTP is possible by weir_transport_set_srtp(). There is no multicast, no retransmission, and no
// recording. Use it with gst_rtsp_media_factory_set_media_gtype(). The program may set the property
// `ipv6` (gboolean, TRUE by default) to FALSE before the media is prepared: then a track has two
// sockets instead of four.
#define WEIR_TYPE_RELAY_MEDIA (weir_relay_media_get_type ())
GType weir_relay_media_get_type (void);

// Sets `ntp` to the wall-clock time (32.32 seconds since 1900) of an RTP timestamp of a stream.
// Called on a thread of the library, without a lock. Returns FALSE if the time is not known: then
// readers get no sender report.
typedef gboolean (*WeirNtpTimeFunc) (
    GstRTSPStream *stream, guint timestamp, guint64 *ntp, gpointer data);

// Sets the clock for the sender reports of a WEIR_TYPE_RELAY_MEDIA. Without it, and with NULL, the
// time of a packet is that of its arrival. Call this before the media is prepared. `notify` frees
// `data` with the media; it may be NULL.
void weir_relay_media_set_ntp_func (
    GstRTSPMedia *media, WeirNtpTimeFunc func, gpointer data, GDestroyNotify notify);

// Returns counts of the RTCP packets that arrived over UDP for a stream, each a guint64. Returns
// NULL before the first SETUP of the stream, for a stream that a client records, and with SRTP. The
// caller owns the result.
//   reports    receiver reports of readers
//   passed     packets of readers that went to gst-rtsp-server, because they hold feedback
//   strangers  packets from unknown addresses; they go to gst-rtsp-server if multicast is allowed
//   malformed  packets that are not RTCP
GstStructure *weir_stream_get_report_counts (GstRTSPStream *stream);

G_END_DECLS
