// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/packetqueue.h"

void
packet_queue_init (PacketQueue *self)
{
  *self = (PacketQueue) { 0 };
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
}

void
packet_queue_clear (PacketQueue *self)
{
  packet_queue_close (self);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
}

void
packet_queue_open (PacketQueue *self, guint capacity, gsize max_bytes)
{
  g_mutex_lock (&self->lock);
  self->items = g_new (QueuedPacket, capacity);
  self->capacity = capacity;
  self->max_bytes = max_bytes;
  self->run = 0;
  self->gap = FALSE;
  self->n_taken = self->n_overflow = self->n_flushed = 0;
  g_mutex_unlock (&self->lock);
}

void
packet_queue_close (PacketQueue *self)
{
  g_mutex_lock (&self->lock);
  for (; self->n > 0; self->n--, self->n_flushed++) {
    gst_buffer_unref (self->items[self->head].buffer);
    self->head = (self->head + 1) % self->capacity;
  }
  self->head = 0;
  self->bytes = 0;
  g_clear_pointer (&self->items, g_free);
  g_mutex_unlock (&self->lock);
}

static gboolean
has_room (PacketQueue *self, gsize len)
{
  gboolean room;

  g_mutex_lock (&self->lock);
  room = self->n < self->capacity && self->bytes + len <= self->max_bytes;
  if (!room) {
    self->n_overflow++;
    self->gap = TRUE;
  }
  g_mutex_unlock (&self->lock);
  return room;
}

void
packet_queue_add (PacketQueue *self, const WeirIngestPacket *packet)
{
  GstBuffer *buffer;

  // Only this thread adds, so the room stays while the buffer is made without the lock.
  if (!has_room (self, packet->len))
    return;
  buffer = gst_buffer_new_memdup (packet->data, packet->len);
  if (packet->rtp.marker)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
  g_mutex_lock (&self->lock);
  if (self->gap || packet->missing > 0 || packet->run != self->run)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->gap = FALSE;
  self->run = packet->run;
  self->items[(self->head + self->n++) % self->capacity] =
      (QueuedPacket) { buffer, packet->arrival_ns };
  self->bytes += packet->len;
  g_mutex_unlock (&self->lock);
}

void
packet_queue_signal (PacketQueue *self)
{
  g_mutex_lock (&self->lock);
  if (self->n > 0)
    g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
}

gboolean
packet_queue_take (PacketQueue *self, QueuedPacket *out)
{
  gboolean taken;

  g_mutex_lock (&self->lock);
  while (self->n == 0 && !self->flushing)
    g_cond_wait (&self->cond, &self->lock);
  taken = !self->flushing;
  if (taken) {
    *out = self->items[self->head];
    self->head = (self->head + 1) % self->capacity;
    self->n--;
    self->bytes -= gst_buffer_get_size (out->buffer);
    self->n_taken++;
  }
  g_mutex_unlock (&self->lock);
  return taken;
}

void
packet_queue_set_flushing (PacketQueue *self, gboolean flushing)
{
  g_mutex_lock (&self->lock);
  self->flushing = flushing;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
}
