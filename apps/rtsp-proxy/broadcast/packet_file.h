// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title as RTP packets, in a file without a name. Its packets are in the order in which they are
// sent, all tracks interleaved, and each track's are numbered from 0. The RTP sequence number is
// the packet's number modulo 65536, the RTP timestamp the title's time, and the SSRC is the same in
// each file. So the same title always gives the same packets.
//
// Time is counted in frames: of a video frame's duration if the title has video at a constant rate,
// else of 10 ms. A packet belongs to the frame in which it is sent. The file is read in blocks of
// whole frames, of about one second.
//
// A packet file does not change. It is reference-counted; call from any thread.

#include <gst/gst.h>

#include "relay/relay.h"

// A record is the packet with its number (uint32), track and length (uint16) before it, in network
// order.
#define PACKET_RECORD_HEAD 8

typedef struct {
  GstCaps *caps;     // application/x-rtp
  guint32 n_packets; // in the title
  guint32 *first;    // number of the first packet of each frame, and n_packets at the end
} PacketTrack;

typedef struct {
  gatomicrefcount refs;
  int fd;
  guint32 number; // of the file in this process
  gchar *id;      // hexadecimal digits; a hash of all packets and their times
  PacketTrack tracks[RELAY_MAX_TRACKS];
  guint n_tracks;
  guint32 n_frames;
  gint64 frame_ns;
  gint64 delay_ns; // by which packets are sent after the times of their RTP timestamps, at most
  guint64 *offset; // in the file, of each frame, and its size at the end
  guint32 block_frames; // frames in a block
  guint32 n_blocks;
  guint64 rate; // bits a second on the network, on average, with the headers of UDP and IP
} PacketFile;

PacketFile *packet_file_ref (PacketFile *self);
void packet_file_unref (PacketFile *self);

// Returns the block of a frame; the first frame of a block.
guint32 packet_file_block_of (const PacketFile *self, guint32 frame);
guint32 packet_file_block_start (const PacketFile *self, guint32 block);

// Returns the number of bytes in a block.
gsize packet_file_block_bytes (const PacketFile *self, guint32 block);

// Reads a block into `bytes`. Returns 0 or a negative errno. May block on a disk.
gint packet_file_read (const PacketFile *self, guint32 block, guint8 *bytes);

// Returns the frame of a packet. `number` is less than the track's n_packets.
guint32 packet_file_frame_of (const PacketFile *self, guint track, guint32 number);

// One record of a block.
typedef struct {
  guint32 number;
  guint16 track, length;
  const guint8 *packet;
} PacketRecord;

// Reads the record at `*at`, and moves `*at` behind it. Returns FALSE at `end`.
gboolean packet_record_next (const guint8 **at, const guint8 *end, PacketRecord *record);
