// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Weir in a program that serves with gst-rtsp-server: one call. pkg-config knows it
// as weir-rtsp-0.1. All of it since 0.1, but where another version stands.

#include <gst/rtsp-server/rtsp-server.h>

#include "weir.h"

G_BEGIN_DECLS

// Gives a server the engine, for every reader over UDP and over TCP (interleaved) that connects
// from now on: weir_use_fanoutsink(), and one writer for each connection, through which answers and
// media leave in order without ever waiting for a reader. TLS and HTTP tunnels, and streams that
// the program allows over TCP only, stay as the library does them. Call it after gst_init() and
// before the server is attached. FALSE and an error if the plugin is not there; then all is as it
// was.
gboolean weir_serve (GstRTSPServer *server, GError **error);

// Why the engine closed this client's connection; NULL if it did not. To be freed.
gchar *weir_client_get_close_reason (GstRTSPClient *client);

// From a handler of pre-describe-request or another such signal: puts the request aside, so that
// waiting for something holds up nobody else whom the thread serves. Where it gives TRUE the
// handler returns any status but OK, which is not answered; weir_client_resume(), from any thread
// and once, has the request handled anew, and then those that have come behind it, in their order.
// A client that has too many of them is closed. FALSE: the library writes by itself, or the
// client's GstRTSPAuth has been set since it connected.
gboolean weir_client_defer (GstRTSPClient *client, GstRTSPContext *ctx);
void weir_client_resume (GstRTSPClient *client);

// Whether the request at hand is one that was put aside.
gboolean weir_client_was_deferred (GstRTSPClient *client, GstRTSPContext *ctx);

// Whether a transport of a session is TCP. Those that the engine serves say in their
// `lower_transport` that they are UDP.
gboolean weir_transport_is_tcp (const GstRTSPTransport *transport);

// The fanoutsink that sends a stream's RTP, with a reference; NULL if it has none, or another sink
// does.
GstElement *weir_stream_find_sink (GstRTSPStream *stream);

// What a reader over UDP last reported of its track. To be freed; NULL if there is nothing yet, or
// never: over TCP and with SRTP. Any thread that holds the transport.
//   reports        guint64  how many have come
//   age            gint64   ns since this one
//   ssrc           guint    of the stream that it is about
//   fraction-lost  gdouble  0 to 1, since the report before
//   packets-lost   gint     in all; negative where some came twice
//   highest-seq    guint    the furthest sequence number, with the number of wraps above 16 bits
//   jitter         guint    ticks of the stream's clock
//   round-trip     gint64   ns; only if it names a sender report that was sent
GstStructure *weir_transport_get_report (GstRTSPStreamTransport *transport);

// Of a media that knows more of the header RTP-Info than the library does: what the next packet of
// a stream will be, where its sink can't tell. FALSE: nothing is said of it. In the client's
// thread.
typedef gboolean (*WeirRtpInfoFunc) (
    GstRTSPStream *stream, guint *seq, guint *rtptime, gpointer data);

// Before the media is prepared. `notify` frees the data with the media. A `func` of NULL: what the
// library says of its streams is true, and the sinks are not asked, as where each PLAY seeks.
void weir_media_set_rtp_info_func (
    GstRTSPMedia *media, WeirRtpInfoFunc func, gpointer data, GDestroyNotify notify);

// What RTCP came over UDP for a stream, as guint64. To be freed; NULL before its first SETUP, for
// who records and with SRTP.
//   reports    of readers
//   passed     packets of readers that went on to the library: they hold feedback
//   strangers  from addresses that are no reader's; they go on where multicast is allowed
//   malformed
GstStructure *weir_stream_get_report_counts (GstRTSPStream *stream);

G_END_DECLS
