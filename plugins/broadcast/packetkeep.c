// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "broadcast/packetkeep.h"

#define FILE_MAX (G_GUINT64_CONSTANT (16) << 30)
#define OVERHEAD 128 // bytes of memory for a packet beyond its own, about

struct _KeptPacket {
  GstBuffer *buffer; // NULL: in the file
  CachePiece *piece; // a reference, or NULL
  guint32 offset;
  gsize bytes;
};

void
packet_keep_init (PacketKeep *self, guint64 max_bytes)
{
  *self = (PacketKeep) { .max_bytes = max_bytes };
}

void
packet_keep_clear (PacketKeep *self)
{
  cache_spill_close (g_steal_pointer (&self->spill));
}

static void
count (gsize *now, gsize *high, gsize bytes)
{
  gsize sum = __atomic_add_fetch (now, bytes, __ATOMIC_RELAXED);
  gsize most = __atomic_load_n (high, __ATOMIC_RELAXED);

  while (
      sum > most
      && !__atomic_compare_exchange_n (high, &most, sum, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

KeptPacket *
packet_keep_hold (PacketKeep *self, const guint8 *data, gsize len)
{
  KeptPacket *packet = g_new0 (KeptPacket, 1);

  packet->buffer = gst_buffer_new_memdup (data, len);
  packet->bytes = len + OVERHEAD;
  count (&self->memory_bytes, &self->high_memory, packet->bytes);
  return packet;
}

static gboolean
has_file (PacketKeep *self)
{
  if (!self->spill && !self->no_file) {
    self->spill = cache_spill_new (g_get_tmp_dir (), FILE_MAX);
    self->no_file = self->spill == NULL;
  }
  return self->spill != NULL;
}

KeptPacket *
packet_keep_spill (PacketKeep *self, const guint8 *data, gsize len)
{
  KeptPacket *packet;
  CacheStored stored;
  GstBuffer *buffer;
  gboolean ok;

  if (__atomic_load_n (&self->memory_bytes, __ATOMIC_RELAXED) + len + OVERHEAD <= self->max_bytes)
    return packet_keep_hold (self, data, len);
  if (!has_file (self))
    return NULL;
  buffer = gst_buffer_new_wrapped_full (
      GST_MEMORY_FLAG_READONLY, (gpointer) data, len, 0, len, NULL, NULL);
  ok = cache_spill_store (self->spill, GST_MINI_OBJECT_CAST (buffer), &stored);
  gst_buffer_unref (buffer);
  if (!ok)
    return NULL;
  packet = g_new0 (KeptPacket, 1);
  packet->piece = stored.piece;
  packet->offset = stored.offset;
  packet->bytes = len;
  count (&self->file_bytes, &self->high_file, len);
  return packet;
}

GstBuffer *
packet_keep_take (PacketKeep *self, KeptPacket *packet)
{
  GstBuffer *buffer = packet->buffer;

  if (buffer)
    __atomic_sub_fetch (&self->memory_bytes, packet->bytes, __ATOMIC_RELAXED);
  else {
    buffer = GST_BUFFER (cache_spill_load (packet->piece, packet->offset));
    __atomic_sub_fetch (&self->file_bytes, packet->bytes, __ATOMIC_RELAXED);
  }
  g_free (packet);
  return buffer;
}
