// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One track of one reader: what its SDP says, where it comes in, and what is measured of it.

#include <glib.h>
#include <sys/socket.h>

#include "codec/layers.h"
#include "results.h"
#include "rtp/rtcp.h"
#include "rtp/rtp_stats.h"

typedef struct Reader Reader;
typedef struct Track Track;

typedef enum { SOURCE_CONTROL, SOURCE_RTP, SOURCE_RTCP } SourceKind;

// A socket and whose it is.
typedef struct {
  SourceKind kind;
  int fd; // -1: none
  Reader *reader;
  Track *track;
} Source;

struct Track {
  gchar *control; // URI
  gboolean video;
  guint32 clock_rate;
  WeirLayers layers;

  Source rtp, rtcp; // over UDP
  gint port;        // of rtp
  struct sockaddr_storage rtcp_to;
  socklen_t rtcp_to_len;  // 0: unknown
  guint8 channel;         // over TCP: of RTP; RTCP has the next
  guint32 announced_ssrc; // or 0
  guint32 socket_drops;

  WeirRtpStats stats;
  guint64 bytes, invalid, stalls;
  guint64 early;         // RTP and RTCP that came before PLAY was answered
  gint64 first_ns;       // arrival of the first packet; 0: none yet
  guint64 restarts;      // of the stream, as far as the figures below know
  gint64 first_frame_ns; // of the first packet that a decoder can start from; 0: none yet
  guint64 n_frames;
  gint64 frame_ns;     // arrival of the newest frame's first packet
  gint64 frame_gap_ns; // what the timestamps say of its distance to the one before
  gint64 first_ts, last_ts, max_ts;
  gint64 first_transit_ns, playout_ns;

  WeirNtpMap map; // of the last sender report
  gint64 map_ns;  // its arrival
  gboolean late_known;
  gint64 late_ns; // arrival of the newest frame less its NTP time
};

// Takes a packet, of which `rtp` is the header. With `results` NULL it is counted for receiver
// reports only.
void track_rtp (Track *self, Results *results, const WeirRtp *rtp, const guint8 *data, gsize len,
    gint64 arrival_ns);
void track_rtcp (Track *self, const guint8 *data, gsize len, gint64 arrival_ns);

// Ends the measurement. `now` is 0 where nobody knows when the media ended.
void track_end (Track *self, Results *results, gint64 now);

void track_report (Track *self, gint64 now, WeirRtcpBlock *out);
