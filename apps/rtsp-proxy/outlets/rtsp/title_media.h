// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A file as a media of the RTSP library, of one reader alone: read, payloaded, and paced so that no
// frame leaves in a burst.

#include <gst/rtsp-server/rtsp-server.h>

// `fd` is taken; it is closed with the media. `label` is for the log.
GstRTSPMedia *title_media_new (int fd, const gchar *label);

gboolean title_media_is (GstRTSPMedia *media);

// Opens it: reads as far as it takes to know the tracks, which may take its time. FALSE and an
// error if it is no media that can be served.
gboolean title_media_prepare (GstRTSPMedia *media, GstRTSPThread *thread, GError **error);

// Before it is paused: notes how far its reader has been sent.
void title_media_pausing (GstRTSPMedia *media);

// After it.
void title_media_paused (GstRTSPMedia *media);

// Before a PLAY: makes of what was asked what is to be done. Without a range it goes on where it
// was paused. It begins with a keyframe, that is at or before what was asked for.
GstRTSPStatusCode title_media_adjust_play (
    GstRTSPMedia *media, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble rate);

// Goes there, and returns when what it begins with is known, which may take its time. Where it has
// nothing, as behind where the file is cut off, it goes back to where it was.
GstRTSPStatusCode title_media_play (
    GstRTSPSessionMedia *session, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate);

// From any thread: what opens it, or goes somewhere, fails. It can't be played any more.
void title_media_give_up (GstRTSPMedia *media);
