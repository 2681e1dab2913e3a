// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/file_source.h"

#include <errno.h>
#include <gst/base/gstbasesrc.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  GstBaseSrc parent;
  int fd;
} FileSource;

typedef struct {
  GstBaseSrcClass parent_class;
} FileSourceClass;

GType file_source_get_type (void);
G_DEFINE_TYPE (FileSource, file_source, GST_TYPE_BASE_SRC)

// Reads until `bytes` are full or the file ends. Returns the number of bytes, or -1.
static gssize
read_all (int fd, guint8 *bytes, gsize size, guint64 offset)
{
  gsize at = 0;
  gssize n = 1;

  while (at < size && n > 0) {
    n = pread (fd, bytes + at, size - at, (off_t) (offset + at));
    if (n < 0 && errno == EINTR)
      n = 1;
    else if (n > 0)
      at += (gsize) n;
  }
  return n < 0 ? -1 : (gssize) at;
}

static GstFlowReturn
file_source_fill (GstBaseSrc *src, guint64 offset, guint size, GstBuffer *buffer)
{
  GstMapInfo map;
  gssize n;

  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    return GST_FLOW_ERROR;
  n = read_all (((FileSource *) src)->fd, map.data, size, offset);
  gst_buffer_unmap (buffer, &map);
  if (n < 0) {
    GST_ELEMENT_ERROR (src, RESOURCE, READ, (NULL), ("%s", g_strerror (errno)));
    return GST_FLOW_ERROR;
  }
  if (n == 0 && size > 0)
    return GST_FLOW_EOS;
  gst_buffer_set_size (buffer, n);
  GST_BUFFER_OFFSET (buffer) = offset;
  GST_BUFFER_OFFSET_END (buffer) = offset + (guint64) n;
  return GST_FLOW_OK;
}

static gboolean
file_source_get_size (GstBaseSrc *src, guint64 *size)
{
  struct stat st;

  if (fstat (((FileSource *) src)->fd, &st) < 0)
    return FALSE;
  *size = (guint64) st.st_size;
  return TRUE;
}

static gboolean
file_source_is_seekable (GstBaseSrc *src)
{
  return TRUE;
}

static void
file_source_init (FileSource *self)
{
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_BYTES);
  gst_base_src_set_dynamic_size (GST_BASE_SRC (self), TRUE); // the file may grow
}

static void
file_source_class_init (FileSourceClass *klass)
{
  static GstStaticPadTemplate template =
      GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS (klass);

  src_class->fill = file_source_fill;
  src_class->get_size = file_source_get_size;
  src_class->is_seekable = file_source_is_seekable;
  gst_element_class_add_static_pad_template (GST_ELEMENT_CLASS (klass), &template);
  gst_element_class_set_static_metadata (
      GST_ELEMENT_CLASS (klass), "File source", "Source", "Reads an open file", "Weir");
}

GstElement *
file_source_new (int fd)
{
  FileSource *self = g_object_new (file_source_get_type (), NULL);

  self->fd = fd;
  return GST_ELEMENT (self);
}
