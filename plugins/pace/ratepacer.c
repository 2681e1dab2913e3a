// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-ratepacer
 * @title: ratepacer
 * @short_description: lets a stream over at its rate
 *
 * An encoder gives away all packets of a frame at once, and a file all of its frames. Such bursts
 * overflow queues on the way. This element holds packets back until it is their time, by one of
 * three rules, #WeirRatePacer:mode:
 *
 * - `timestamp`: the packets of each frame leave evenly over the time to the next frame, against
 *   the pipeline's clock. This costs the time of a frame, which is reported as latency.
 * - `bitrate`: a token bucket, of #WeirRatePacer:bitrate and #WeirRatePacer:burst.
 * - `block`: the rule of a storage server. What lasts #WeirRatePacer:block-time leaves at once, as
 *   the receiver's initial buffer, then as much once each block-time. What a block overran is a
 *   deficit, which shortens the next waits until it is made up.
 *
 * It takes RTP, MPEG-TS and other byte streams, as buffers and as buffer lists. In RTP a frame is
 * what has one RTP timestamp, else what has one PTS or DTS. Timestamps that are missing, jump or go
 * back are repaired, and counted. What lies before the segment, as from a keyframe up to where an
 * accurate seek went, leaves with the segment's first frame. Nothing is dropped. A second of the
 * stream is held at most (4 MiB and 4096 packets); then upstream waits, which is how a file is read
 * at its own speed.
 *
 * Threads: upstream's thread puts packets into a queue. They are pushed by the threads that all
 * elements of the process share, one for each processor, however many pacers there are. For
 * thousands of pacers see #WeirRatePacer:rounds.
 *
 * What follows must not wait: a sink needs sync=false, or else a `queue` in between; one that waits
 * for the clock again would make a burst of each frame, in a thread that others need. In PAUSED,
 * where a sink waits with its first buffer, that one is pushed from a thread made for it.
 *
 * Packets that fall due at once leave as one buffer list.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 target-bitrate=4000000 ! rtpvp8pay !
 * ratepacer ! fanoutsink sync=false max-coalesce=0 clients=127.0.0.1:5004
 * ]| Each packet by itself, where there would be bursts of a frame.
 */
#include "config.h"

#include "ratepacer.h"

#include <gst/base/gstqueuearray.h>

#include "core/pace/pacer.h"
#include "core/rtp/rtp.h"
#include "elementname.h"
#include "enumtype.h"
#include "sharedworkers.h"

GST_DEBUG_CATEGORY_STATIC (ratepacer_debug);
#define GST_CAT_DEFAULT ratepacer_debug

enum {
  PROP_0,
  PROP_MODE,
  PROP_MAX_BURST,
  PROP_BITRATE,
  PROP_BURST,
  PROP_BLOCK_TIME,
  PROP_ROUNDS,
  PROP_MICROROUNDS,
  PROP_BLOCKSIZE,
  PROP_STATS,
};

#define DEFAULT_MODE WEIR_PACE_TIMESTAMP
#define DEFAULT_MAX_BURST 1
#define DEFAULT_BITRATE 0
#define DEFAULT_BURST 0
#define DEFAULT_BLOCK_TIME (5 * GST_SECOND)
#define DEFAULT_ROUNDS 0
#define DEFAULT_MICROROUNDS 1
#define DEFAULT_BLOCKSIZE 0

#define AT_ONCE 64 // packets in a list
#define MAX_DURATION ((gint64) (3600 * GST_SECOND))
#define LATENCY_STEP ((gint64) (5 * GST_MSECOND)) // so that it is not told with each frame

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

struct _WeirRatePacer {
  GstElement parent;

  GstPad *sinkpad;
  GstPad *srcpad;
  guint index; // among the pacers of the process

  // It pushes, nobody else does: in a shared thread, or in one made for it where a push may wait.
  WeirTask task;
  gboolean have_task;

  // The streaming thread's.
  GstSegment segment;
  gboolean is_rtp;

  // Order: lock, object lock. Not held across a push or a message.
  GMutex lock;
  GCond changed; // there is room, or nothing is pushed any more

  // Under the lock, all below.
  WeirPacer pacer;      // what it knows of the buffers in `items`
  GstQueueArray *items; // buffers and events in their order
  WeirPaceSettings settings;
  guint microrounds;
  gsize blocksize;

  gboolean flushing;
  gboolean eos; // it came in
  GstFlowReturn ret;

  gboolean playing;
  gboolean unsettled; // flushed while it plays: until a buffer is through, the clock isn't right
  gboolean offered;   // a buffer that a sink takes was pushed since it doesn't play
  GstSegment pushed;  // the segment of what is pushed
  gint64 paused_at;   // running time
  GThread *may_wait;  // the thread made for a push that waits
  gboolean asked;     // for that thread
  gboolean busy;      // pushes
  gint64 armed_due;   // when the task runs, if it doesn't; running time
  GstClock *clock;    // while it plays
  gboolean clock_is_ours; // it is the one that the shared threads wait by
  gint rang;              // atomic: it did, by wait_id
  GstClockID wait_id;     // for another clock
  gint64 latency;         // see own_latency(); 0: it may fall
};

G_DEFINE_FINAL_TYPE (WeirRatePacer, weir_rate_pacer, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (ratepacer, "ratepacer", GST_RANK_NONE, WEIR_TYPE_RATE_PACER)

/* Time. With the lock. */

static gint64
running_time (WeirRatePacer *self)
{
  if (!self->playing || self->unsettled)
    return self->paused_at;
  return (gint64) gst_clock_get_time (self->clock)
         - (gint64) gst_element_get_base_time (GST_ELEMENT (self));
}

static gboolean
on_clock (GstClock *clock, GstClockTime time, GstClockID id, gpointer user_data)
{
  WeirRatePacer *self = user_data;

  g_atomic_int_set (&self->rang, TRUE);
  weir_task_wake (&self->task);
  return TRUE;
}

static void
stop_waiting (WeirRatePacer *self)
{
  self->armed_due = WEIR_PACE_NEVER;
  g_atomic_int_set (&self->rang, FALSE);
  if (!self->wait_id)
    return;
  gst_clock_id_unschedule (self->wait_id);
  g_clear_pointer (&self->wait_id, gst_clock_id_unref);
}

// Returns when the shared threads are to run the task.
static gint64
wait_until (WeirRatePacer *self, gint64 due, gint64 now)
{
  if (self->wait_id && self->armed_due == due && !g_atomic_int_get (&self->rang))
    return WEIR_NEVER;
  stop_waiting (self);
  self->armed_due = due;
  if (due == WEIR_PACE_NEVER)
    return WEIR_NEVER;
  if (self->clock_is_ours)
    return weir_now_ns () + (due - now);
  self->wait_id = gst_clock_new_single_shot_id (
      self->clock, gst_element_get_base_time (GST_ELEMENT (self)) + (GstClockTime) due);
  gst_clock_id_wait_async (
      self->wait_id, on_clock, gst_object_ref (self), (GDestroyNotify) gst_object_unref);
  return WEIR_NEVER;
}

static void
take_clock (WeirRatePacer *self)
{
  GstClock *clock = gst_element_get_clock (GST_ELEMENT (self));
  gint type = GST_CLOCK_TYPE_OTHER;

  gst_clear_object (&self->clock);
  self->clock = clock ? clock : gst_system_clock_obtain ();
  if (G_OBJECT_TYPE (self->clock) == GST_TYPE_SYSTEM_CLOCK)
    g_object_get (self->clock, "clock-type", &type, NULL);
  self->clock_is_ours = type == GST_CLOCK_TYPE_MONOTONIC;
}

// The rounds of all pacers begin at the same times, those of a micro-round together.
static void
apply_settings (WeirRatePacer *self)
{
  const gint64 round = self->settings.round_ns;

  if (round > 0) {
    gint64 part = round / self->microrounds;

    self->settings.phase_ns =
        self->index % self->microrounds * part
        - (gint64) (gst_element_get_base_time (GST_ELEMENT (self)) % (GstClockTime) round);
  }
  weir_pacer_set (&self->pacer, &self->settings);
}

/* The task. With the lock, where nothing else is said. */

// Where a sink may wait for its state to change, no shared thread may push.
static gboolean
push_may_wait (const WeirRatePacer *self)
{
  return !self->playing || self->unsettled;
}

static void
push_in_own_thread (GstElement *element, gpointer user_data)
{
  WeirRatePacer *self = WEIR_RATE_PACER (element);

  g_mutex_lock (&self->lock);
  self->asked = FALSE;
  self->may_wait = g_thread_self ();
  g_mutex_unlock (&self->lock);
  weir_task_run_here (&self->task, NULL);
}

static void
ask_for_own_thread (WeirRatePacer *self)
{
  if (self->asked)
    return;
  self->asked = TRUE;
  gst_element_call_async (GST_ELEMENT (self), push_in_own_thread, NULL, NULL);
}

static GstMiniObject *
take_buffers (WeirRatePacer *self, gint64 now)
{
  GstMiniObject *first = gst_queue_array_pop_head (self->items), *next;
  GstBufferList *list = NULL;

  weir_pacer_pop (&self->pacer, now);
  while (!push_may_wait (self) && (next = gst_queue_array_peek_head (self->items))
         && GST_IS_BUFFER (next) && weir_pacer_due (&self->pacer, now) <= now) {
    if (!list) {
      list = gst_buffer_list_new_sized (AT_ONCE);
      gst_buffer_list_add (list, GST_BUFFER (first));
    }
    if (gst_buffer_list_length (list) == AT_ONCE)
      break;
    gst_buffer_list_add (list, GST_BUFFER (gst_queue_array_pop_head (self->items)));
    weir_pacer_pop (&self->pacer, now);
  }
  return list ? GST_MINI_OBJECT (list) : first;
}

// A sink drops what lies outside the segment, and goes on waiting.
static gboolean
is_played (const WeirRatePacer *self, GstBuffer *buffer)
{
  GstClockTime start = GST_BUFFER_PTS (buffer), duration = GST_BUFFER_DURATION (buffer),
               stop = start;

  if (self->pushed.format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID (start))
    return TRUE;
  if (GST_CLOCK_TIME_IS_VALID (duration))
    stop += duration;
  return gst_segment_clip (&self->pushed, GST_FORMAT_TIME, start, stop, NULL, NULL);
}

// What is to be pushed now; NULL if there is nothing.
static GstMiniObject *
take_next (WeirRatePacer *self, gint64 now)
{
  GstMiniObject *head = gst_queue_array_peek_head (self->items);

  if (!head || self->flushing || self->ret != GST_FLOW_OK)
    return NULL;
  if (GST_IS_EVENT (head)) {
    if (GST_EVENT_TYPE (head) == GST_EVENT_SEGMENT)
      gst_event_copy_segment (GST_EVENT (head), &self->pushed);
    return gst_queue_array_pop_head (self->items);
  }
  if (push_may_wait (self) ? self->offered : weir_pacer_due (&self->pacer, now) > now)
    return NULL;
  self->offered = !push_may_wait (self) || is_played (self, GST_BUFFER (head));
  return take_buffers (self, now);
}

// Without the lock.
static GstFlowReturn
push (WeirRatePacer *self, GstMiniObject *item)
{
  if (GST_IS_BUFFER (item))
    return gst_pad_push (self->srcpad, GST_BUFFER (item));
  if (GST_IS_BUFFER_LIST (item))
    return gst_pad_push_list (self->srcpad, GST_BUFFER_LIST (item));
  gst_pad_push_event (self->srcpad, GST_EVENT (item));
  return GST_FLOW_OK;
}

static void
drop_items (WeirRatePacer *self)
{
  GstMiniObject *item;

  while ((item = gst_queue_array_pop_head (self->items)))
    gst_mini_object_unref (item);
  weir_pacer_flush (&self->pacer);
}

// Where upstream has ended, nobody would see it.
static gboolean
must_tell (const WeirRatePacer *self)
{
  return self->eos && (self->ret == GST_FLOW_NOT_LINKED || self->ret <= GST_FLOW_EOS)
         && self->ret != GST_FLOW_EOS;
}

static void
note_result (WeirRatePacer *self, GstFlowReturn ret, gboolean was_buffer)
{
  self->busy = FALSE;
  if (!self->flushing && ret == GST_FLOW_OK) {
    self->unsettled &= !(was_buffer && self->offered);
  } else if (!self->flushing && self->ret == GST_FLOW_OK) {
    GST_DEBUG_OBJECT (self, "downstream says %s", gst_flow_get_name (ret));
    self->ret = ret;
    drop_items (self);
    if (must_tell (self)) {
      g_mutex_unlock (&self->lock);
      GST_ELEMENT_FLOW_ERROR (self, ret);
      g_mutex_lock (&self->lock);
    }
  }
  g_cond_broadcast (&self->changed);
}

// Pushes what it may, in this thread.
static void
push_all (WeirRatePacer *self)
{
  GstMiniObject *item;

  while (!(push_may_wait (self) && self->may_wait != g_thread_self ())
         && (item = take_next (self, running_time (self)))) {
    gboolean is_event = GST_IS_EVENT (item);
    GstFlowReturn ret;

    self->busy = TRUE;
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    ret = push (self, item);
    g_mutex_lock (&self->lock);
    note_result (self, ret, !is_event);
  }
}

// Something to push that may wait.
static gboolean
has_to_offer (WeirRatePacer *self)
{
  GstMiniObject *head = gst_queue_array_peek_head (self->items);

  return head && !self->flushing && push_may_wait (self) && (!self->offered || GST_IS_EVENT (head));
}

// When the task has to run again.
static gint64
wait_for_next (WeirRatePacer *self)
{
  gint64 now = running_time (self), due;

  if (push_may_wait (self) || self->flushing) {
    if (has_to_offer (self))
      ask_for_own_thread (self);
    stop_waiting (self);
    return WEIR_NEVER;
  }
  due = weir_pacer_due (&self->pacer, now);
  if (GST_IS_EVENT (gst_queue_array_peek_head (self->items)))
    due = now;
  return wait_until (self, due, now);
}

static gint64
run (WeirTask *task, void *scratch, gint64 now_ns)
{
  WeirRatePacer *self = (WeirRatePacer *) ((guint8 *) task - G_STRUCT_OFFSET (WeirRatePacer, task));
  gint64 again;

  g_mutex_lock (&self->lock);
  push_all (self);
  again = wait_for_next (self);
  if (self->may_wait == g_thread_self ())
    self->may_wait = NULL;
  g_mutex_unlock (&self->lock);
  return again;
}

// Something was put into the queue, or the state changed. The task, if it pushes, looks by itself.
static void
look (WeirRatePacer *self)
{
  gint64 now, due;

  if (self->busy || self->flushing)
    return;
  if (push_may_wait (self)) {
    if (has_to_offer (self))
      ask_for_own_thread (self);
    return;
  }
  if (GST_IS_EVENT (gst_queue_array_peek_head (self->items))) {
    weir_task_wake (&self->task);
    return;
  }
  now = running_time (self);
  due = weir_pacer_due (&self->pacer, now);
  if (due >= self->armed_due)
    return;
  if (self->clock_is_ours && due > now) {
    self->armed_due = due;
    weir_task_wake_at (&self->task, weir_now_ns () + (due - now));
  } else {
    weir_task_wake (&self->task);
  }
}

/* Data: the streaming thread */

// What is not played, and only needed to decode what is, waits for nothing: it has the time at
// which the segment begins.
static GstClockTime
time_in_segment (const GstSegment *segment, GstClockTime time)
{
  if (segment->rate > 0)
    return MAX (time, segment->start + segment->offset);
  return GST_CLOCK_TIME_IS_VALID (segment->stop) ? MIN (time, segment->stop - segment->offset)
                                                 : time;
}

static gint64
time_of (const WeirRatePacer *self, GstBuffer *buffer)
{
  GstClockTime stamp = GST_BUFFER_DTS_OR_PTS (buffer);
  guint64 time = 0;
  gint sign = 0;

  if (self->segment.format == GST_FORMAT_TIME && GST_CLOCK_TIME_IS_VALID (stamp))
    sign = gst_segment_to_running_time_full (
        &self->segment, GST_FORMAT_TIME, time_in_segment (&self->segment, stamp), &time);
  if (sign == 0 || time > G_MAXINT64)
    return WEIR_PACE_NO_TIME;
  return sign > 0 ? (gint64) time : -(gint64) time;
}

// At the rate at which it is played.
static gint64
duration_of (const WeirRatePacer *self, GstClockTime duration)
{
  const gdouble rate = ABS (self->segment.rate);

  return rate > 0 && rate != 1 ? (gint64) MIN ((gdouble) duration / rate, (gdouble) MAX_DURATION)
                               : (gint64) duration;
}

static gboolean
read_rtp_time (GstBuffer *buffer, guint32 *rtp_time)
{
  gsize size = gst_buffer_get_size (buffer);
  guint8 head[WEIR_RTP_HEADER_MAX], last = 0;
  gsize len = gst_buffer_extract (buffer, 0, head, sizeof head);
  WeirRtp rtp;

  if (size > 0)
    gst_buffer_extract (buffer, size - 1, &last, 1);
  if (weir_rtp_parse_head (head, len, size, last, &rtp) < 0)
    return FALSE;
  *rtp_time = rtp.timestamp;
  return TRUE;
}

static WeirPacePacket
describe (const WeirRatePacer *self, GstBuffer *buffer)
{
  WeirPacePacket packet = { .size = gst_buffer_get_size (buffer),
    .time_ns = time_of (self, buffer) };

  if (GST_BUFFER_DURATION (buffer) <= G_MAXINT64)
    packet.duration_ns = duration_of (self, GST_BUFFER_DURATION (buffer));
  packet.is_rtp = self->is_rtp && read_rtp_time (buffer, &packet.rtp_time);
  return packet;
}

// With the lock. Waits for room. Takes the buffer.
static GstFlowReturn
enqueue (WeirRatePacer *self, GstBuffer *buffer, const WeirPacePacket *packet)
{
  while (weir_pacer_full (&self->pacer) && !self->flushing && self->ret == GST_FLOW_OK) {
    look (self);
    g_cond_wait (&self->changed, &self->lock);
  }
  if (self->flushing || self->ret != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return self->flushing ? GST_FLOW_FLUSHING : self->ret;
  }
  if (weir_pacer_push (&self->pacer, packet, running_time (self)) < 0) {
    gsize queued = weir_pacer_queued (&self->pacer);

    gst_buffer_unref (buffer);
    g_mutex_unlock (&self->lock);
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT, (NULL),
        ("no memory to hold more than %" G_GSIZE_FORMAT " packets", queued));
    g_mutex_lock (&self->lock);
    return GST_FLOW_ERROR;
  }
  gst_queue_array_push_tail (self->items, buffer);
  return GST_FLOW_OK;
}

// With the lock. Cuts what is larger than blocksize.
static GstFlowReturn
take_buffer (WeirRatePacer *self, GstBuffer *buffer)
{
  WeirPacePacket packet = describe (self, buffer);
  const gsize size = packet.size, most = self->is_rtp ? 0 : self->blocksize;
  GstFlowReturn ret = GST_FLOW_OK;

  if (most == 0 || size <= most)
    return enqueue (self, buffer, &packet);
  for (gsize at = 0; at < size && ret == GST_FLOW_OK; at += most) {
    packet.size = MIN (most, size - at);
    ret = enqueue (
        self, gst_buffer_copy_region (buffer, GST_BUFFER_COPY_ALL, at, packet.size), &packet);
  }
  gst_buffer_unref (buffer);
  return ret;
}

// The highest since the last flush, caps or segment: sinks that were told it wait so long. With the
// lock.
static gint64
own_latency (const WeirRatePacer *self)
{
  gint64 latency = weir_pacer_latency (&self->pacer);

  return latency > self->latency ? (latency / LATENCY_STEP + 1) * LATENCY_STEP : self->latency;
}

// With the lock. TRUE if the pipeline has to ask again.
static gboolean
latency_grew (WeirRatePacer *self)
{
  gint64 latency = own_latency (self);
  gboolean grew = latency > self->latency;

  self->latency = latency;
  return grew;
}

// What remains to be done when something was taken, and the lock given back.
static GstFlowReturn
finish (WeirRatePacer *self, GstFlowReturn ret)
{
  gboolean grew = latency_grew (self);

  look (self);
  g_mutex_unlock (&self->lock);
  if (grew)
    gst_element_post_message (GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
  return ret;
}

static GstFlowReturn
weir_rate_pacer_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);

  g_mutex_lock (&self->lock);
  return finish (self, take_buffer (self, buffer));
}

static GstFlowReturn
weir_rate_pacer_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);
  guint n = gst_buffer_list_length (list);
  GstFlowReturn ret = GST_FLOW_OK;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n && ret == GST_FLOW_OK; i++)
    ret = take_buffer (self, gst_buffer_ref (gst_buffer_list_get (list, i)));
  ret = finish (self, ret);
  gst_buffer_list_unref (list);
  return ret;
}

/* Events and queries */

// Nothing is pushed any more when this returns, if downstream lets go. With the lock.
static void
wait_for_push (WeirRatePacer *self)
{
  while (self->busy)
    g_cond_wait (&self->changed, &self->lock);
}

static gboolean
flush_start (WeirRatePacer *self, GstEvent *event)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  ok = gst_pad_push_event (self->srcpad, event);
  g_mutex_lock (&self->lock);
  wait_for_push (self);
  stop_waiting (self);
  g_mutex_unlock (&self->lock);
  return ok;
}

static gboolean
flush_stop (WeirRatePacer *self, GstEvent *event)
{
  gboolean reset_time, ok;

  gst_event_parse_flush_stop (event, &reset_time);
  ok = gst_pad_push_event (self->srcpad, event);
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  g_mutex_lock (&self->lock);
  drop_items (self);
  self->paused_at = reset_time ? 0 : running_time (self);
  self->unsettled = self->playing;
  self->latency = 0;
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

// Behind the buffers that came before it.
static gboolean
enqueue_event (WeirRatePacer *self, GstEvent *event)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  self->eos |= GST_EVENT_TYPE (event) == GST_EVENT_EOS;
  self->eos &= GST_EVENT_TYPE (event) != GST_EVENT_STREAM_START;
  if (self->ret == GST_FLOW_EOS && GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    self->ret = GST_FLOW_OK;
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT || GST_EVENT_TYPE (event) == GST_EVENT_CAPS)
    self->latency = 0;
  ok = !self->flushing && self->ret == GST_FLOW_OK;
  if (ok)
    gst_queue_array_push_tail (self->items, event);
  else
    gst_event_unref (event);
  look (self);
  g_mutex_unlock (&self->lock);
  return ok;
}

static gboolean
weir_rate_pacer_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      return flush_start (self, event);
    case GST_EVENT_FLUSH_STOP:
      return flush_stop (self, event);
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

// A query in the stream's order can't be answered while something waits before it.
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

static void
add_latency (WeirRatePacer *self, GstQuery *query)
{
  GstClockTime min, max, own;
  gboolean live;

  gst_query_parse_latency (query, &live, &min, &max);
  g_mutex_lock (&self->lock);
  own = (GstClockTime) own_latency (self);
  self->pacer.upstream_ns = live ? (gint64) MIN (min, (GstClockTime) WEIR_PACE_AHEAD_MAX) : 0;
  g_mutex_unlock (&self->lock);
  if (!live)
    min = 0;
  gst_query_set_latency (
      query, TRUE, min + own, GST_CLOCK_TIME_IS_VALID (max) ? max + own : GST_CLOCK_TIME_NONE);
}

static gboolean
weir_rate_pacer_src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);

  if (GST_QUERY_TYPE (query) != GST_QUERY_LATENCY)
    return gst_pad_query_default (pad, parent, query);
  if (!gst_pad_peer_query (self->sinkpad, query))
    return FALSE;
  add_latency (self, query);
  return TRUE;
}

/* States */

static void
play (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  take_clock (self);
  self->playing = TRUE;
  self->unsettled = FALSE;
  apply_settings (self);
  look (self);
  g_mutex_unlock (&self->lock);
}

static void
pause_playing (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  self->paused_at = running_time (self);
  self->playing = self->offered = FALSE;
  stop_waiting (self);
  // The sink went before, so what a shared thread pushes may wait there by now.
  if (self->busy && !self->may_wait)
    weir_task_stand_in (&self->task);
  look (self);
  g_mutex_unlock (&self->lock);
}

static void
begin (WeirRatePacer *self)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  self->is_rtp = FALSE;
  g_mutex_lock (&self->lock);
  self->flushing = self->eos = self->offered = FALSE;
  self->ret = GST_FLOW_OK;
  self->paused_at = self->latency = 0;
  gst_segment_init (&self->pushed, GST_FORMAT_UNDEFINED);
  g_mutex_unlock (&self->lock);
}

static void
interrupt (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
end (WeirRatePacer *self)
{
  g_mutex_lock (&self->lock);
  wait_for_push (self);
  stop_waiting (self);
  drop_items (self);
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
    stop_waiting (self);
    take_clock (self);
    look (self);
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
    GST_ELEMENT_ERROR (self, RESOURCE, FAILED, (NULL), ("no thread can be made"));
    return GST_STATE_CHANGE_FAILURE;
  }
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    begin (self);
  else if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    pause_playing (self);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    interrupt (self);
  ret = GST_ELEMENT_CLASS (weir_rate_pacer_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING && ret != GST_STATE_CHANGE_FAILURE)
    play (self);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    end (self);
  return ret;
}

/* Properties */

#define WEIR_TYPE_PACE_MODE (weir_pace_mode_get_type ())
static GType
weir_pace_mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { WEIR_PACE_TIMESTAMP, "Each frame's packets evenly over its time", "timestamp" },
    { WEIR_PACE_BITRATE, "At a bitrate, by a token bucket", "bitrate" },
    { WEIR_PACE_BLOCK, "A block at once, then a block each block-time", "block" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirPaceMode", values);
}

// With the lock.
static GstStructure *
make_stats (const WeirRatePacer *self)
{
  const WeirPacer *p = &self->pacer;
  const WeirPaceCounts *c = &p->counts;

  return gst_structure_new ("application/x-weir-ratepacer-stats", "in", G_TYPE_UINT64, c->in, "out",
      G_TYPE_UINT64, c->out, "flushed", G_TYPE_UINT64, c->flushed, "queued", G_TYPE_UINT64,
      (guint64) weir_pacer_queued (p), "bytes-out", G_TYPE_UINT64, c->bytes_out, "queued-bytes",
      G_TYPE_UINT64, p->bytes, "repaired", G_TYPE_UINT64, c->repaired, "late", G_TYPE_UINT64,
      c->late, "latest", G_TYPE_UINT64, (guint64) c->latest_ns, "bitrate", G_TYPE_UINT64,
      (guint64) p->measured, "latency", G_TYPE_UINT64, (guint64) own_latency (self), "deficit",
      G_TYPE_UINT64, (guint64) p->deficit_ns, "overruns", G_TYPE_UINT64, c->overruns, "starvations",
      G_TYPE_UINT64, c->starvations, NULL);
}

static void
weir_rate_pacer_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);
  WeirPaceSettings *settings = &self->settings;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_MODE:
      settings->mode = (WeirPaceMode) g_value_get_enum (value);
      break;
    case PROP_MAX_BURST:
      settings->max_burst = g_value_get_uint (value);
      break;
    case PROP_BITRATE:
      settings->bitrate = g_value_get_uint64 (value);
      break;
    case PROP_BURST:
      settings->burst = g_value_get_uint (value);
      break;
    case PROP_BLOCK_TIME:
      settings->block_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_ROUNDS:
      settings->round_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_MICROROUNDS:
      self->microrounds = g_value_get_uint (value);
      break;
    case PROP_BLOCKSIZE:
      self->blocksize = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  apply_settings (self);
  look (self);
  g_mutex_unlock (&self->lock);
}

static void
weir_rate_pacer_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);
  const WeirPaceSettings *settings = &self->settings;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_MODE:
      g_value_set_enum (value, (gint) settings->mode);
      break;
    case PROP_MAX_BURST:
      g_value_set_uint (value, settings->max_burst);
      break;
    case PROP_BITRATE:
      g_value_set_uint64 (value, settings->bitrate);
      break;
    case PROP_BURST:
      g_value_set_uint (value, settings->burst);
      break;
    case PROP_BLOCK_TIME:
      g_value_set_uint64 (value, (guint64) settings->block_ns);
      break;
    case PROP_ROUNDS:
      g_value_set_uint64 (value, (guint64) settings->round_ns);
      break;
    case PROP_MICROROUNDS:
      g_value_set_uint (value, self->microrounds);
      break;
    case PROP_BLOCKSIZE:
      g_value_set_uint (value, (guint) self->blocksize);
      break;
    case PROP_STATS:
      g_value_take_boxed (value, make_stats (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  g_mutex_unlock (&self->lock);
}

static void
weir_rate_pacer_init (WeirRatePacer *self)
{
  static gint n_pacers;
  WeirWorkers *workers = weir_shared_workers ();

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, weir_rate_pacer_chain);
  gst_pad_set_chain_list_function (self->sinkpad, weir_rate_pacer_chain_list);
  gst_pad_set_event_function (self->sinkpad, weir_rate_pacer_sink_event);
  gst_pad_set_query_function (self->sinkpad, weir_rate_pacer_sink_query);
  GST_PAD_SET_PROXY_CAPS (self->sinkpad);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);
  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_query_function (self->srcpad, weir_rate_pacer_src_query);
  GST_PAD_SET_PROXY_CAPS (self->srcpad);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);

  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->index = (guint) g_atomic_int_add (&n_pacers, 1);
  self->items = gst_queue_array_new (16);
  self->settings = (WeirPaceSettings) {
    .mode = DEFAULT_MODE,
    .max_burst = DEFAULT_MAX_BURST,
    .bitrate = DEFAULT_BITRATE,
    .burst = DEFAULT_BURST,
    .block_ns = (gint64) DEFAULT_BLOCK_TIME,
    .round_ns = DEFAULT_ROUNDS,
  };
  self->microrounds = DEFAULT_MICROROUNDS;
  self->blocksize = DEFAULT_BLOCKSIZE;
  self->flushing = TRUE;
  self->armed_due = WEIR_PACE_NEVER;
  weir_pacer_init (&self->pacer, &self->settings);
  self->have_task = workers && weir_task_init (&self->task, workers, 0, run) == 0;
}

static void
weir_rate_pacer_finalize (GObject *object)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);

  if (self->have_task)
    weir_task_clear (&self->task);
  drop_items (self);
  gst_queue_array_free (self->items);
  weir_pacer_free (&self->pacer);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (weir_rate_pacer_parent_class)->finalize (object);
}

static void
weir_rate_pacer_class_init (WeirRatePacerClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  GST_DEBUG_CATEGORY_INIT (ratepacer_debug, "ratepacer", 0, "Pacer");

  gobject_class->set_property = weir_rate_pacer_set_property;
  gobject_class->get_property = weir_rate_pacer_get_property;
  gobject_class->finalize = weir_rate_pacer_finalize;
  element_class->set_clock = weir_rate_pacer_set_clock;
  element_class->change_state = weir_rate_pacer_change_state;

  g_object_class_install_property (gobject_class, PROP_MODE,
      g_param_spec_enum (
          "mode", "Mode", "By which rule packets leave", WEIR_TYPE_PACE_MODE, DEFAULT_MODE, rw));
  g_object_class_install_property (gobject_class, PROP_MAX_BURST,
      g_param_spec_uint ("max-burst", "Longest burst",
          "Packets of a frame that leave at once, with mode=timestamp", 1, 1024, DEFAULT_MAX_BURST,
          rw));
  /**
   * WeirRatePacer:bitrate:
   *
   * Bits per second, with #WeirRatePacer:mode bitrate and block. 0 is the stream's own: with
   * bitrate it is measured by the packets' times, and what leaves is up to twice as fast while it
   * lags behind; until 200 ms of the stream have come, packets leave at once. With block, what
   * lasts block-time by its times is a block.
   */
  g_object_class_install_property (gobject_class, PROP_BITRATE,
      g_param_spec_uint64 ("bitrate", "Bitrate",
          "Bits per second, with mode=bitrate and mode=block; 0 = the stream's own", 0, G_MAXUINT64,
          DEFAULT_BITRATE, rw));
  g_object_class_install_property (gobject_class, PROP_BURST,
      g_param_spec_uint ("burst", "Bucket",
          "Bytes that may leave at once after silence, with mode=bitrate; 0 = a packet", 0,
          G_MAXUINT, DEFAULT_BURST, rw));
  g_object_class_install_property (gobject_class, PROP_BLOCK_TIME,
      g_param_spec_uint64 ("block-time", "Block time",
          "How long a block lasts, in ns, with mode=block", GST_MSECOND, GST_SECOND * 3600,
          DEFAULT_BLOCK_TIME, rw));
  /**
   * WeirRatePacer:rounds:
   *
   * Where there are thousands of pacers, each wakes once a round and pushes what fell due since the
   * last: fewer wakes, and bursts that are as much longer. A packet is never early, and at most a
   * round late; the latency is a round more.
   */
  g_object_class_install_property (gobject_class, PROP_ROUNDS,
      g_param_spec_uint64 ("rounds", "Rounds",
          "How long a round is, in ns; 0 = none, each packet leaves at its own time", 0, GST_SECOND,
          DEFAULT_ROUNDS, rw));
  g_object_class_install_property (gobject_class, PROP_MICROROUNDS,
      g_param_spec_uint ("microrounds", "Micro-rounds",
          "Parts of a round, over which the pacers of the process are spread", 1, 1024,
          DEFAULT_MICROROUNDS, rw));
  g_object_class_install_property (gobject_class, PROP_BLOCKSIZE,
      g_param_spec_uint ("blocksize", "Block size",
          "Bytes to which larger buffers are cut, but for RTP; 0 = not at all", 0, G_MAXUINT,
          DEFAULT_BLOCKSIZE, rw));
  /**
   * WeirRatePacer:stats:
   *
   * All #guint64. Of packets, as cut: `in`, `out`, `flushed`, `queued`, whose sum the last three
   * are; `repaired` (the timestamp was missing, jumped or went back), `late` (left more than 5 ms
   * after it was due). `latest`: the most by which one was late, in ns. `bytes-out`,
   * `queued-bytes`. `bitrate`: of what comes in, as measured, in bits per second. `latency`, in
   * ns: what the element adds to a latency query. It rises with the stream's lateness, and falls
   * only with a flush, a segment or caps.
   * With #WeirRatePacer:mode block: `deficit` in ns, `overruns` (blocks that took longer than
   * block-time), `starvations` (the receiver had nothing left to play).
   */
  g_object_class_install_property (gobject_class, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics", "What came in and went out, and how late",
          GST_TYPE_STRUCTURE, ro));

  gst_type_mark_as_plugin_api (WEIR_TYPE_PACE_MODE, 0);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "Pacer", "Filter/Network", "Lets a stream over at its rate", "Weir");
}
