// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Writes a packet file. The file is bounded, and packets come in the order in which they are sent.
// For one thread at a time.

#include "broadcast/packet_file.h"

#define PACKET_FRAMES_MAX (1u << 22) // of a title; 11 hours of 10 ms
#define PACKET_FRAME_NS 10000000     // for a title without video at a constant rate

typedef struct _PacketWriter PacketWriter;

// Creates a file in the folder `dir` of at most `max_bytes`. Returns NULL and sets an error of the
// domain G_IO_ERROR on failure.
PacketWriter *packet_writer_new (const gchar *dir, guint64 max_bytes, GError **error);
void packet_writer_free (PacketWriter *self);

// Adds a track; `caps` are application/x-rtp, of a payloader. Call before the first packet. Returns
// FALSE and sets `error` if the caps lack a field, or there are too many tracks.
gboolean packet_writer_add_track (PacketWriter *self, GstCaps *caps, GError **error);

// Adds a packet, which is to be sent at `at_ns`: not before the one before it. Returns FALSE and
// sets `error` if the packet is malformed, a bound is reached or the disk is full.
gboolean packet_writer_add (
    PacketWriter *self, guint track, gint64 at_ns, GstBuffer *packet, GError **error);

// Ends the file. Returns NULL and sets `error` on failure. Call once.
PacketFile *packet_writer_finish (PacketWriter *self, GError **error);
