// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Serves readers behind the live edge of a mount with a `cache`. Finds a reader's position, from
// the URL, the Range of a PLAY or the last PAUSE, and writes it into the answer. fanoutsink keeps
// the positions.
//
// A reader's `npt` is 0 at the position of its first PLAY. `clock` is the wall-clock time at which
// the proxy received a packet.
//
// Call the functions that take a GstRTSPContext from the client's thread only.

#include <gst/rtsp-server/rtsp-server.h>

#include "config/mount_config.h"
#include "readers/readers.h"

// Call before gst-rtsp-server handles a PLAY or PAUSE. timeshift_play() moves the reader to its
// position; timeshift_pause() keeps the position. `delay_ns` is the delay of the URL, or -1. `name`
// is the reader's address, for the log. `reader` is NULL before the first PLAY. timeshift_play()
// returns OK, or the status to answer.
GstRTSPStatusCode timeshift_play (
    GstRTSPContext *ctx, gint64 delay_ns, const gchar *name, Reader *reader);
void timeshift_pause (GstRTSPContext *ctx);

// Writes the position into the answer to a PLAY.
void timeshift_answer (GstRTSPContext *ctx);

// Writes the playable range into a description.
void timeshift_describe (GstRTSPMedia *media, GstSDPMessage *sdp, const gchar *name);

// Sets the window of a fanoutsink to the size of the mount's cache, or to its default if the mount
// has no cache.
void timeshift_configure_sink (GstElement *sink, const MountConfig *config);

// Logs when a sink in the pipeline reports that the disk of its cache is full. Does nothing if the
// mount's cache is in memory.
void timeshift_watch (GstElement *pipeline, const MountConfig *config);
