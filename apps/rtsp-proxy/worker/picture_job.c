// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/picture_job.h"

#include <errno.h>
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/element.h"
#include "base/threads.h"
#include "frames/key_frame.h"
#include "frames/picture_kind.h"
#include "isolate/picture_wire.h"
#include "rtp/rtp.h"

#define PACKETS_MAX (KEY_FRAME_BYTES_MAX + G_MAXUINT16 + 2) // bytes of the file
#define PATIENCE (4 * GST_SECOND)                           // the proxy's is longer
#define NEXT_FRAME 9000                                     // in units of 90 kHz
#define QUALITY 80                                          // of jpegenc

typedef struct {
  gint file, socket;
  guint width; // 0: the picture's own
  GstCaps *caps;
} PictureJob;

// ---- the packets ----

// Returns the packets in the file, or NULL if it is not as it should be. (transfer full)
static GstBufferList *
read_packets (gint file)
{
  struct stat status;
  gpointer data = MAP_FAILED;
  gsize size = 0;
  GstBufferList *list = gst_buffer_list_new ();
  WeirBytes b;

  if (fstat (file, &status) == 0 && status.st_size > 0 && status.st_size <= PACKETS_MAX) {
    size = (gsize) status.st_size;
    data = mmap (NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  }
  b = weir_bytes (data == MAP_FAILED ? NULL : data, data == MAP_FAILED ? 0 : size);
  while (weir_bytes_left (&b) > 0) {
    const guint8 *packet;
    guint16 len;

    weir_bytes_u16 (&b, &len);
    if (!weir_bytes_take (&b, len, &packet))
      break;
    gst_buffer_list_add (list, gst_buffer_new_memdup (packet, len));
    GST_BUFFER_PTS (gst_buffer_list_get_writable (list, gst_buffer_list_length (list) - 1)) = 0;
  }
  if (data != MAP_FAILED)
    munmap (data, size);
  if (b.failed || gst_buffer_list_length (list) == 0)
    g_clear_pointer (&list, gst_buffer_list_unref);
  return list;
}

// ---- the elements ----

// Returns the name of the decoder with the highest rank, or NULL. One that needs a device cannot
// run here. (transfer full)
static gchar *
find_decoder (const PictureKind *kind)
{
  GList *all = gst_element_factory_list_get_elements (GST_ELEMENT_FACTORY_TYPE_DECODER
                                                          | GST_ELEMENT_FACTORY_TYPE_MEDIA_VIDEO
                                                          | GST_ELEMENT_FACTORY_TYPE_MEDIA_IMAGE,
      GST_RANK_MARGINAL);
  g_autoptr (GstCaps) caps = gst_caps_from_string (kind->caps);
  GList *fit = gst_element_factory_list_filter (all, caps, GST_PAD_SINK, FALSE);
  gchar *name = NULL;

  fit = g_list_sort (fit, gst_plugin_feature_rank_compare_func);
  for (GList *l = fit; l && !name; l = l->next) {
    const gchar *class = gst_element_factory_get_metadata (l->data, GST_ELEMENT_METADATA_KLASS);

    if (!strstr (class, "Hardware"))
      name = gst_object_get_name (l->data);
  }
  gst_plugin_feature_list_free (fit);
  gst_plugin_feature_list_free (all);
  return name;
}

// A single frame gains nothing from threads, which take time to start.
static void
use_one_thread (GstElement *decoder)
{
  static const gchar *const names[] = { "max-threads", "threads" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (g_object_class_find_property (G_OBJECT_GET_CLASS (decoder), names[i]))
      gst_util_set_object_arg (G_OBJECT (decoder), names[i], "1");
  }
}

static GstElement *
make_pipeline (const PictureJob *self, GError **error)
{
  const PictureKind *kind = picture_kind_find (self->caps);
  g_autofree gchar *decoder = kind ? find_decoder (kind) : NULL;
  g_autofree gchar *width = NULL, *text = NULL;
  GstElement *pipeline, *element;

  if (!decoder) {
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "no decoder of %s is installed that needs no device", kind ? kind->encoding : "this codec");
    return NULL;
  }
  width = self->width > 0 ? g_strdup_printf (",width=[1,%u]", self->width) : g_strdup ("");
  text = g_strdup_printf (
      "appsrc name=in format=time ! %s ! %s%s%s name=decoder ! videoconvertscale ! "
      "video/x-raw,pixel-aspect-ratio=1/1%s ! jpegenc quality=%d ! appsink name=out sync=false",
      kind->depay, kind->parse ? kind->parse : "", kind->parse ? " ! " : "", decoder, width,
      QUALITY);
  pipeline = gst_parse_launch_full (text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
  if (!pipeline)
    return NULL;
  element = gst_bin_get_by_name (GST_BIN (pipeline), "decoder");
  use_one_thread (element);
  gst_object_unref (element);
  return gst_object_ref_sink (pipeline);
}

// ---- the picture ----

// Adds the packets again, as the next frame. Some decoders (OpenH264, with frames that are
// reordered) give a picture only when the next one comes.
static void
repeat_packets (GstBufferList *packets)
{
  const guint n = gst_buffer_list_length (packets);

  for (guint i = 0; i < n; i++) {
    GstBuffer *copy = gst_buffer_copy_deep (gst_buffer_list_get (packets, i));
    GstMapInfo map;

    if (gst_buffer_map (copy, &map, GST_MAP_READWRITE)) {
      if (map.size >= WEIR_RTP_HEADER) {
        weir_rtp_set_seq (map.data, (guint16) (weir_rtp_get_seq (map.data) + n));
        weir_rtp_set_timestamp (map.data, weir_rtp_get_timestamp (map.data) + NEXT_FRAME);
      }
      gst_buffer_unmap (copy, &map);
    }
    gst_buffer_list_add (packets, copy);
  }
}

// Returns what the bus says of a failure. (transfer full)
static gchar *
dup_problem (GstElement *pipeline)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *debug = NULL;

  if (!message)
    return g_strdup ("its decoder gave no picture");
  gst_message_parse_error (message, &error, &debug);
  element_explain_error (error, debug);
  return g_strdup (error->message);
}

// Takes ownership of the packets. Returns the picture, or NULL and sets `problem`.
static GstBuffer *
run_pipeline (GstElement *pipeline, GstCaps *caps, GstBufferList *packets, gchar **problem)
{
  g_autoptr (GstElement) in = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  g_autoptr (GstElement) out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  g_autoptr (GstSample) sample = NULL;
  GstBuffer *picture = NULL;

  gst_app_src_set_caps (GST_APP_SRC (in), caps);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_app_src_push_buffer_list (GST_APP_SRC (in), packets);
  gst_app_src_end_of_stream (GST_APP_SRC (in));
  sample = gst_app_sink_try_pull_sample (GST_APP_SINK (out), PATIENCE);
  if (sample)
    picture = gst_buffer_ref (gst_sample_get_buffer (sample));
  else
    *problem = dup_problem (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  return picture;
}

static GstBuffer *
decode (const PictureJob *self, gboolean twice, gchar **problem)
{
  GstBufferList *packets = read_packets (self->file);
  g_autoptr (GError) error = NULL;
  g_autoptr (GstElement) pipeline = packets ? make_pipeline (self, &error) : NULL;

  if (pipeline && twice)
    repeat_packets (packets);
  if (pipeline)
    return run_pipeline (pipeline, self->caps, packets, problem);
  g_clear_pointer (&packets, gst_buffer_list_unref);
  *problem = g_strdup (error ? error->message : "its packets are malformed");
  return NULL;
}

static GstBuffer *
make_picture (const PictureJob *self, gchar **problem)
{
  GstBuffer *picture = decode (self, FALSE, problem);

  if (picture)
    return picture;
  g_clear_pointer (problem, g_free);
  return decode (self, TRUE, problem);
}

// ---- the answer ----

static void
send_all (gint socket, const guint8 *data, gsize len)
{
  while (len > 0) {
    gssize n = send (socket, data, len, MSG_NOSIGNAL);

    if (n < 0 && errno != EINTR)
      return;
    data += MAX (n, 0);
    len -= (gsize) MAX (n, 0);
  }
}

static void
send_picture (gint socket, GstBuffer *picture)
{
  const guint8 kind = PICTURE_WIRE_JPEG;
  GstMapInfo map;

  if (!gst_buffer_map (picture, &map, GST_MAP_READ))
    return;
  send_all (socket, &kind, sizeof kind);
  send_all (socket, map.data, map.size);
  gst_buffer_unmap (picture, &map);
}

static void
send_problem (gint socket, const gchar *problem)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  picture_wire_put_problem (message, problem);
  send_all (socket, message->data, message->len);
}

static void
work (gpointer data)
{
  PictureJob *self = data;
  g_autofree gchar *problem = NULL;
  GstBuffer *picture = self->caps ? make_picture (self, &problem) : NULL;

  if (picture)
    send_picture (self->socket, picture);
  else
    send_problem (self->socket, problem ? problem : "its description is malformed");
  gst_clear_buffer (&picture);
  close (self->file);
  close (self->socket);
  gst_clear_caps (&self->caps);
  g_free (self);
}

void
picture_job_start (const guint8 *message, gsize len, const gint *fds)
{
  PictureJob *self = g_new0 (PictureJob, 1);

  self->file = fds[0];
  self->socket = fds[1];
  if (!picture_wire_read_job (message, len, &self->width, &self->caps))
    self->caps = NULL;
  thread_run ("picture", work, self);
}
