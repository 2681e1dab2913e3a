// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A media file as a media of gst-rtsp-server, for one reader. Its packets are paced, so that frames
// do not leave in bursts.

#include <gst/rtsp-server/rtsp-server.h>

// Returns media (transfer full) for the open file `fd`. Takes ownership of `fd`. `label` is the
// title's name in the log.
GstRTSPMedia *title_media_new (int fd, const gchar *label);

gboolean title_media_is (GstRTSPMedia *media);

// Returns which tracks of the title it does not have, and why (relay/left_out.h), or NULL.
gchar *title_media_dup_left_out (GstRTSPMedia *media);

// Prepares the media: reads the file until its tracks are known, which may block. Returns FALSE and
// sets `error` to G_IO_ERROR_NOT_SUPPORTED if the file cannot be served.
gboolean title_media_prepare (GstRTSPMedia *media, GstRTSPThread *thread, GError **error);

// Remembers the time up to which packets were sent, and sends gaps on tracks without data, so that
// the paused media can play again. Call after the media was paused: until then, packets are sent.
void title_media_paused (GstRTSPMedia *media);

// Checks a PLAY, and sets `range` and `flags` for title_media_play(). Playing starts at the
// keyframe at or before the start of the range; without a range it continues where it was paused.
// `rate` is from 0.125 to 8. Returns OK, or the status to answer.
GstRTSPStatusCode title_media_adjust_play (
    GstRTSPMedia *media, GstRTSPTimeRange **range, GstSeekFlags *flags, gdouble rate);

// Seeks to the range, and waits for the first packets, which may block. If there is no data at that
// position, for example in a truncated file, seeks back and returns INVALID_RANGE.
GstRTSPStatusCode title_media_play (
    GstRTSPSessionMedia *session, GstRTSPTimeRange *range, GstSeekFlags flags, gdouble rate);

// Makes title_media_prepare() or title_media_play() fail soon. The media cannot be played any more.
// Call from any thread.
void title_media_give_up (GstRTSPMedia *media);
