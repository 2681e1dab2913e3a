// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which tracks of a presentation a reader over WebRTC gets.

#include "mounts/presentation.h"
#include "outlets/webrtc/webrtc_codecs.h"

#define WEBRTC_NO_TRACK -1
#define WEBRTC_SOUND_STAGE "opus"

typedef struct {
  gint video, audio; // numbers in the presentation's relay, or WEBRTC_NO_TRACK
  gboolean encodes;  // the audio becomes Opus
} WebrtcChoice;

// Chooses the first video and the first audio track that fit the codecs `offered`; audio that does
// not becomes Opus if the stage of WEBRTC_SOUND_STAGE takes it and Opus is offered. Sets `left_out`
// to text about the others (relay/left_out.h; transfer full), or NULL. Returns FALSE and sets
// `error` to G_IO_ERROR_NOT_SUPPORTED as webrtc_stream_get() does. Call from any thread.
gboolean webrtc_choice_make (WebrtcChoice *self, Presentation *presentation, guint32 offered,
    gchar **left_out, GError **error);

// Returns the choices of the first of the mount's renditions (config/mount_renditions.h) that
// encodes video as one of the codecs `offered`, and sets its layers: what a reader gets to whom the
// presentation itself offers nothing. Returns NULL if there is none. Starts nothing. Call from any
// thread. (transfer full)
gchar *webrtc_choice_find_rendition (
    Presentation *presentation, guint32 offered, WeirLayerSet *layers);
