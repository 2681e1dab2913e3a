// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-schedulesrc
 * @title: schedulesrc
 * @short_description: receives a title or a stream that a server broadcasts on multicast groups
 *
 * Receives a stored title or a live stream that rtsp-proxy broadcasts (key `broadcast` of a mount).
 * Of a live stream, the element gets the packets since the newest keyframe by unicast, and gives
 * them out at once; then it changes to the group, without a gap or a repetition. Of a title, it
 * asks the server for a description, which says which part of the title is sent on which group and
 * when. It joins and leaves the groups accordingly, keeps what comes before its time, and gives
 * each track on a pad, as RTP in order. What no group brings in time it asks for by unicast: the
 * beginning of a title that is patched, and packets that were lost.
 *
 * #WeirScheduleSrc:location is rtsp-schedule://HOST[:PORT]/PATH, also for `uridecodebin` and
 * `playbin`. The server may say when to try again, for example while it prepares the title; the
 * element does so for up to #WeirScheduleSrc:timeout.
 *
 * This is a live source: each packet of a title leaves the element #WeirScheduleSrc:latency after
 * its time in the title, and not before. The timestamps are the running times of the packets' times
 * in the title. DISCONT marks the first buffer, and the first one behind packets that are lost.
 * When the server is gone, what is kept plays on, and then the title waits. When the server is back
 * with the same title, it goes on from there.
 *
 * The packets of a stream leave as soon as they are there in order. The first one plays at once, so
 * the stream plays later than it is sent by the age of its newest keyframe then. A packet that does
 * not come within #WeirScheduleSrc:latency after the next one is given up. When the server begins
 * the stream anew, so does the element, from a keyframe on.
 *
 * Packets of a title are kept in memory up to #WeirScheduleSrc:buffer-size, then in a file without
 * a name in the folder for temporary files.
 *
 * Threads: one asks the server, one receives from the groups, and one for each pad pushes. Receive
 * buffers of 512 KiB take what comes meanwhile.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 schedulesrc location=rtsp-schedule://127.0.0.1:8554/films/a.mp4 ! decodebin ! autovideosink
 * gst-launch-1.0 uridecodebin uri=rtsp-schedule://127.0.0.1:8554/films/a.mp4 ! autovideosink
 * gst-launch-1.0 schedulesrc location=rtsp-schedule://127.0.0.1:8554/films/a.mp4 multicast-iface=lo ! decodebin ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "broadcast/schedulesrc_private.h"
#include "core/run/clock.h"
#include "elementname.h"

GST_DEBUG_CATEGORY (schedulesrc_debug);
#define GST_CAT_DEFAULT schedulesrc_debug

static void uri_handler_init (gpointer iface, gpointer data);

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "stream_%u", GST_PAD_SRC, GST_PAD_SOMETIMES, GST_STATIC_CAPS ("application/x-rtp"));

G_DEFINE_FINAL_TYPE_WITH_CODE (WeirScheduleSrc, weir_schedule_src, GST_TYPE_ELEMENT,
    G_IMPLEMENT_INTERFACE (GST_TYPE_URI_HANDLER, uri_handler_init))
GST_ELEMENT_REGISTER_DEFINE (schedulesrc, "schedulesrc", GST_RANK_SECONDARY, WEIR_TYPE_SCHEDULE_SRC)

void
schedule_src_fail (WeirScheduleSrc *self, GstResourceError code, const gchar *why)
{
  gchar *location;
  gboolean stopping;

  g_mutex_lock (&self->lock);
  stopping = self->stopping;
  g_mutex_unlock (&self->lock);
  if (stopping)
    return;
  GST_OBJECT_LOCK (self);
  location = g_strdup (self->settings.location);
  GST_OBJECT_UNLOCK (self);
  gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR, code,
      g_strdup_printf ("schedulesrc: %s", why), location, __FILE__, GST_FUNCTION, __LINE__);
}

void
schedule_src_put (WeirScheduleSrc *self, guint32 track, guint32 number, const WeirRtp *rtp,
    gboolean by_group, KeptPacket *packet)
{
  gint result;

  if (!packet)
    return;
  g_mutex_lock (&self->lock);
  result = weir_follow_put (&self->follow, track, number, rtp, by_group, weir_now_ns (), packet);
  if (result == 0 && !self->follow.tracks[track].found)
    g_cond_signal (&self->pads[track]->cond);
  g_mutex_unlock (&self->lock);
  if (result < 0)
    gst_buffer_unref (packet_keep_take (&self->keep, packet));
}

void
schedule_src_wake_receiver (WeirScheduleSrc *self)
{
  const guint64 one = 1;

  if (self->wake_fd >= 0 && write (self->wake_fd, &one, sizeof one) < 0)
    GST_WARNING_OBJECT (self, "cannot wake the receiver's thread");
}

// ---- states ----

static gboolean
start (WeirScheduleSrc *self)
{
  ScheduleSrcSettings *settings = &self->settings;
  GError *error = NULL;

  GST_OBJECT_LOCK (self);
  self->ask = rtsp_ask_new (settings->location, settings->user, settings->password, &error);
  packet_keep_init (&self->keep, settings->buffer_size);
  GST_OBJECT_UNLOCK (self);
  self->stopping = self->ending = FALSE;
  self->start_known = FALSE;
  self->title_start = self->start_up_ns = self->output_ns = self->wait_ns = 0;
  self->reconnects = 0;
  self->is_live = FALSE;
  self->asked_ns = weir_now_ns ();
  self->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!self->ask) {
    schedule_src_fail (self, error->code, error->message);
    g_clear_error (&error);
    return FALSE;
  }
  self->session = g_thread_new ("schedule-session", schedule_src_session, self);
  return TRUE;
}

static void
free_packet (gpointer packet)
{
  // The bytes are counted in `keep`, which ends.
  PacketKeep none = { 0 };

  gst_buffer_unref (packet_keep_take (&none, packet));
}

static void
wake_all (WeirScheduleSrc *self)
{
  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  g_cond_broadcast (&self->cond);
  schedule_src_wake_pads (self);
  g_mutex_unlock (&self->lock);
  if (self->ask)
    rtsp_ask_stop (self->ask);
  schedule_src_wake_receiver (self);
}

static void
stop (WeirScheduleSrc *self)
{
  WeirFollow follow = { 0 };
  WeirLive live = { 0 };
  GstStructure *stats;

  g_object_get (self, "stats", &stats, NULL);
  GST_INFO_OBJECT (self, "ends: %" GST_PTR_FORMAT, stats);
  gst_structure_free (stats);
  wake_all (self);
  if (self->session)
    g_thread_join (g_steal_pointer (&self->session));
  if (self->receiver)
    g_thread_join (g_steal_pointer (&self->receiver));
  schedule_src_wake_pads (self);
  schedule_src_remove_pads (self);
  g_mutex_lock (&self->lock);
  if (self->following) {
    self->last = *schedule_src_get_counts (self);
    follow = self->follow;
    live = self->live;
    self->follow = (WeirFollow) { 0 };
    self->live = (WeirLive) { 0 };
    self->following = FALSE;
  }
  self->high_memory = self->keep.high_memory;
  self->high_file = self->keep.high_file;
  self->playing = FALSE;
  g_mutex_unlock (&self->lock);
  weir_follow_clear (&follow, free_packet);
  weir_live_clear (&live, free_packet);
  g_clear_pointer (&self->next_description, g_free);
  packet_keep_clear (&self->keep);
  g_clear_pointer (&self->ask, rtsp_ask_free);
  if (self->wake_fd >= 0)
    close (self->wake_fd);
  self->wake_fd = -1;
}

static void
set_playing (WeirScheduleSrc *self, gboolean playing)
{
  g_mutex_lock (&self->lock);
  self->playing = playing;
  self->playing_ns = weir_now_ns ();
  // A live stream goes on at its live edge.
  if (self->following && self->is_live && playing && self->live.playing) {
    weir_live_restart (&self->live);
    weir_live_begin (&self->live, self->description->times, self->playing_ns);
  }
  self->start_known = FALSE; // the base time changes
  schedule_src_wake_pads (self);
  g_mutex_unlock (&self->lock);
}

static GstStateChangeReturn
weir_schedule_src_change_state (GstElement *element, GstStateChange transition)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !start (self)) {
    stop (self);
    return GST_STATE_CHANGE_FAILURE;
  }
  if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    set_playing (self, FALSE);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    wake_all (self);
  result = GST_ELEMENT_CLASS (weir_schedule_src_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    stop (self);
  if (result == GST_STATE_CHANGE_FAILURE)
    return result;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING)
    set_playing (self, TRUE);
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED
      || transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    result = GST_STATE_CHANGE_NO_PREROLL;
  return result;
}

// An application ends the stream by EOS. Each pad's thread passes it on.
static gboolean
weir_schedule_src_send_event (GstElement *element, GstEvent *event)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (element);

  if (GST_EVENT_TYPE (event) != GST_EVENT_EOS)
    return GST_ELEMENT_CLASS (weir_schedule_src_parent_class)->send_event (element, event);
  gst_event_unref (event);
  g_mutex_lock (&self->lock);
  self->ending = TRUE;
  schedule_src_wake_pads (self);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

// ---- URIs ----

static GstURIType
get_uri_type (GType type)
{
  return GST_URI_SRC;
}

static const gchar *const *
get_protocols (GType type)
{
  static const gchar *const protocols[] = { "rtsp-schedule", NULL };

  return protocols;
}

static gchar *
get_uri (GstURIHandler *handler)
{
  gchar *uri;

  g_object_get (handler, "location", &uri, NULL);
  return uri;
}

static gboolean
set_uri (GstURIHandler *handler, const gchar *uri, GError **error)
{
  g_object_set (handler, "location", uri, NULL);
  return TRUE;
}

static void
uri_handler_init (gpointer iface, gpointer data)
{
  GstURIHandlerInterface *handler = iface;

  handler->get_type = get_uri_type;
  handler->get_protocols = get_protocols;
  handler->get_uri = get_uri;
  handler->set_uri = set_uri;
}

// ---- life ----

static void
weir_schedule_src_init (WeirScheduleSrc *self)
{
  schedule_src_init_settings (&self->settings);
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->description = g_new0 (WeirDescription, 1);
  self->combiner = gst_flow_combiner_new ();
  self->wake_fd = -1;
  GST_OBJECT_FLAG_SET (self, GST_ELEMENT_FLAG_SOURCE);
}

static void
weir_schedule_src_finalize (GObject *object)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (object);

  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  g_free (self->description);
  gst_flow_combiner_free (self->combiner);
  g_free (self->settings.location);
  g_free (self->settings.user);
  g_free (self->settings.password);
  g_free (self->settings.iface);
  G_OBJECT_CLASS (weir_schedule_src_parent_class)->finalize (object);
}

static void
weir_schedule_src_class_init (WeirScheduleSrcClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (schedulesrc_debug, "schedulesrc", 0, "receiver of broadcasts");

  gobject_class->set_property = schedule_src_set_property;
  gobject_class->get_property = schedule_src_get_property;
  gobject_class->finalize = weir_schedule_src_finalize;
  element_class->change_state = weir_schedule_src_change_state;
  element_class->send_event = weir_schedule_src_send_event;

  schedule_src_install_properties (gobject_class);

  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Receiver of broadcasts",
      "Source/Network/RTP",
      "Receives a title or a stream that a server broadcasts on multicast groups", "Weir");
}
