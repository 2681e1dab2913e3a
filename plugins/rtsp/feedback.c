// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Passes keyframe requests (PLI, FIR) of readers over TCP upstream.
//
// gst-rtsp-server hands RTCP from a reader's interleaved channel to an appsrc of the stream, which
// it creates for the first TCP transport. The transports that Weir serves say UDP (serve.c), so
// there would be no appsrc. This file makes gst-rtsp-server create that appsrc and nothing else for
// TCP: it creates a stream's receivers before its senders, and the transport given to it here says
// TCP until the appsrc exists, and UDP from then on.
//
// RTCP packets that came over UDP, or from a client that gst-rtsp-server serves itself, carry an
// address. RTCP packets of Weir's TCP readers carry none, and never reach gst-rtsp-server's RTP
// session.

#include "feedback.h"

#include "keyevent.h"
#include "reports.h"
#include "rtp/rtcp_read.h"

// Length of the appsrc's queue. The oldest packet is dropped first.
#define WAITING_MAX 64

typedef struct {
  GstRTSPTransport transport;
  const gchar *last; // factory of the last receiver
  gboolean task;
  GstElement *source;
} Completion;

static gboolean
activate_nothing (GstPad *pad, GstObject *parent)
{
  return TRUE;
}

static void
configure_source (GstElement *source, gboolean task)
{
  GstPad *pad = gst_element_get_static_pad (source, "src");

  gst_util_set_object_arg (G_OBJECT (source), "leaky-type", "downstream");
  g_object_set (
      source, "max-bytes", G_GUINT64_CONSTANT (0), "max-buffers", (guint64) WAITING_MAX, NULL);
  // A source whose pad is not activated starts no task.
  if (!task)
    gst_pad_set_activate_function (pad, activate_nothing);
  gst_object_unref (pad);
}

// Called within gst_rtsp_stream_complete_stream().
static void
on_added (GstBin *bin, GstElement *element, Completion *completion)
{
  GstElementFactory *factory = gst_element_get_factory (element);
  const gchar *name = factory ? GST_OBJECT_NAME (factory) : "";

  if (g_str_equal (name, "appsrc")) {
    configure_source (element, completion->task);
    completion->source = element;
  }
  if (g_str_equal (name, completion->last))
    completion->transport.lower_transport = GST_RTSP_LOWER_TRANS_UDP;
}

GstElement *
weir_feedback_complete (
    GstRTSPStream *stream, const GstRTSPTransport *transport, gboolean source, gboolean task)
{
  Completion completion = { *transport, source ? "appsrc" : "funnel", task, NULL };
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  gulong id;

  if (!bin)
    return NULL;
  completion.transport.lower_transport = source ? GST_RTSP_LOWER_TRANS_TCP : WEIR_RELAY_LOWER_TRANS;
  id = g_signal_connect (bin, "element-added", G_CALLBACK (on_added), &completion);
  gst_rtsp_stream_complete_stream (stream, &completion.transport);
  g_signal_handler_disconnect (bin, id);
  gst_object_unref (bin);
  return completion.source;
}

gboolean
weir_feedback_is_video (GstRTSPStream *stream)
{
  GstCaps *caps = gst_rtsp_stream_get_caps (stream);
  const gchar *media =
      caps ? gst_structure_get_string (gst_caps_get_structure (caps, 0), "media") : NULL;
  gboolean video = g_strcmp0 (media, "video") == 0;

  g_clear_pointer (&caps, gst_caps_unref);
  return video;
}

void
weir_feedback_open (GstRTSPMedia *media, GstRTSPStreamTransport *transport)
{
  GstRTSPProfile secure = GST_RTSP_PROFILE_SAVP | GST_RTSP_PROFILE_SAVPF;
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  GQuark opened = g_quark_from_static_string ("weir-feedback");
  GstPad *pad;

  if (gst_rtsp_stream_get_profiles (stream) & secure || gst_rtsp_media_seekable (media) > 0
      || !weir_feedback_is_video (stream))
    return;
  // A media that was prepared again has another pad.
  pad = weir_reports_find_pad (stream, "recv_rtcp_sink");
  if (pad && !g_object_get_qdata (G_OBJECT (pad), opened)) {
    g_object_set_qdata (G_OBJECT (pad), opened, pad);
    weir_feedback_complete (
        stream, gst_rtsp_stream_transport_get_transport (transport), TRUE, TRUE);
  }
  g_clear_object (&pad);
}

// Returns the sink pad of rtpbin for the RTP of a stream, and its SSRC; NULL if the SSRC is not
// known. The caller owns the reference.
static GstPad *
find_stream (GstPad *rtcp, guint *ssrc)
{
  GstElement *rtpbin = gst_pad_get_parent_element (rtcp);
  gchar *name = g_strdup_printf ("send_rtp_sink%s", strrchr (GST_PAD_NAME (rtcp), '_'));
  GstPad *pad = rtpbin ? gst_element_get_static_pad (rtpbin, name) : NULL;
  GstCaps *caps = pad ? gst_pad_get_current_caps (pad) : NULL;

  if (!caps || !gst_structure_get_uint (gst_caps_get_structure (caps, 0), "ssrc", ssrc))
    g_clear_object (&pad);
  g_clear_pointer (&caps, gst_caps_unref);
  g_clear_object (&rtpbin);
  g_free (name);
  return pad;
}

void
weir_feedback_take (GstPad *pad, const guint8 *data, gsize size)
{
  guint ssrc = 0;
  GstPad *stream = find_stream (pad, &ssrc);

  if (stream && weir_rtcp_asks_key (data, size, ssrc))
    gst_pad_push_event (stream, weir_key_event_new (0));
  g_clear_object (&stream);
}
