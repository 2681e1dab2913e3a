// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_source.h"

#include <errno.h>
#include <gst/base/gstbasesrc.h>
#include <sys/socket.h>

#include "stores/bytes_socket.h"

#define BLOCK_BYTES (64 * 1024) // of a buffer
#define DRAIN_BYTES 4096
// What is read to find the type of the title. All types that are served show within it. Without
// this bound, a block in the middle of the title and its last one would be read for each reader.
#define TYPE_BYTES (256 * 1024)

typedef struct {
  GstBaseSrc parent;
  int socket;
  GstPoll *poll; // of the socket
  GstPollFD watch;
  guint64 size;
  gboolean typed;                     // the type of the title is known
  gchar reason[BYTES_REASON_MAX + 1]; // why it could not be read
  // The answer of a request that was given up.
  gboolean awaited; // it is still to come
  guint64 unread;   // bytes of it
} TitleSource;

typedef struct {
  GstBaseSrcClass parent_class;
} TitleSourceClass;

GType title_source_get_type (void);
G_DEFINE_TYPE (TitleSource, title_source, GST_TYPE_BASE_SRC)

// ---- the socket ----

// Receives up to `length` bytes. Sets `n` to their number.
static GstFlowReturn
receive_some (TitleSource *self, guint8 *bytes, gsize length, gsize *n)
{
  gssize got = recv (self->socket, bytes, length, MSG_DONTWAIT);

  *n = (gsize) MAX (got, 0);
  if (got > 0)
    return GST_FLOW_OK;
  if (got == 0 || (errno != EAGAIN && errno != EINTR))
    return GST_FLOW_ERROR;
  return gst_poll_wait (self->poll, GST_CLOCK_TIME_NONE) < 0 && errno == EBUSY ? GST_FLOW_FLUSHING
                                                                               : GST_FLOW_OK;
}

// Receives the answer to a request. It is small and comes in one piece.
static GstFlowReturn
receive_answer (TitleSource *self, gint64 *value)
{
  GstFlowReturn ret = GST_FLOW_OK;
  BytesAnswer answer;
  gsize n = 0;

  while (ret == GST_FLOW_OK && n == 0)
    ret = receive_some (self, (guint8 *) &answer, sizeof answer, &n);
  if (ret == GST_FLOW_OK && n != sizeof answer)
    return GST_FLOW_ERROR;
  self->awaited = ret == GST_FLOW_FLUSHING;
  *value = ret == GST_FLOW_OK ? answer.value : -1;
  return ret;
}

// Reads what is left of the answer to an earlier request.
static GstFlowReturn
drain (TitleSource *self)
{
  GstFlowReturn ret = GST_FLOW_OK;
  guint8 bytes[DRAIN_BYTES];
  gint64 value;
  gsize n;

  if (self->awaited) {
    ret = receive_answer (self, &value);
    self->unread = (guint64) (value < 0 ? -1 - value : value);
  }
  while (ret == GST_FLOW_OK && self->unread > 0) {
    ret = receive_some (self, bytes, (gsize) MIN (self->unread, sizeof bytes), &n);
    self->unread -= n;
  }
  return ret;
}

static GstFlowReturn
ask (TitleSource *self, guint64 offset, guint64 length, gint64 *value)
{
  BytesRequest request = { offset, length };
  GstFlowReturn ret = drain (self);

  if (ret != GST_FLOW_OK)
    return ret;
  if (send (self->socket, &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
    return GST_FLOW_ERROR;
  return receive_answer (self, value);
}

// Receives why bytes cannot be read: `length` bytes of text.
static GstFlowReturn
receive_reason (TitleSource *self, guint64 length)
{
  GstFlowReturn ret = GST_FLOW_OK;
  gsize at = 0, n;

  if (length > BYTES_REASON_MAX)
    return GST_FLOW_ERROR;
  self->unread = length;
  while (ret == GST_FLOW_OK && self->unread > 0) {
    ret = receive_some (self, (guint8 *) self->reason + at, (gsize) self->unread, &n);
    self->unread -= n;
    at += n;
  }
  self->reason[at] = '\0';
  return ret == GST_FLOW_OK ? GST_FLOW_ERROR : ret;
}

// ---- the source ----

// Reads up to `length` bytes, of one region of the title.
static GstFlowReturn
read_some (TitleSource *self, guint64 offset, guint8 *bytes, gsize length, gsize *n)
{
  GstFlowReturn ret;
  gint64 value;

  *n = 0;
  ret = ask (self, offset, length, &value);
  if (ret != GST_FLOW_OK)
    return ret;
  if (value < 0)
    return receive_reason (self, (guint64) (-1 - value));
  if ((guint64) value > length)
    return GST_FLOW_ERROR;
  self->unread = (guint64) value;
  while (ret == GST_FLOW_OK && self->unread > 0) {
    gsize got;

    ret = receive_some (self, bytes + *n, (gsize) self->unread, &got);
    self->unread -= got;
    *n += got;
  }
  return ret == GST_FLOW_OK && value == 0 ? GST_FLOW_EOS : ret;
}

// Handles bytes that cannot be read. `at` bytes before them were read.
static GstFlowReturn
fail_reading (TitleSource *self, guint64 offset, gsize at)
{
  if (!self->typed && at > 0)
    return GST_FLOW_OK; // they are enough, or the next read fails
  if (self->typed)
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", self->reason), (NULL));
  else if (offset == 0)
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ, ("%s", self->reason), (NULL));
  // The demuxer gives what it has, and needs no error of its own.
  return GST_FLOW_EOS;
}

static GstFlowReturn
title_source_fill (GstBaseSrc *src, guint64 offset, guint size, GstBuffer *buffer)
{
  TitleSource *self = (TitleSource *) src;
  const guint64 end = self->typed ? self->size : MIN (self->size, TYPE_BYTES);
  GstFlowReturn ret = GST_FLOW_OK;
  GstMapInfo map;
  gsize at = 0;

  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    return GST_FLOW_ERROR;
  while (ret == GST_FLOW_OK && at < size && offset + at < end) {
    gsize n;

    ret = read_some (self, offset + at, map.data + at,
        (gsize) MIN (MIN (size - at, end - offset - at), BYTES_REQUEST_MAX), &n);
    at += n;
  }
  gst_buffer_unmap (buffer, &map);
  if (ret == GST_FLOW_OK && at == 0)
    return GST_FLOW_EOS;
  if (ret == GST_FLOW_ERROR)
    ret = fail_reading (self, offset, at);
  gst_buffer_set_size (buffer, (gssize) at);
  GST_BUFFER_OFFSET (buffer) = offset;
  GST_BUFFER_OFFSET_END (buffer) = offset + at;
  return ret;
}

static gboolean
title_source_start (GstBaseSrc *src)
{
  TitleSource *self = (TitleSource *) src;
  gint64 value;

  if (ask (self, 0, 0, &value) != GST_FLOW_OK || value < 0) {
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ, ("the title cannot be read"), (NULL));
    return FALSE;
  }
  self->size = (guint64) value;
  return TRUE;
}

static gboolean
title_source_get_size (GstBaseSrc *src, guint64 *size)
{
  *size = ((TitleSource *) src)->size;
  return TRUE;
}

static gboolean
title_source_is_seekable (GstBaseSrc *src)
{
  return TRUE;
}

static gboolean
title_source_unlock (GstBaseSrc *src)
{
  gst_poll_set_flushing (((TitleSource *) src)->poll, TRUE);
  return TRUE;
}

static gboolean
title_source_unlock_stop (GstBaseSrc *src)
{
  gst_poll_set_flushing (((TitleSource *) src)->poll, FALSE);
  return TRUE;
}

static void
title_source_init (TitleSource *self)
{
  self->poll = gst_poll_new (TRUE);
  g_strlcpy (self->reason, "the title cannot be read", sizeof self->reason);
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_BYTES);
  gst_base_src_set_blocksize (GST_BASE_SRC (self), BLOCK_BYTES);
}

static void
title_source_finalize (GObject *object)
{
  gst_poll_free (((TitleSource *) object)->poll);
  G_OBJECT_CLASS (title_source_parent_class)->finalize (object);
}

static void
title_source_class_init (TitleSourceClass *klass)
{
  static GstStaticPadTemplate template =
      GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = title_source_finalize;
  src_class->start = title_source_start;
  src_class->fill = title_source_fill;
  src_class->get_size = title_source_get_size;
  src_class->is_seekable = title_source_is_seekable;
  src_class->unlock = title_source_unlock;
  src_class->unlock_stop = title_source_unlock_stop;
  gst_element_class_add_static_pad_template (GST_ELEMENT_CLASS (klass), &template);
  gst_element_class_set_static_metadata (GST_ELEMENT_CLASS (klass), "Title source", "Source",
      "Reads a title whose bytes another thread or process gives", "Weir");
}

void
title_source_note_type (GstElement *element)
{
  if (G_TYPE_CHECK_INSTANCE_TYPE (element, title_source_get_type ()))
    ((TitleSource *) element)->typed = TRUE;
}

GstElement *
title_source_new (int socket)
{
  TitleSource *self = g_object_new (title_source_get_type (), NULL);

  self->socket = socket;
  self->watch = (GstPollFD) GST_POLL_FD_INIT;
  self->watch.fd = socket;
  gst_poll_add_fd (self->poll, &self->watch);
  gst_poll_fd_ctl_read (self->poll, &self->watch, TRUE);
  return GST_ELEMENT (self);
}
