// SPDX-License-Identifier: LGPL-2.1-or-later
//
// gst-rtsp-server would make two udpsrc for each stream that is played, each with a thread that
// waits for RTCP of which the sender bin needs nothing. See relaymedia.c, which does the same when
// the media is prepared; here it is done when a stream is played, as a stream that nobody has set
// up must stay without elements.
#include "sendermedia.h"

#include "feedback.h"
#include "relaybin.h"
#include "relaymedia.h"
#include "relayrtcp.h"
#include "reports.h"

// The state of a stream: its qdata.
typedef struct {
  GMutex lock; // held while the elements are made: a second PLAY must find all of them
  gboolean complete;
  WeirRelayRtcp *rtcp;
} Sender;

static GQuark
sender_quark (void)
{
  return g_quark_from_static_string ("weir-sender");
}

static void
clear_sender (gpointer data)
{
  Sender *self = data;

  g_clear_pointer (&self->rtcp, weir_relay_rtcp_free);
  g_mutex_clear (&self->lock);
}

static void
unref_sender (gpointer self)
{
  g_atomic_rc_box_release_full (self, clear_sender);
}

static void
drop_sender (gpointer self, GClosure *closure)
{
  unref_sender (self);
}

// The streams have lost their elements and sockets.
static void
on_unprepared (GstRTSPMedia *media, gpointer data)
{
  Sender *self = data;
  WeirRelayRtcp *rtcp;

  g_mutex_lock (&self->lock);
  self->complete = FALSE;
  rtcp = g_steal_pointer (&self->rtcp);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&rtcp, weir_relay_rtcp_free);
}

static Sender *
get_sender (GstRTSPMedia *media, GstRTSPStream *stream)
{
  static GMutex making;
  Sender *self;

  g_mutex_lock (&making);
  self = g_object_get_qdata (G_OBJECT (stream), sender_quark ());
  if (!self) {
    self = g_atomic_rc_box_new0 (Sender);
    g_mutex_init (&self->lock);
    g_object_set_qdata_full (G_OBJECT (stream), sender_quark (), self, unref_sender);
    g_signal_connect_data (media, "unprepared", G_CALLBACK (on_unprepared),
        g_atomic_rc_box_acquire (self), drop_sender, (GConnectFlags) 0);
  }
  g_mutex_unlock (&making);
  return self;
}

static gboolean
has_sender_bin (GstRTSPMedia *media, GstRTSPStream *stream)
{
  GstPad *pad =
      weir_is_relay_media (media) ? NULL : weir_reports_find_pad (stream, "recv_rtcp_sink");
  GstElement *bin = pad ? gst_pad_get_parent_element (pad) : NULL;
  gboolean has = bin && weir_is_relay_bin (bin);

  g_clear_object (&bin);
  g_clear_object (&pad);
  return has;
}

static void
complete (Sender *self, GstRTSPStream *stream)
{
  GstRTSPTransport *transport;

  gst_rtsp_transport_new (&transport);
  transport->lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  weir_feedback_complete (stream, transport, FALSE, FALSE);
  self->complete = gst_rtsp_stream_is_complete (stream);
  if (self->complete)
    self->rtcp = weir_relay_rtcp_new (stream, NULL, NULL);
  gst_rtsp_transport_free (transport);
}

gboolean
weir_sender_media_complete (GstRTSPMedia *media, GstRTSPStream *stream)
{
  gboolean done;
  Sender *self;

  if (!has_sender_bin (media, stream))
    return FALSE;
  self = get_sender (media, stream);
  g_mutex_lock (&self->lock);
  if (!self->complete && !gst_rtsp_stream_is_complete (stream))
    complete (self, stream);
  done = self->complete;
  g_mutex_unlock (&self->lock);
  return done;
}
