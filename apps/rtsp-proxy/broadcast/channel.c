// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/channel.h"

#define WINDOW_PACKETS 1024 // kept by a fanoutsink; more than there are in a frame

typedef struct {
  GstElement *sink;
  GstPad *pad;          // a source, linked to the sink
  GstBufferList *frame; // packets of the frame that is being sent; NULL: none
} Outlet;

struct _Channel {
  Outlet outlets[RELAY_MAX_TRACKS];
  guint n_outlets;
};

static gboolean
open_outlet (Outlet *self, const MulticastAddress *to, guint track, GstCaps *caps, GError **error)
{
  self->sink = multicast_sink_new (to, track, error);
  if (!self->sink)
    return FALSE;
  g_object_set (self->sink, "max-coalesce", (guint64) 0, "window-packets", WINDOW_PACKETS, NULL);
  gst_util_set_object_arg (G_OBJECT (self->sink), "join", "live");
  self->pad = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  return multicast_sink_start (self->sink, self->pad, caps, to, track, error);
}

Channel *
channel_new (const MulticastAddress *to, const PacketFile *file, GError **error)
{
  Channel *self = g_new0 (Channel, 1);

  for (guint i = 0; i < file->n_tracks; i++) {
    self->n_outlets++;
    if (!open_outlet (&self->outlets[i], to, i, file->tracks[i].caps, error)) {
      channel_free (self);
      return NULL;
    }
  }
  return self;
}

void
channel_free (Channel *self)
{
  if (!self)
    return;
  for (guint i = 0; i < self->n_outlets; i++) {
    Outlet *outlet = &self->outlets[i];

    if (outlet->pad)
      gst_pad_set_active (outlet->pad, FALSE);
    if (outlet->sink)
      gst_element_set_state (outlet->sink, GST_STATE_NULL);
    gst_clear_object (&outlet->pad);
    gst_clear_object (&outlet->sink);
  }
  g_free (self);
}

static void
add_packet (Outlet *self, GBytes *block, const PacketRecord *record)
{
  GstBuffer *buffer = gst_buffer_new ();

  gst_buffer_append_memory (buffer,
      gst_memory_new_wrapped (GST_MEMORY_FLAG_READONLY, (gpointer) record->packet, record->length,
          0, record->length, g_bytes_ref (block), (GDestroyNotify) g_bytes_unref));
  if (!self->frame)
    self->frame = gst_buffer_list_new ();
  gst_buffer_list_add (self->frame, buffer);
}

guint
channel_send (Channel *self, GBytes *block, gsize offset, gsize length, guint64 *bytes)
{
  const guint8 *at = (const guint8 *) g_bytes_get_data (block, NULL) + offset;
  const guint8 *end = at + length;
  PacketRecord record;
  guint n = 0;

  while (packet_record_next (&at, end, &record)) {
    if (record.track >= self->n_outlets)
      continue;
    add_packet (&self->outlets[record.track], block, &record);
    *bytes += record.length;
    n++;
  }
  for (guint i = 0; i < self->n_outlets; i++) {
    GstBufferList *frame = g_steal_pointer (&self->outlets[i].frame);

    if (frame)
      gst_pad_push_list (self->outlets[i].pad, frame);
  }
  return n;
}
