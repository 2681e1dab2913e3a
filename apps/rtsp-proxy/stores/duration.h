// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Finds the duration of a media file in its container, without a demuxer: in the header or the
// fragments of MP4 (mp4/length.h), in the header of Matroska and WebM (RFC 9559, Duration), and
// from the clock of MPEG-TS (ISO 13818-1, PCR). Whoever wrote the file is not trusted.

#include <glib.h>

// Reads up to `length` bytes at `offset`. Returns how many there were.
typedef gsize (*DurationReadFunc) (gpointer file, guint64 offset, guint8 *bytes, gsize length);

// Returns the duration of a file of `size` bytes in ns; -1 if it is unknown or the file is of
// another type. Calls `read` at most some hundred times, for 512 KiB in all; for fragmented MP4, as
// weir_mp4_find_length() says.
gint64 duration_find (DurationReadFunc read, gpointer file, guint64 size);

// Does so for an open file. May block on a disk.
gint64 duration_of_file (int fd, guint64 size);
