// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Readers behind the live edge, of a mount with a `cache`: where a URL or a PLAY wants one to
// begin, what it gets of that, and where it goes on after a PAUSE. The places themselves are
// fanoutsink's.
//
// A reader's own time (npt) begins with its first PLAY: 0 is what it was shown first. `clock` is
// the time at which the proxy got what is shown.
//
// All that takes a context is for the client's thread.

#include <gst/rtsp-server/rtsp-server.h>

#include "config/mount_config.h"
#include "readers/readers.h"

// Before the library sees a PLAY or a PAUSE. `delay_ns`: what the reader's URL asks for, or -1;
// `name`: the reader's, for the log; `reader`: what is counted of it, NULL before its first PLAY.
GstRTSPStatusCode timeshift_play (
    GstRTSPContext *ctx, gint64 delay_ns, const gchar *name, Reader *reader);
void timeshift_pause (GstRTSPContext *ctx);

// Says in the answer to a PLAY where it begins.
void timeshift_answer (GstRTSPContext *ctx);

// Says in a description what there is.
void timeshift_describe (GstRTSPMedia *media, GstSDPMessage *sdp, const gchar *name);

// A sink of a mount with a cache keeps as much.
void timeshift_configure_sink (GstElement *sink, const MountConfig *config);

// Where the cache lies in a file, a sink in the media's pipeline may tell that the disk is full: a
// line in the log.
void timeshift_watch (GstElement *pipeline, const MountConfig *config);
