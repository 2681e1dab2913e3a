// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/feed.h"

#include "base/clock.h"
#include "base/key_event.h"

typedef struct {
  GstElementClass parent_class;
} FeedClass;

struct _Feed {
  GstElement parent;
  GstPad *src;
  GstCaps *caps;
  gboolean timed;
  GThread *primer;        // used only in state changes
  gint open;              // atomic: downstream has taken the gap
  GstBufferList *waiting; // packets before the end of a batch; used only in push() and when idle
  // Under the object's lock:
  Relay *relay; // its packets are sent; may be NULL
  guint track;
};

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("application/x-rtp"));

GType feed_get_type (void);
G_DEFINE_TYPE (Feed, feed, GST_TYPE_ELEMENT)

// ---- the relay's side ----

gboolean
feed_is_open (Feed *self)
{
  return g_atomic_int_get (&self->open);
}

static gboolean
is_open (gpointer self)
{
  return feed_is_open (self);
}

// Sends the packet, and those that have waited for it. The results are ignored: a stream without
// readers is not linked.
static void
send_buffer (Feed *self, GstBuffer *buffer)
{
  if (!self->waiting) {
    gst_pad_push (self->src, buffer);
    return;
  }
  gst_buffer_list_add (self->waiting, buffer);
  gst_pad_push_list (self->src, g_steal_pointer (&self->waiting));
}

static void
push (gpointer data, const RelayPacket *packet)
{
  Feed *self = data;
  GstBuffer *buffer = packet->buffer;
  GstClockTime now = GST_CLOCK_TIME_NONE;

  // The RTP sessions and queues of gst-rtsp-server need valid times that never go back. The
  // packet's RTP timestamp stays.
  if (feed_is_open (self))
    now = self->timed ? (GstClockTime) MAX (packet->time, 0)
                      : gst_element_get_current_running_time (GST_ELEMENT (self));
  if (!GST_CLOCK_TIME_IS_VALID (now)) {
    gst_buffer_unref (buffer);
    return;
  }
  buffer = gst_buffer_make_writable (buffer);
  GST_BUFFER_PTS (buffer) = GST_BUFFER_DTS (buffer) = now;
  if (!packet->more) {
    send_buffer (self, buffer);
    return;
  }
  if (!self->waiting)
    self->waiting = gst_buffer_list_new ();
  gst_buffer_list_add (self->waiting, buffer);
}

static void
set_relay (Feed *self, Relay *relay, guint track)
{
  Relay *old;

  GST_OBJECT_LOCK (self);
  old = self->relay;
  self->relay = relay ? relay_ref (relay) : NULL;
  self->track = track;
  GST_OBJECT_UNLOCK (self);
  g_clear_pointer (&old, relay_unref);
}

static void
ended (gpointer self)
{
  set_relay (self, NULL, 0);
  gst_object_unref (self);
}

static const RelaySink feed_sink = { .push = push, .ended = ended, .is_open = is_open };

void
feed_attach (Feed *self, Relay *relay, guint track)
{
  set_relay (self, relay, track);
  relay_add_sink (relay, &feed_sink, gst_object_ref (self), 1u << track, 0);
}

void
feed_detach (Feed *self, Relay *relay)
{
  relay_remove_sink (relay, self);
}

// Handles keyframe requests of a fanoutsink or of a reader's RTCP. Called from any thread.
static gboolean
feed_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Feed *self = (Feed *) parent;
  Relay *relay;
  guint track;

  if (!key_event_is (event))
    return gst_pad_event_default (pad, parent, event);
  GST_OBJECT_LOCK (self);
  relay = self->relay ? relay_ref (self->relay) : NULL;
  track = self->track;
  GST_OBJECT_UNLOCK (self);
  gst_event_unref (event);
  if (!relay)
    return FALSE;
  relay_ask_key (relay, track, clock_now ());
  relay_unref (relay);
  return TRUE;
}

// ---- the element ----

static void
push_segment (Feed *self)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->src, gst_event_new_segment (&segment));
}

void
feed_flush (Feed *self)
{
  gst_pad_push_event (self->src, gst_event_new_flush_start ());
  gst_pad_push_event (self->src, gst_event_new_flush_stop (FALSE));
  push_segment (self);
}

// Sends the first events and a gap. The gap blocks until gst-rtsp-server unblocks its streams.
static gpointer
prime (gpointer data)
{
  Feed *self = data;
  g_autofree gchar *id = gst_pad_create_stream_id (self->src, GST_ELEMENT (self), NULL);

  gst_pad_push_event (self->src, gst_event_new_stream_start (id));
  gst_pad_push_event (self->src, gst_event_new_caps (self->caps));
  push_segment (self);
  gst_pad_push_event (self->src, gst_event_new_gap (0, GST_CLOCK_TIME_NONE));
  g_atomic_int_set (&self->open, 1);
  return NULL;
}

static GstStateChangeReturn
feed_change_state (GstElement *element, GstStateChange transition)
{
  Feed *self = (Feed *) element;
  GstStateChangeReturn ret;

  ret = GST_ELEMENT_CLASS (feed_parent_class)->change_state (element, transition);
  if (ret == GST_STATE_CHANGE_FAILURE)
    return ret;
  switch (transition) {
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      self->primer = g_thread_new ("feed", prime, self);
      return GST_STATE_CHANGE_NO_PREROLL;
    case GST_STATE_CHANGE_PLAYING_TO_PAUSED:
      return GST_STATE_CHANGE_NO_PREROLL;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      // The parent class has deactivated the pad, so a push of the thread has ended.
      g_thread_join (self->primer);
      self->primer = NULL;
      g_atomic_int_set (&self->open, 0);
      return ret;
    default:
      return ret;
  }
}

static gboolean
feed_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (GST_QUERY_TYPE (query) == GST_QUERY_LATENCY) {
    gst_query_set_latency (query, TRUE, 0, GST_CLOCK_TIME_NONE);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

static void
feed_init (Feed *self)
{
  self->src = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->src);
  gst_pad_set_query_function (self->src, feed_query);
  gst_pad_set_event_function (self->src, feed_event);
  gst_element_add_pad (GST_ELEMENT (self), self->src);
  GST_OBJECT_FLAG_SET (self, GST_ELEMENT_FLAG_SOURCE);
}

static void
feed_finalize (GObject *object)
{
  gst_clear_caps (&((Feed *) object)->caps);
  g_clear_pointer (&((Feed *) object)->waiting, gst_buffer_list_unref);
  G_OBJECT_CLASS (feed_parent_class)->finalize (object);
}

static void
feed_class_init (FeedClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = feed_finalize;
  element_class->change_state = feed_change_state;
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Track feed", "Source/Network/RTP",
      "Sends a relay's track into a media of gst-rtsp-server", "Weir");
}

Feed *
feed_new (GstCaps *caps, gboolean timed)
{
  Feed *self = g_object_new (feed_get_type (), NULL);

  self->caps = gst_caps_ref (caps);
  self->timed = timed;
  return self;
}
