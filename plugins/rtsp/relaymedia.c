// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A media whose streams are RTP already costs no thread: relaybin.c stands in for rtpbin, and
// relayrtcp.c reads the RTCP of readers.
//
// gst-rtsp-server would make two udpsrc for each stream. It makes the receivers of a stream before
// its senders, each by the lower transport that the given transport says. So the transport says
// something else until the receivers are there, and UDP from then on: see weir_feedback_complete().
// A video has an appsrc for the RTCP of TCP readers; relayrtcp.c takes its packets.
#include "relaymedia.h"

#include "feedback.h"
#include "ports.h"
#include "relaybin.h"
#include "relayrtcp.h"
#include "reports.h"
#include "rtp/rtcp_write.h"

#include <pthread.h>

typedef struct {
  GstRTSPMedia parent;
  GstElement *bin;
  GPtrArray *rtcp; // WeirRelayRtcp
  gboolean ipv6;
  struct {
    WeirNtpTimeFunc func;
    gpointer data;
    GDestroyNotify notify;
  } clock;
} RelayMedia;

typedef struct {
  GstRTSPMediaClass parent_class;
} RelayMediaClass;

G_DEFINE_TYPE (RelayMedia, weir_relay_media, GST_TYPE_RTSP_MEDIA)

gboolean
weir_is_relay_media (GstRTSPMedia *media)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (media, WEIR_TYPE_RELAY_MEDIA);
}

static void
free_clock (RelayMedia *self)
{
  if (self->clock.notify)
    self->clock.notify (self->clock.data);
}

void
weir_relay_media_set_ntp_func (
    GstRTSPMedia *media, WeirNtpTimeFunc func, gpointer data, GDestroyNotify notify)
{
  RelayMedia *self = (RelayMedia *) media;

  free_clock (self);
  self->clock.func = func;
  self->clock.data = data;
  self->clock.notify = notify;
}

// ---- streams ----

static void
open_stream (RelayMedia *self, GstRTSPStream *stream)
{
  GstRTSPTransport transport = { 0 };
  GstElement *source;

  if (!weir_ports_open (stream, self->ipv6))
    return;
  gst_rtsp_transport_init (&transport);
  transport.lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  source = weir_feedback_complete (stream, &transport, weir_feedback_is_video (stream), FALSE);
  g_ptr_array_add (self->rtcp, weir_relay_rtcp_new (stream, self->bin, source));
}

// Runs before the program's handlers, so that the sinks are there.
static void
on_prepared (GstRTSPMedia *media, gpointer unused)
{
  for (guint i = 0; i < gst_rtsp_media_n_streams (media); i++)
    open_stream ((RelayMedia *) media, gst_rtsp_media_get_stream (media, i));
}

// ---- sender reports ----

// Writes a sender report about the newest packet; without a wall-clock time for it, a receiver
// report, because no time is better than a wrong one.
static gsize
write_report (gpointer media, guint index, const WeirRelayCounts *counts, guint8 *out, gsize room)
{
  RelayMedia *self = media;
  GstRTSPStream *stream = gst_rtsp_media_get_stream (media, index);
  WeirNtpMap at = { .known = TRUE, .timestamp = counts->timestamp, .ssrc = counts->ssrc };

  if (counts->ends)
    return 0; // another upstream may take over
  at.ntp = weir_ntp_from_unix (counts->arrival * 1000);
  if (self->clock.func)
    at.known = self->clock.func (stream, counts->timestamp, &at.ntp, self->clock.data);
  if (!at.known)
    return weir_rtcp_write_rr (out, room, counts->ssrc, NULL, 0, weir_relay_session_get_cname ());
  weir_reports_note_sent (stream, &at);
  return weir_rtcp_write_sr (
      out, room, &at, counts->n_packets, counts->n_octets, weir_relay_session_get_cname ());
}

// ---- the media ----

static GstElement *
relay_media_create_rtpbin (GstRTSPMedia *media)
{
  RelayMedia *self = (RelayMedia *) media;
  GstElement *bin = weir_relay_bin_new (write_report, self, FALSE);

  gst_object_replace ((GstObject **) &self->bin, GST_OBJECT (bin));
  return bin;
}

static gpointer
run_thread (gpointer thread)
{
  pthread_setname_np (pthread_self (), "weir-media");
  g_main_context_push_thread_default (((GstRTSPThread *) thread)->context);
  g_main_loop_run (((GstRTSPThread *) thread)->loop);
  return NULL;
}

// Returns the thread that all relay media share (transfer full), because none of them blocks it. It
// never ends.
static GstRTSPThread *
ref_thread (void)
{
  static gsize thread;

  if (g_once_init_enter (&thread)) {
    GstRTSPThread *made = gst_rtsp_thread_new (GST_RTSP_THREAD_TYPE_MEDIA);

    g_thread_unref (g_thread_new ("weir-media", run_thread, made));
    g_once_init_leave (&thread, (gsize) made);
  }
  gst_rtsp_thread_reuse ((GstRTSPThread *) thread);
  return (GstRTSPThread *) thread;
}

static gboolean
relay_media_prepare (GstRTSPMedia *media, GstRTSPThread *own)
{
  GstRTSPThread *thread = ref_thread ();

  if (!GST_RTSP_MEDIA_CLASS (weir_relay_media_parent_class)->prepare (media, thread)) {
    gst_rtsp_thread_stop (thread);
    return FALSE;
  }
  if (own)
    gst_rtsp_thread_stop (own);
  return TRUE;
}

static gboolean
relay_media_unprepare (GstRTSPMedia *media)
{
  g_ptr_array_set_size (((RelayMedia *) media)->rtcp, 0);
  return GST_RTSP_MEDIA_CLASS (weir_relay_media_parent_class)->unprepare (media);
}

enum { PROP_0, PROP_IPV6 };

static void
relay_media_get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  if (id == PROP_IPV6)
    g_value_set_boolean (value, ((RelayMedia *) object)->ipv6);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

static void
relay_media_set_property (GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
  if (id == PROP_IPV6)
    ((RelayMedia *) object)->ipv6 = g_value_get_boolean (value);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

static void
relay_media_finalize (GObject *object)
{
  RelayMedia *self = (RelayMedia *) object;

  g_ptr_array_unref (self->rtcp);
  free_clock (self);
  gst_clear_object (&self->bin);
  G_OBJECT_CLASS (weir_relay_media_parent_class)->finalize (object);
}

static void
weir_relay_media_init (RelayMedia *self)
{
  self->ipv6 = TRUE;
  self->rtcp = g_ptr_array_new_with_free_func ((GDestroyNotify) weir_relay_rtcp_free);
  g_signal_connect (self, "prepared", G_CALLBACK (on_prepared), NULL);
}

static void
weir_relay_media_class_init (RelayMediaClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = relay_media_finalize;
  object_class->get_property = relay_media_get_property;
  object_class->set_property = relay_media_set_property;
  g_object_class_install_property (object_class, PROP_IPV6,
      g_param_spec_boolean ("ipv6", "IPv6", "Serve readers over IPv6 as well; set before preparing",
          TRUE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS));
  GST_RTSP_MEDIA_CLASS (klass)->create_rtpbin = relay_media_create_rtpbin;
  GST_RTSP_MEDIA_CLASS (klass)->prepare = relay_media_prepare;
  GST_RTSP_MEDIA_CLASS (klass)->unprepare = relay_media_unprepare;
}
