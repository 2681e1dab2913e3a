// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The media of a publisher over WebRTC: decrypts what comes, puts its packets in order for the
// publication, and says what feedback is due. Call from any thread, unless the function says
// otherwise.

#include "outlets/webrtc/sdp_sent.h"
#include "outlets/webrtc/webrtc_session.h"
#include "outlets/webrtc/webrtc_simulcast.h"

#define WEBRTC_INTAKE_ROOM 1280 // bytes of a packet of feedback with its protection

typedef struct _WebrtcIntake WebrtcIntake;

typedef struct {
  const SdpOffer *offer;
  const GArray *choices; // of AnswerChoice
  const gchar *cname;    // of the proxy in reports
  const gchar *host;     // of the route
  const WebrtcKeys *keys;
  // For a publisher with several layers:
  const gchar *path, *peer, *identity; // of PublicationClaim
  // Asks for a keyframe by webrtc_intake_ask_layer().
  void (*ask_layer) (gpointer owner, guint layer);
  gpointer owner; // the intake takes it
  GDestroyNotify free_owner;
} WebrtcIntakeParts;

// Makes an intake whose tracks have the numbers of the choices. `shared` must outlive it. Returns
// NULL if there is no memory; then it has not taken the owner.
WebrtcIntake *webrtc_intake_new (PublicationTracks *shared, const WebrtcIntakeParts *parts);

// Waits until no packet is on its way. The publications of further layers end with `reason`.
void webrtc_intake_free (WebrtcIntake *self, const gchar *reason);

// Returns the caps of the tracks. (transfer full)
GPtrArray *webrtc_intake_dup_caps (WebrtcIntake *self);

// Takes a packet, which it changes, and which arrived at `arrival`. Returns FALSE if it is not
// authentic. One thread at a time.
gboolean webrtc_intake_take (
    WebrtcIntake *self, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival, gint64 now);

// Asks the publisher for a keyframe with its next feedback: of a track, or of a layer of pictures.
void webrtc_intake_ask_key (WebrtcIntake *self, guint track);
void webrtc_intake_ask_layer (WebrtcIntake *self, guint layer);

// Asks for a keyframe of each track whose last one is 2 s old. Call it a few times a second.
void webrtc_intake_refresh (WebrtcIntake *self, gint64 now);

// Returns when there is feedback, in ns, or WEIR_NEVER. The functions above change it.
gint64 webrtc_intake_get_due (WebrtcIntake *self);

// Writes a packet of the feedback that is due, protected. Returns its length, or 0 if there is none
// any more.
gsize webrtc_intake_write (WebrtcIntake *self, gint64 now, guint8 out[WEBRTC_INTAKE_ROOM]);

// Why a packet of a publisher was left out.
typedef enum {
  WEBRTC_INTAKE_FORGED,    // not authentic, or it came before
  WEBRTC_INTAKE_PADDING,   // it has no media: it measures the way
  WEBRTC_INTAKE_DUPLICATE, // it came before, perhaps as another packet
  WEBRTC_INTAKE_LATE,
  WEBRTC_INTAKE_STRAY, // of no track, or of too many sources
  WEBRTC_INTAKE_MALFORMED,
  WEBRTC_INTAKE_REASONS
} WebrtcIntakeReason;

// Return a name for the metrics, such as "forged", and how many packets of all publishers were left
// out for a reason.
const gchar *webrtc_intake_get_reason (WebrtcIntakeReason reason);
guint64 webrtc_intake_count (WebrtcIntakeReason reason);
