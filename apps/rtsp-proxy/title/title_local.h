// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title file (title_file.h) that is read, demuxed and payloaded in this process.

#include "title/title_file.h"

// Returns the element (floating reference) for what `source` reads, which must be able to seek;
// takes a floating reference to `source`. With `paced`, packets leave at the speed of the stream;
// else as soon as they are taken.
GstElement *title_local_new (GstElement *source, gboolean paced);

// Sends a gap on each track that has had no data since the last seek. Call it, in the thread that
// gives the packets of a track, while they are not taken: what takes them may wait for another
// track.
void title_local_send_gaps (GstElement *self);

// Returns a source (floating reference) for an open file, or a socket of bytes_socket_new(). The
// caller keeps `fd` open as long as the source exists.
GstElement *title_local_source (int fd);

// As title_file_get_lead(), for one track.
GstClockTime title_local_get_lead (GstElement *self, guint track);
