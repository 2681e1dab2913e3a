// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keeps received packets until they are played: in memory up to a bound, then in a file without a
// name in the folder for temporary files.
//
// packet_keep_spill() is for one thread; call the others from any thread. None needs a lock.

#include <gst/gst.h>

#include "cache/spill.h"

G_BEGIN_DECLS

typedef struct _KeptPacket KeptPacket;

typedef struct {
  guint64 max_bytes; // in memory, before packets are written to the file
  CacheSpill *spill; // of the thread that spills; NULL: not yet
  gboolean no_file;
  gsize memory_bytes, file_bytes; // atomic
  gsize high_memory, high_file;   // atomic; the most at a time
} PacketKeep;

void packet_keep_init (PacketKeep *self, guint64 max_bytes);
// No packet may be kept any more.
void packet_keep_clear (PacketKeep *self);

// Copies a packet into memory.
KeptPacket *packet_keep_hold (PacketKeep *self, const guint8 *data, gsize len);

// Copies a packet into memory, or into the file if memory is full. Returns NULL if neither has
// room.
KeptPacket *packet_keep_spill (PacketKeep *self, const guint8 *data, gsize len);

// Ends keeping a packet, and returns it. (transfer full)
GstBuffer *packet_keep_take (PacketKeep *self, KeptPacket *packet);

G_END_DECLS
