// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_local.h"

#include <gio/gio.h>
#include <string.h>

#include "base/element.h"
#include "base/log.h"

struct _SwarmLocal {
  GstElement *element;
  GstBus *bus;
  GstPad *pad; // in pull mode
  const SwarmReaderTitle *title;
  gchar *path; // of the open torrent
  guint64 size;
};

// ---- messages ----

// Logs warnings, such as that the origin fails. Returns the first error, or NULL. (transfer full)
static GError *
take_messages (SwarmLocal *self)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  GError *first = NULL;
  GstMessage *message;

  while ((message = gst_bus_pop_filtered (self->bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autoptr (GError) error = NULL;

    if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
      gst_message_parse_error (message, &error, NULL);
      if (!first)
        first = g_steal_pointer (&error);
    } else {
      gst_message_parse_warning (message, &error, NULL);
      log_event_limited (&limit, "title %s: %s", self->title->label, error->message);
    }
    gst_message_unref (message);
  }
  return first;
}

static void
set_error (SwarmLocal *self, gint code, GError **error)
{
  g_autoptr (GError) reason = take_messages (self);
  g_auto (GStrv) parts =
      g_strsplit (reason ? reason->message : "the swarm gives no bytes of it", self->path, -1);
  g_autofree gchar *named = g_strjoinv (self->title->torrent_name, parts);

  if (g_error_matches (reason, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND))
    code = G_IO_ERROR_NOT_FOUND;
  g_set_error (error, G_IO_ERROR, code, "%s: %s", self->title->label, named);
}

// ---- reading ----

gsize
swarm_local_read (SwarmLocal *self, guint64 offset, guint8 *bytes, gsize length, GError **error)
{
  g_autoptr (GError) unused = NULL;
  gsize got = 0;

  length = (gsize) MIN (length, self->size - MIN (offset, self->size));
  while (got < length) {
    GstBuffer *buffer = NULL;
    gsize n = 0;

    if (gst_pad_get_range (self->pad, offset + got, (guint) (length - got), &buffer)
        == GST_FLOW_OK) {
      n = gst_buffer_extract (buffer, 0, bytes + got, length - got);
      gst_buffer_unref (buffer);
    }
    if (n == 0) {
      set_error (self, G_IO_ERROR_PROXY_FAILED, error);
      return 0;
    }
    got += n;
  }
  unused = take_messages (self);
  return got;
}

void
swarm_local_rest (SwarmLocal *self)
{
  gst_pad_activate_mode (self->pad, GST_PAD_MODE_PULL, FALSE);
}

// ---- lifetime ----

// Starts the element. Its pad is pulled here, so that nothing is linked to it.
static gboolean
start (SwarmLocal *self, GError **error)
{
  gint64 size;

  if (gst_element_set_state (self->element, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE
      && gst_pad_activate_mode (self->pad, GST_PAD_MODE_PULL, TRUE)
      && gst_pad_query_duration (self->pad, GST_FORMAT_BYTES, &size) && size > 0) {
    self->size = (guint64) size;
    return TRUE;
  }
  set_error (self, G_IO_ERROR_INVALID_DATA, error);
  return FALSE;
}

SwarmLocal *
swarm_local_new (const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error)
{
  SwarmLocal *self = g_new0 (SwarmLocal, 1);
  g_autofree gchar *file = title->file ? g_strconcat ("/", title->file, NULL) : NULL;
  GError *missing = NULL;

  self->title = title;
  self->path = g_strdup_printf ("/proc/self/fd/%d", title->torrent);
  self->element = element_make ("swarmsrc", &missing);
  if (!self->element) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, missing->message);
    g_error_free (missing);
    swarm_local_free (self);
    return NULL;
  }
  gst_object_ref_sink (self->element);
  self->bus = gst_bus_new ();
  gst_element_set_bus (self->element, self->bus);
  self->pad = gst_element_get_static_pad (self->element, "src");
  for (const gchar *const *p = title->properties; p[0]; p += 2)
    gst_util_set_object_arg (G_OBJECT (self->element), p[0], p[1]);
  g_object_set (self->element, "torrent", self->path, "file", file, "bitrate", rate, "timeout",
      timeout_s, "storage-fd", title->storage, NULL);
  if (start (self, error))
    return self;
  swarm_local_free (self);
  return NULL;
}

guint64
swarm_local_get_size (const SwarmLocal *self)
{
  return self->size;
}

static guint64
get_number (const GstStructure *stats, const gchar *name)
{
  guint64 number = 0;
  guint small = 0;

  if (gst_structure_get_uint64 (stats, name, &number))
    return number;
  gst_structure_get_uint (stats, name, &small);
  return small;
}

void
swarm_local_get_figures (SwarmLocal *self, StoreSwarmTitle *figures)
{
  g_autoptr (GstStructure) stats = NULL;

  g_object_get (self->element, "stats", &stats, NULL);
  *figures = (StoreSwarmTitle) {
    .size = get_number (stats, "size"),
    .held_bytes = get_number (stats, "held-bytes"),
    .peers = get_number (stats, "peers"),
    .peer_bytes = get_number (stats, "peer-bytes"),
    .origin_bytes = get_number (stats, "origin-bytes"),
    .sent_bytes = get_number (stats, "sent-bytes"),
    .duplicate_bytes = get_number (stats, "duplicate-bytes"),
    .wrong_bytes = get_number (stats, "wrong-bytes"),
    .origin_errors = get_number (stats, "origin-errors"),
    .late_pieces = get_number (stats, "pieces-late"),
    .stalls = get_number (stats, "stalls"),
    .stalled_us = get_number (stats, "stalled") / GST_USECOND,
    .start_up_us = get_number (stats, "start-up") / GST_USECOND,
  };
  figures->starts = figures->start_up_us > 0;
  figures->starts_us = figures->start_up_us;
}

void
swarm_local_free (SwarmLocal *self)
{
  if (self->pad)
    swarm_local_rest (self);
  gst_clear_object (&self->pad);
  if (self->element) {
    gst_element_set_state (self->element, GST_STATE_NULL);
    gst_element_set_bus (self->element, NULL);
    gst_object_unref (self->element);
  }
  gst_clear_object (&self->bus);
  g_free (self->path);
  g_free (self);
}
