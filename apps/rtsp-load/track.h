// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One track of one reader: its description, its sockets and its measurements.

#include <glib.h>
#include <sys/socket.h>

#include "codec/layers.h"
#include "results.h"
#include "rtp/rtcp.h"
#include "rtp/rtp_stats.h"

typedef struct Reader Reader;
typedef struct Track Track;

typedef enum { SOURCE_CONTROL, SOURCE_RTP, SOURCE_RTCP } SourceKind;

// A socket with its owner.
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

  Source rtp, rtcp; // UDP sockets
  gint port;        // local port of `rtp`
  struct sockaddr_storage rtcp_to;
  socklen_t rtcp_to_len;  // 0: unknown
  guint8 channel;         // over TCP: channel of RTP; RTCP has the next
  guint32 announced_ssrc; // or 0
  guint32 socket_drops;

  WeirRtpStats stats;
  guint64 bytes, invalid, stalls;
  guint64 early;         // RTP and RTCP packets that arrived before the answer to PLAY
  gint64 first_ns;       // arrival of the first packet; 0: none yet
  guint64 restarts;      // value of `stats.restarts` to which the fields below belong
  gint64 first_frame_ns; // arrival of the first packet of a keyframe; 0: none yet
  guint64 n_frames;
  gint64 frame_ns;     // arrival of the newest frame's first packet
  gint64 frame_gap_ns; // time from the frame before to the newest, by their timestamps
  gint64 first_ts, last_ts, max_ts;
  gint64 first_transit_ns, playout_ns;

  WeirNtpMap map; // from the last sender report
  gint64 map_ns;  // its arrival
  gboolean late_known;
  gint64 late_ns; // arrival of the newest frame minus its NTP time
};

// Measures a packet with the header `rtp`. If `results` is NULL, the packet counts for receiver
// reports only.
void track_rtp (Track *self, Results *results, const WeirRtp *rtp, const guint8 *data, gsize len,
    gint64 arrival_ns);
void track_rtcp (Track *self, const guint8 *data, gsize len, gint64 arrival_ns);

// Ends the measurement. `now` is 0 if the time of the media's end is unknown.
void track_end (Track *self, Results *results, gint64 now);

// Fills `out` for a receiver report.
void track_report (Track *self, gint64 now, WeirRtcpBlock *out);
