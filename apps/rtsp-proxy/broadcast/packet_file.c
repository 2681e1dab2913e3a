// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/packet_file.h"

#include <errno.h>
#include <unistd.h>

#include "bits/bytes.h"

PacketFile *
packet_file_ref (PacketFile *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
packet_file_unref (PacketFile *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < self->n_tracks; i++) {
    gst_clear_caps (&self->tracks[i].caps);
    g_free (self->tracks[i].first);
  }
  close (self->fd);
  g_free (self->offset);
  g_free (self->id);
  g_free (self);
}

guint32
packet_file_block_of (const PacketFile *self, guint32 frame)
{
  return frame / self->block_frames;
}

guint32
packet_file_block_start (const PacketFile *self, guint32 block)
{
  return MIN (block * self->block_frames, self->n_frames);
}

gsize
packet_file_block_bytes (const PacketFile *self, guint32 block)
{
  return (gsize) (self->offset[packet_file_block_start (self, block + 1)]
                  - self->offset[packet_file_block_start (self, block)]);
}

gint
packet_file_read (const PacketFile *self, guint32 block, guint8 *bytes)
{
  guint64 at = self->offset[packet_file_block_start (self, block)];
  gsize left = packet_file_block_bytes (self, block);

  while (left > 0) {
    const gssize n = pread (self->fd, bytes, left, (off_t) at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? -errno : -EIO;
    bytes += n;
    at += (guint64) n;
    left -= (gsize) n;
  }
  return 0;
}

guint32
packet_file_frame_of (const PacketFile *self, guint track, guint32 number)
{
  const guint32 *first = self->tracks[track].first;
  guint32 low = 0, high = self->n_frames;

  // The last frame that does not begin after the packet.
  while (high - low > 1) {
    const guint32 middle = low + (high - low) / 2;

    if (first[middle] <= number)
      low = middle;
    else
      high = middle;
  }
  return low;
}

gboolean
packet_record_next (const guint8 **at, const guint8 *end, PacketRecord *record)
{
  WeirBytes b = weir_bytes (*at, (size_t) (end - *at));

  weir_bytes_u32 (&b, &record->number);
  weir_bytes_u16 (&b, &record->track);
  weir_bytes_u16 (&b, &record->length);
  record->packet = b.at;
  weir_bytes_skip (&b, record->length);
  if (b.failed)
    return FALSE;
  *at = b.at;
  return TRUE;
}
