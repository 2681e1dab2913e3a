// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/mp4_guard.h"

#include <string.h>

#include "mp4/index.h"
#include "mp4/length.h"

#define CHANGES_MAX 3
#define NO_TYPE 0x66726565 // "free"

// Bytes of the file that are read as others.
typedef struct {
  guint64 at;
  gsize n;
  guint8 bytes[8];
} Change;

typedef struct {
  Change changes[CHANGES_MAX];
  guint n;
} Guard;

static gsize
read_file (gpointer pad, guint64 offset, guint8 *bytes, gsize length)
{
  GstBuffer *buffer = NULL;
  gsize n;

  if (gst_pad_get_range (pad, offset, (guint) length, &buffer) != GST_FLOW_OK)
    return 0;
  n = gst_buffer_extract (buffer, 0, bytes, length);
  gst_buffer_unref (buffer);
  return n;
}

static void
change (Guard *self, guint64 at, gsize n, guint64 value)
{
  Change *change = &self->changes[self->n++];

  change->at = at;
  change->n = n;
  for (gsize i = 0; i < n; i++)
    change->bytes[i] = (guint8) (value >> 8 * (n - 1 - i));
}

static void
find_changes (Guard *self, const WeirMp4Length *length, const WeirMp4File *file)
{
  const guint64 end = file->size - WEIR_MP4_INDEX_END;
  guint8 bytes[WEIR_MP4_INDEX_END];
  gboolean fragmented = FALSE;

  for (guint i = 0; i < G_N_ELEMENTS (length->durations); i++) {
    const WeirMp4Field *field = &length->durations[i];

    if (field->size == 8 || (field->size == 4 && length->end < G_MAXUINT32))
      change (self, field->at, field->size, length->end);
    fragmented |= field->size > 0;
  }
  // With the index, qtdemux finds no frames that are in the header. It looks for "mfro" only.
  if (fragmented && length->has_head
      && read_file (file->file, end, bytes, sizeof bytes) == sizeof bytes
      && weir_mp4_index_size (bytes) > 0)
    change (self, end + 4, 4, NO_TYPE);
}

static void
put (const Change *change, guint64 offset, GstBuffer *buffer)
{
  const guint64 end = offset + gst_buffer_get_size (buffer);
  const guint64 from = MAX (change->at, offset), to = MIN (change->at + change->n, end);

  if (from < to)
    gst_buffer_fill (
        buffer, (gsize) (from - offset), change->bytes + (from - change->at), (gsize) (to - from));
}

static GstPadProbeReturn
on_read (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  const Guard *self = data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

  info->data = buffer = gst_buffer_make_writable (buffer);
  for (guint i = 0; i < self->n; i++)
    put (&self->changes[i], info->offset, buffer);
  return GST_PAD_PROBE_OK;
}

void
mp4_guard_add (GstElement *source)
{
  GstPad *pad = gst_element_get_static_pad (source, "src");
  WeirMp4File file = { read_file, pad, 0 };
  WeirMp4Length length;
  Guard *self;
  gint64 size;

  if (GST_PAD_MODE (pad) == GST_PAD_MODE_PULL
      && gst_pad_query_duration (pad, GST_FORMAT_BYTES, &size) && size > WEIR_MP4_INDEX_END) {
    file.size = (guint64) size;
    self = g_new0 (Guard, 1);
    if (weir_mp4_find_length (&file, &length))
      find_changes (self, &length, &file);
    if (self->n > 0)
      gst_pad_add_probe (
          pad, GST_PAD_PROBE_TYPE_PULL | GST_PAD_PROBE_TYPE_BUFFER, on_read, self, g_free);
    else
      g_free (self);
  }
  gst_object_unref (pad);
}
