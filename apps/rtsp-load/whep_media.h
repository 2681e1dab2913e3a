// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The media of one WebRTC reader. SRTP packets are counted by their headers, which are not
// encrypted; video is decrypted only until its first keyframe is complete. Nothing is asked for
// again. When packets came is told if they have transport-wide numbers.

#include "keyframe.h"
#include "rtp/rtcp.h"
#include "rtp/rtp_stats.h"
#include "webrtc/twcc.h"
#include "whep_sdp.h"

#include <glib-object.h>

#define WHEP_REPORT_MAX 128    // bytes
#define WHEP_FEEDBACK_MAX 1200 // bytes

typedef struct {
  gboolean known; // a packet came
  WeirRtpStats stats;
  WeirLayers layers;
  WeirNtpMap map; // of the last sender report
  gint64 map_ns;  // its arrival
} WhepTrack;

typedef struct {
  const WhepAnswer *answer;
  GObject *srtp; // WeirSrtp
  guint32 ssrc;  // of receiver reports
  WhepTrack tracks[WHEP_KINDS];
  Keyframe keyframe;
  gint64 first_ns, keyframe_ns; // arrival of the first packet; and of the one that completed the
                                // first keyframe; 0: not yet
  guint64 bytes;                // of packets, with header and tag
  guint64 again;                // retransmissions
  WeirTwcc *twcc;               // NULL: packets have no transport-wide numbers
  guint64 foreign;              // packets of no track, or that are not RTP
  guint64 forged;               // packets that were to be decrypted, and are not authentic
} WhepMedia;

// `answer` must outlive it. Returns FALSE if the keys are no keys of `profile`.
gboolean whep_media_init (WhepMedia *self, const WhepAnswer *answer, const gchar *profile,
    const guint8 *send_key, const guint8 *receive_key, gsize key_size);
void whep_media_clear (WhepMedia *self);

// Take a packet as it came.
void whep_media_take_rtp (WhepMedia *self, const guint8 *data, gsize len, gint64 arrival_ns);
void whep_media_take_rtcp (WhepMedia *self, const guint8 *data, gsize len, gint64 arrival_ns);

// Writes the receiver report about a track, encrypted. Returns its length; 0: there is nothing to
// report.
gsize whep_media_report (WhepMedia *self, WhepKind kind, gint64 now, guint8 out[WHEP_REPORT_MAX]);

// Returns when transport-wide feedback is due; WEIR_NEVER: none is.
gint64 whep_media_feedback_due (const WhepMedia *self);

// Writes feedback, encrypted. Returns its length; 0: there is none.
gsize whep_media_feedback (WhepMedia *self, guint8 out[WHEP_FEEDBACK_MAX]);
