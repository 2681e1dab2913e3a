// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of the RTSP client: rtsp_client.c (its connection, its requests and its end),
// rtsp_client_steps.c (the answers, and the request that follows each), rtsp_client_sdp.c (the
// tracks of a description) and rtsp_client_media.c (packets and RTCP). Everything runs in the
// thread of rtsp_loop.h, but for the callbacks of tracks, which also run in threads of
// ingest/engine.h.

#include <gst/rtsp/rtsp.h>

#include "sources/engine_tracks.h"
#include "sources/rtsp_auth.h"
#include "sources/rtsp_client.h"
#include "sources/rtsp_link.h"
#include "sources/rtsp_loop.h"

typedef enum {
  RTSP_CONNECTING,
  RTSP_OPTIONS,
  RTSP_DESCRIBE,
  RTSP_SETUP,
  RTSP_PLAY,
  RTSP_PLAYING,
  RTSP_RESTARTING, // waits for the answer to TEARDOWN, then begins again over TCP
  RTSP_ENDED,      // waits until it is closed
  RTSP_LEAVING,    // waits for the answer to TEARDOWN, then is gone
} RtspStep;

typedef struct _RtspClient RtspClient;

// A payload type of an m= line.
typedef struct {
  guint8 payload;
  gboolean is_extra; // goes with another one: retransmission, error correction, keys of telephones
  GstCaps *caps;     // NULL: it cannot be relayed
} RtspFormat;

typedef struct {
  EngineTrack media; // first; in the engine once it is set up
  RtspClient *client;
  gchar *url;                // of SETUP
  GPtrArray *formats;        // of RtspFormat, of its m= line
  gint payload;              // number of the described one, which is that of media.caps; atomic
  gint64 described_ns;       // when it came last
  WeirIngestSockets sockets; // opened for SETUP, until the engine takes them
  guint16 port;              // of the first socket
  gboolean interleaved;
  guint8 channels[2]; // of RTP and RTCP
  guint64 base;       // RTP timestamp from RTP-Info, or RELAY_NO_BASE; atomic
  gint64 said_bye;    // ns; when the sender said BYE, and sent nothing since; 0: not; atomic
} RtspTrack;

// The request that waits for its answer.
typedef struct {
  const gchar *method; // NULL: none
  gchar *uri;
  gchar *lines; // further headers, or NULL
  guint cseq;
  guint n_challenges; // answers with 401
} RtspRequest;

struct _RtspClient {
  LoopWatch watch; // first
  Loop *loop;
  gatomicrefcount refs;
  const PullContext *context; // NULL once closed
  GDestroyNotify closed;      // set by the close
  gpointer closed_data;
  PullConfig config; // a copy of what is used: the context's may be gone before the end
  GstRTSPUrl *url;   // of the configuration
  gboolean tls;
  RtspStep step;
  gboolean over_tcp;
  RtspLink *link; // NULL while there is no connection
  gboolean is_connected;
  gint64 replace_from; // ns; when a connection that ends may be replaced at once
  gboolean is_replaced_twice;
  RtspAuth auth;
  RtspRequest request;
  guint cseq;
  guint n_superseded; // requests that later ones replaced, and that are not answered yet
  guint n_describes;
  gchar *uri; // of DESCRIBE
  gchar *session_uri;
  gchar *session;          // its identifier, or NULL
  guint session_timeout_s; // of the server; 0: it does not say
  gboolean asks_options;   // before DESCRIBE
  gboolean knows_methods;  // the server has answered OPTIONS
  gboolean keeps_by_options;
  gboolean plays_each;   // the server does not play all tracks at once
  gint64 keep_alive_due; // ns
  gint64 played;         // ns; when PLAY was answered
  gint64 from;           // where it is asked to play from, ns
  gboolean has_place;    // the server plays a stored title
  TitlePlace place;      // of this session
  gint64 leave_by;       // ns; the end of the wait for the answer to TEARDOWN
  GPtrArray *tracks;     // of RtspTrack
  guint at;              // the track that is set up or played next
  guint refused;         // status of the last SETUP that was refused, or 0
  guint refusal;         // status of the first DESCRIBE, which is repeated after OPTIONS; or 0
  gboolean began_anew;   // on a new connection, after that
  UdpStats drops;        // of the tracks that are gone
  GMutex describing;     // of the formats of tracks, of `describes`, and held when `begun` ends
  gboolean describes;    // the relay is told that a track has another format
  gint begun;            // atomic: the relay knows the tracks
  gint heard;            // atomic: a packet has arrived since PLAY
};

// ---- rtsp_client.c ----

RtspClient *rtsp_client_ref (RtspClient *self);
void rtsp_client_unref (gpointer self);

// Reports whether packets are taken: they may come before the answer to PLAY.
static inline gboolean
rtsp_client_plays (const RtspClient *self)
{
  return self->step == RTSP_PLAY || self->step == RTSP_PLAYING;
}

// Connects to the server.
void rtsp_client_connect (RtspClient *self);

// Sends a request. `lines` are further headers, each with its line end, or NULL.
void rtsp_client_send (RtspClient *self, const gchar *method, const gchar *uri, const gchar *lines);

// Ends the run, for this reason.
void rtsp_client_end (RtspClient *self, const gchar *reason);

// Ends the session and begins another one over TCP.
void rtsp_client_restart_over_tcp (RtspClient *self);

// ---- rtsp_client_steps.c ----

// Ends the run, as the server refused a request.
void rtsp_client_end_by_status (RtspClient *self, const gchar *method, guint status);

// Sends the first request of a connection.
void rtsp_client_begin (RtspClient *self);
// Begins again with OPTIONS if the server may want it first. Returns FALSE if that was tried.
gboolean rtsp_client_begin_again (RtspClient *self);
void rtsp_client_take_answer (RtspClient *self, const RtspMessage *answer);
void rtsp_client_keep_alive (RtspClient *self, gint64 now);
// Answers a request of the server.
void rtsp_client_take_request (RtspClient *self, const RtspMessage *request);

// ---- rtsp_client_sdp.c ----

// Reads a description: sets the tracks, the URI of the session, and the title's length. Returns
// FALSE if it is not SDP.
gboolean rtsp_client_read_sdp (RtspClient *self, const gchar *base, const RtspMessage *answer);

void rtsp_format_free (gpointer format);

// Returns where the answer to PLAY says that the session begins, in ns of the title's time.
gint64 rtsp_client_read_from (RtspClient *self, const RtspMessage *answer);

// Sets the tracks' bases from an RTP-Info header.
void rtsp_client_read_rtp_info (RtspClient *self, const gchar *text);

// ---- rtsp_client_media.c ----

extern const EngineTrackGate rtsp_track_gate;

void rtsp_track_free (gpointer track);

// Opens the sockets of a track for UDP. Returns FALSE if there are none.
gboolean rtsp_track_open_sockets (RtspTrack *self);

// Makes a track ready for packets, over the connection or from a server that `transport` names.
// Returns FALSE if the system refuses.
gboolean rtsp_track_begin (RtspTrack *self, const GstRTSPTransport *transport);

// Tells the relay the tracks that are set up. Returns FALSE if there is none.
gboolean rtsp_client_begin_media (RtspClient *self);
// Reports whether all senders said BYE, and nothing came since.
gboolean rtsp_client_has_left (RtspClient *self, gint64 now);
void rtsp_client_take_packet (RtspClient *self, guint8 channel, guint8 *bytes, gsize len);
