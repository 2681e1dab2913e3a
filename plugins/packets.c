// SPDX-License-Identifier: LGPL-2.1-or-later
#include "weir.h"

#define NAME "WeirPacketsMeta"

typedef struct {
  GstMeta meta;
  guint16 *lengths;
  guint n;
} PacketsMeta;

static gboolean
init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  ((PacketsMeta *) meta)->lengths = NULL;
  ((PacketsMeta *) meta)->n = 0;
  return TRUE;
}

static void
clear (GstMeta *meta, GstBuffer *buffer)
{
  g_free (((PacketsMeta *) meta)->lengths);
}

// A copy of the buffer holds the same packets; a copy of a part of it does not.
static gboolean
transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer, GQuark type, gpointer data)
{
  const PacketsMeta *packets = (PacketsMeta *) meta;

  if (!GST_META_TRANSFORM_IS_COPY (type) || ((GstMetaTransformCopy *) data)->region)
    return FALSE;
  weir_buffer_set_packets (dest, packets->lengths, packets->n);
  return TRUE;
}

// The plugin and a program both have this file: whoever comes first registers the meta.
static const GstMetaInfo *
get_info (void)
{
  static const gchar *tags[] = { NULL };
  static gsize info;

  if (g_once_init_enter (&info)) {
    const GstMetaInfo *found = gst_meta_get_info (NAME);

    if (!found)
      found = gst_meta_register (gst_meta_api_type_register (NAME "API", tags), NAME,
          sizeof (PacketsMeta), init, clear, transform);
    g_once_init_leave (&info, (gsize) found);
  }
  return (const GstMetaInfo *) info;
}

void
weir_buffer_set_packets (GstBuffer *buffer, const guint16 *lengths, guint n)
{
  PacketsMeta *meta = (PacketsMeta *) gst_buffer_get_meta (buffer, get_info ()->api);

  if (!meta)
    meta = (PacketsMeta *) gst_buffer_add_meta (buffer, get_info (), NULL);
  g_free (meta->lengths);
  meta->lengths = g_memdup2 (lengths, n * sizeof *lengths);
  meta->n = n;
}

const guint16 *
weir_buffer_get_packets (GstBuffer *buffer, guint *n)
{
  const PacketsMeta *meta = (PacketsMeta *) gst_buffer_get_meta (buffer, get_info ()->api);

  if (!meta)
    return NULL;
  *n = meta->n;
  return meta->lengths;
}
