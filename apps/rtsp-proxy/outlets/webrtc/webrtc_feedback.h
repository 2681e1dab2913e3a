// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// RTCP with a reader over WebRTC, both ways: sender reports, and what the reader answers (RFC 3550,
// RFC 4585). Reference counted. Call from any thread.

#include "outlets/webrtc/webrtc_place.h"
#include "outlets/webrtc/webrtc_stream.h"
#include "readers/readers.h"

#define WEBRTC_FEEDBACK_ROOM 256 // bytes of a report with its protection

typedef struct _WebrtcFeedback WebrtcFeedback;

// `srtp` is the session's WeirSrtp; `places`, of WebrtcPlace, are those of the reader. `cname`
// names the proxy in reports.
WebrtcFeedback *webrtc_feedback_new (
    GObject *srtp, WebrtcStream *stream, GPtrArray *places, const gchar *cname);
WebrtcFeedback *webrtc_feedback_ref (WebrtcFeedback *self);
void webrtc_feedback_unref (WebrtcFeedback *self);

typedef enum {
  WEBRTC_FEEDBACK_FORGED, // not authentic, or not RTCP
  WEBRTC_FEEDBACK_TAKEN,
  WEBRTC_FEEDBACK_BYE, // the reader leaves
} WebrtcFeedbackVerdict;

// Takes a packet of SRTCP, which it changes: lost packets are sent again, and a keyframe is asked
// for. `now`: ns, clock_now().
WebrtcFeedbackVerdict webrtc_feedback_take (
    WebrtcFeedback *self, guint8 *packet, gsize size, gint64 now);

// Returns how many packets of all readers were forged.
guint64 webrtc_feedback_count_forged (void);

// Writes the sender report of a place at `now`, protected; with `bye`, that it is the last one.
// Returns its length, or 0 if nothing was sent yet.
gsize webrtc_feedback_write (
    WebrtcFeedback *self, guint place, gboolean bye, gint64 now, guint8 out[WEBRTC_FEEDBACK_ROOM]);

// Adds what the reader's reports tell of the video. The first returns a number that rises with each
// of these (g_atomic_rc_box_release()).
guint64 *webrtc_feedback_ref_count (WebrtcFeedback *self);
void webrtc_feedback_sample_video (WebrtcFeedback *self, ReaderVideo *sample);

// Reads at `now` what the line carries, by the reader's feedback on each packet. Returns FALSE if
// it offers none.
gboolean webrtc_feedback_read_estimate (WebrtcFeedback *self, gint64 now, WeirEstimateView *view);

// Fills the fields that the reader's reports tell.
void webrtc_feedback_sample (WebrtcFeedback *self, ReaderSample *sample);
