// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Makes the packet file of a title: reads the title once, as fast as it can be read, and merges the
// packets of its tracks by the times at which they are to be sent.

#include "broadcast/packet_file.h"

// Called about ten times a second in the thread that makes the file, with the part of the title
// that is done, from 0 to 1. Returns FALSE to give up.
typedef gboolean (*PacketizeProgress) (gpointer data, gdouble done);

// Makes the packet file of the open title `fd`, which stays open, in a file of at most `max_bytes`
// in the folder `dir`. Takes long. Returns NULL and sets an error of the domain G_IO_ERROR on
// failure: CANCELLED if `progress` gives up, NOT_SUPPORTED if the title cannot be broadcast.
PacketFile *packetize (int fd, const gchar *dir, guint64 max_bytes, PacketizeProgress progress,
    gpointer data, GError **error);
