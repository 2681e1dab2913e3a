// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-ratepacer
 * @title: ratepacer
 * @short_description: smooths packet bursts: sends a stream at its own rate
 *
 * An encoder outputs all packets of a frame at once, and a file all of its frames. Such bursts
 * overflow queues in the network. This element delays packets by one of three rules, chosen with
 * #WeirRatePacer:mode:
 *
 * - `timestamp`: spreads the packets of each frame evenly over the time to the next frame, by the
 *   pipeline's clock.
 * - `bitrate`: a token bucket with the rate #WeirRatePacer:bitrate and the size
 *   #WeirRatePacer:burst.
 * - `block`: the rule of a storage server. The first #WeirRatePacer:block-time of the stream leaves
 *   at once and fills the receiver's buffer. One block of the same duration follows every
 *   block-time. If a block starts late, the delay is a deficit: the next waits are shorter until
 *   the deficit is made up.
 *
 * The element takes RTP, MPEG-TS and other byte streams, as buffers and as buffer lists. In RTP,
 * packets with the same RTP timestamp form a frame; elsewhere, buffers with the same DTS or PTS
 * do. Timestamps that are missing, jump or go back are repaired and counted. Buffers before the
 * start of the segment (from the keyframe to the target of an accurate seek) leave with the first
 * frame of the segment. No packet is dropped. The queue holds at most one second of the stream, 4
 * MiB or 4096 packets; when it is full, upstream waits. A file is thus read at its own speed.
 *
 * Threads: upstream's thread puts packets into the queue. A pool of threads pushes them: one thread
 * for each processor, shared by all elements of the process. For thousands of pacers see
 * #WeirRatePacer:rounds.
 *
 * The element reports no latency of its own. A sink that waits for the clock would add it to the
 * time of each packet, and so hold the packets of a frame until all of them are due. A frame begins
 * when the latency of the pipeline has passed, so a packet never waits in the sink.
 *
 * Elements downstream must not block: a shared thread pushes. In PAUSED, where a sink blocks with
 * its first buffer, a temporary thread pushes that buffer.
 *
 * Packets that are due at the same time leave as one buffer list.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 target-bitrate=4000000 ! rtpvp8pay ! ratepacer ! fanoutsink sync=false max-coalesce=0 clients=127.0.0.1:5004
 * ]| Sends each packet by itself instead of one burst per frame.
 *
 * Since: 0.1
 */
#include "config.h"

#include "ratepacer.h"

#include "elementname.h"
#include "ratepacer_private.h"

GST_DEBUG_CATEGORY (ratepacer_debug);

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

G_DEFINE_FINAL_TYPE (WeirRatePacer, weir_rate_pacer, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (ratepacer, "ratepacer", GST_RANK_NONE, WEIR_TYPE_RATE_PACER)

// ---- events and queries ----

static gboolean
rate_pacer_flush_start (WeirRatePacer *self, GstEvent *event)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  rate_pacer_tell_room (self);
  g_mutex_unlock (&self->lock);
  ok = gst_pad_push_event (self->srcpad, event);
  g_mutex_lock (&self->lock);
  rate_pacer_wait_for_push (self);
  rate_pacer_stop_waiting (self);
  g_mutex_unlock (&self->lock);
  return ok;
}

static gboolean
rate_pacer_flush_stop (WeirRatePacer *self, GstEvent *event)
{
  gboolean reset_time, ok;

  gst_event_parse_flush_stop (event, &reset_time);
  ok = gst_pad_push_event (self->srcpad, event);
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  g_mutex_lock (&self->lock);
  rate_pacer_drop_items (self);
  self->paused_at = reset_time ? 0 : rate_pacer_running_time (self);
  self->unsettled = self->playing;
  gst_segment_init (&self->pushed, GST_FORMAT_UNDEFINED);
  self->offered = self->eos = self->flushing = FALSE;
  self->ret = GST_FLOW_OK;
  g_mutex_unlock (&self->lock);
  return ok;
}

static void
read_caps (WeirRatePacer *self, GstEvent *event)
{
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  self->is_rtp = gst_structure_has_name (gst_caps_get_structure (caps, 0), "application/x-rtp");
}

// Appends the event to the queue, behind the buffers that arrived before it. Takes ownership.
static gboolean
enqueue_event (WeirRatePacer *self, GstEvent *event)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  self->eos |= GST_EVENT_TYPE (event) == GST_EVENT_EOS;
  self->eos &= GST_EVENT_TYPE (event) != GST_EVENT_STREAM_START;
  if (self->ret == GST_FLOW_EOS && GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    self->ret = GST_FLOW_OK;
  ok = !self->flushing && self->ret == GST_FLOW_OK;
  if (ok)
    gst_queue_array_push_tail (self->items, event);
  else
    gst_event_unref (event);
  rate_pacer_look (self);
  g_mutex_unlock (&self->lock);
  return ok;
}

static gboolean
weir_rate_pacer_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      return rate_pacer_flush_start (self, event);
    case GST_EVENT_FLUSH_STOP:
      return rate_pacer_flush_stop (self, event);
    case GST_EVENT_CAPS:
      read_caps (self, event);
      break;
    case GST_EVENT_SEGMENT:
      gst_event_copy_segment (event, &self->segment);
      break;
    default:
      break;
  }
  if (GST_EVENT_IS_SERIALIZED (event))
    return enqueue_event (self, event);
  return gst_pad_event_default (pad, parent, event);
}

// Refuses serialized queries while buffers or events wait in the queue.
static gboolean
weir_rate_pacer_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);
  gboolean waits;

  g_mutex_lock (&self->lock);
  waits = self->busy || !gst_queue_array_is_empty (self->items);
  g_mutex_unlock (&self->lock);
  if (GST_QUERY_IS_SERIALIZED (query) && waits)
    return FALSE;
  return gst_pad_query_default (pad, parent, query);
}

// Sinks wait until the latency of the pipeline has passed: before, a packet would block in them.
static gboolean
weir_rate_pacer_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);
  GstClockTime latency;

  if (GST_EVENT_TYPE (event) == GST_EVENT_LATENCY) {
    gst_event_parse_latency (event, &latency);
    g_mutex_lock (&self->lock);
    self->pacer.upstream_ns = (gint64) MIN (latency, (GstClockTime) WEIR_PACE_AHEAD_MAX);
    g_mutex_unlock (&self->lock);
  }
  return gst_pad_event_default (pad, parent, event);
}

// ---- states ----

static void
rate_pacer_play (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  rate_pacer_take_clock (self);
  self->playing = TRUE;
  self->unsettled = FALSE;
  rate_pacer_apply_settings (self);
  rate_pacer_look (self);
  g_mutex_unlock (&self->lock);
}

static void
rate_pacer_pause (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  self->paused_at = rate_pacer_running_time (self);
  self->playing = self->offered = FALSE;
  rate_pacer_stop_waiting (self);
  // Sinks change state first: the shared thread that is pushing may already block in the sink, so
  // the pool starts another thread in its place.
  if (self->busy && !self->may_wait)
    weir_task_stand_in (&self->task);
  rate_pacer_look (self);
  g_mutex_unlock (&self->lock);
}

static void
rate_pacer_begin (WeirRatePacer *self)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  self->is_rtp = FALSE;
  g_mutex_lock (&self->lock);
  self->flushing = self->eos = self->offered = FALSE;
  self->ret = GST_FLOW_OK;
  self->paused_at = self->pacer.upstream_ns = 0;
  gst_segment_init (&self->pushed, GST_FORMAT_UNDEFINED);
  g_mutex_unlock (&self->lock);
}

static void
rate_pacer_interrupt (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  rate_pacer_tell_room (self);
  g_mutex_unlock (&self->lock);
}

static void
rate_pacer_end (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  rate_pacer_wait_for_push (self);
  rate_pacer_stop_waiting (self);
  rate_pacer_drop_items (self);
  gst_clear_object (&self->clock);
  g_mutex_unlock (&self->lock);
}

static gboolean
weir_rate_pacer_set_clock (GstElement *element, GstClock *clock)
{
  WeirRatePacer *self = WEIR_RATE_PACER (element);
  gboolean ok = GST_ELEMENT_CLASS (weir_rate_pacer_parent_class)->set_clock (element, clock);

  g_mutex_lock (&self->lock);
  if (self->playing) {
    rate_pacer_stop_waiting (self);
    rate_pacer_take_clock (self);
    rate_pacer_look (self);
  }
  g_mutex_unlock (&self->lock);
  return ok;
}

static GstStateChangeReturn
weir_rate_pacer_change_state (GstElement *element, GstStateChange transition)
{
  WeirRatePacer *self = WEIR_RATE_PACER (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !self->have_task) {
    GST_ELEMENT_ERROR (self, RESOURCE, FAILED, ("cannot start the pacer threads"), (NULL));
    return GST_STATE_CHANGE_FAILURE;
  }
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    rate_pacer_begin (self);
  else if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    rate_pacer_pause (self);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    rate_pacer_interrupt (self);
  ret = GST_ELEMENT_CLASS (weir_rate_pacer_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING && ret != GST_STATE_CHANGE_FAILURE)
    rate_pacer_play (self);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    rate_pacer_end (self);
  return ret;
}

static void
weir_rate_pacer_init (WeirRatePacer *self)
{
  static gint n_pacers;
  WeirWorkers *workers = weir_shared_workers ();

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, rate_pacer_chain);
  gst_pad_set_chain_list_function (self->sinkpad, rate_pacer_chain_list);
  gst_pad_set_event_function (self->sinkpad, weir_rate_pacer_sink_event);
  gst_pad_set_query_function (self->sinkpad, weir_rate_pacer_sink_query);
  GST_PAD_SET_PROXY_CAPS (self->sinkpad);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_event_function (self->srcpad, weir_rate_pacer_src_event);
  GST_PAD_SET_PROXY_CAPS (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);

  g_mutex_init (&self->lock);
  g_cond_init (&self->room);
  g_cond_init (&self->idle);
  self->index = (guint) g_atomic_int_add (&n_pacers, 1);
  self->items = gst_queue_array_new (16);
  rate_pacer_properties_init (self);
  self->flushing = TRUE;
  self->armed_due = WEIR_PACE_NEVER;
  weir_pacer_init (&self->pacer, &self->settings);
  self->have_task = workers && weir_task_init (&self->task, workers, 0, rate_pacer_run) == 0;
}

static void
weir_rate_pacer_finalize (GObject *object)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);

  if (self->have_task)
    weir_task_clear (&self->task);
  rate_pacer_drop_items (self);
  gst_queue_array_free (self->items);
  weir_pacer_free (&self->pacer);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->room);
  g_cond_clear (&self->idle);
  G_OBJECT_CLASS (weir_rate_pacer_parent_class)->finalize (object);
}

static void
weir_rate_pacer_class_init (WeirRatePacerClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (ratepacer_debug, "ratepacer", 0, "Pacer");

  gobject_class->finalize = weir_rate_pacer_finalize;
  element_class->set_clock = weir_rate_pacer_set_clock;
  element_class->change_state = weir_rate_pacer_change_state;

  rate_pacer_properties_install (gobject_class);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Pacer", "Filter/Network",
      "Smooths packet bursts: sends a stream at its own rate", "Weir");
}
