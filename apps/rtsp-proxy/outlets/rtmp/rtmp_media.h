// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes a live Matroska of the audio and video messages of an RTMP publisher. It begins when the
// tracks are known: those that the metadata name, or one of audio and one of video; without one of
// them, 2 s of media later. If a track comes later, or the record of its codec changes, another
// Matroska begins. One thread at a time.

#include <glib.h>

#include "rtmp/session.h"

typedef struct _RtmpMedia RtmpMedia;

// `peer` is for the log.
RtmpMedia *rtmp_media_new (const gchar *peer);
void rtmp_media_free (RtmpMedia *self);

// Takes a WEIR_RTMP_METADATA, _AUDIO or _VIDEO. Appends to `parts`, of GBytes, what there is now of
// the Matroska; an empty part stands before another one. Returns NULL, or why the publisher must go
// (static).
const gchar *rtmp_media_take (RtmpMedia *self, const WeirRtmpEvent *event, GQueue *parts);
