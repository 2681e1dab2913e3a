// SPDX-License-Identifier: LGPL-2.1-or-later
// The output side of ratepacer: pushes buffers and events downstream when they are due, from a
// shared thread or, where the push may block, from a temporary one.
#include "ratepacer_private.h"

#define AT_ONCE 64 // most packets in one buffer list

// ---- time. Call with the lock ----

gint64
rate_pacer_running_time (WeirRatePacer *self)
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

void
rate_pacer_stop_waiting (WeirRatePacer *self)
{
  self->armed_due = WEIR_PACE_NEVER;
  g_atomic_int_set (&self->rang, FALSE);
  if (!self->wait_id)
    return;
  gst_clock_id_unschedule (self->wait_id);
  g_clear_pointer (&self->wait_id, gst_clock_id_unref);
}

// Arranges that the task runs at the running time `due` (ns). Returns the time at which the shared
// threads run it, or WEIR_NEVER if the pipeline's clock wakes it.
static gint64
wait_until (WeirRatePacer *self, gint64 due, gint64 now)
{
  if (self->wait_id && self->armed_due == due && !g_atomic_int_get (&self->rang))
    return WEIR_NEVER;
  rate_pacer_stop_waiting (self);
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

void
rate_pacer_take_clock (WeirRatePacer *self)
{
  GstClock *clock = gst_element_get_clock (GST_ELEMENT (self));
  gint type = GST_CLOCK_TYPE_OTHER;

  gst_clear_object (&self->clock);
  self->clock = clock ? clock : gst_system_clock_obtain ();
  if (G_OBJECT_TYPE (self->clock) == GST_TYPE_SYSTEM_CLOCK)
    g_object_get (self->clock, "clock-type", &type, NULL);
  self->clock_is_ours = type == GST_CLOCK_TYPE_MONOTONIC;
}

void
rate_pacer_apply_settings (WeirRatePacer *self)
{
  self->settings.phase_ns = weir_pace_phase (self->settings.round_ns, self->microrounds,
      self->index, gst_element_get_base_time (GST_ELEMENT (self)));
  weir_pacer_set (&self->pacer, &self->settings);
}

// ---- the task. Call with the lock, unless a comment says otherwise ----

// Returns TRUE if a push may block in a sink that waits for a state change. No shared thread may
// push then.
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

// Returns FALSE if the buffer lies outside the segment: a sink in PAUSED drops it and keeps waiting
// for its first buffer.
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

// Returns the next buffer, buffer list or event to push, or NULL if none is due. (transfer full)
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

// Call without the lock.
static GstFlowReturn
push_item (WeirRatePacer *self, GstMiniObject *item)
{
  if (GST_IS_BUFFER (item))
    return gst_pad_push (self->srcpad, GST_BUFFER (item));
  if (GST_IS_BUFFER_LIST (item))
    return gst_pad_push_list (self->srcpad, GST_BUFFER_LIST (item));
  gst_pad_push_event (self->srcpad, GST_EVENT (item));
  return GST_FLOW_OK;
}

void
rate_pacer_drop_items (WeirRatePacer *self)
{
  GstMiniObject *item;

  while ((item = gst_queue_array_pop_head (self->items)))
    gst_mini_object_unref (item);
  weir_pacer_flush (&self->pacer);
}

void
rate_pacer_tell_room (WeirRatePacer *self)
{
  if (self->wants_room
      && (self->flushing || self->ret != GST_FLOW_OK || !weir_pacer_half_full (&self->pacer)))
    g_cond_signal (&self->room);
}

// Returns TRUE if the element has to post the flow error itself: after EOS, upstream pushes no more
// buffers and never sees it.
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
    GST_DEBUG_OBJECT (self, "downstream returned %s", gst_flow_get_name (ret));
    self->ret = ret;
    rate_pacer_drop_items (self);
    if (must_tell (self)) {
      g_mutex_unlock (&self->lock);
      GST_ELEMENT_FLOW_ERROR (self, ret);
      g_mutex_lock (&self->lock);
    }
  }
  rate_pacer_tell_room (self);
  if (self->n_wait_for_push > 0)
    g_cond_broadcast (&self->idle);
}

// Pushes everything that is due and that this thread may push.
static void
push_all (WeirRatePacer *self)
{
  GstMiniObject *item;

  while (!(push_may_wait (self) && self->may_wait != g_thread_self ())
         && (item = take_next (self, rate_pacer_running_time (self)))) {
    gboolean is_event = GST_IS_EVENT (item);
    GstFlowReturn ret;

    self->busy = TRUE;
    rate_pacer_tell_room (self);
    g_mutex_unlock (&self->lock);
    ret = push_item (self, item);
    g_mutex_lock (&self->lock);
    note_result (self, ret, !is_event);
  }
}

// Returns TRUE if the head of the queue can be pushed now, but only from a temporary thread.
static gboolean
has_to_offer (WeirRatePacer *self)
{
  GstMiniObject *head = gst_queue_array_peek_head (self->items);

  return head && !self->flushing && push_may_wait (self) && (!self->offered || GST_IS_EVENT (head));
}

// Returns the time at which the task has to run again, or WEIR_NEVER.
static gint64
wait_for_next (WeirRatePacer *self)
{
  gint64 now = rate_pacer_running_time (self), due;

  if (push_may_wait (self) || self->flushing) {
    if (has_to_offer (self))
      ask_for_own_thread (self);
    rate_pacer_stop_waiting (self);
    return WEIR_NEVER;
  }
  due = weir_pacer_due (&self->pacer, now);
  if (GST_IS_EVENT (gst_queue_array_peek_head (self->items)))
    due = now;
  return wait_until (self, due, now);
}

gint64
rate_pacer_run (WeirTask *task, void *scratch, gint64 now_ns)
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

void
rate_pacer_look (WeirRatePacer *self)
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
  now = rate_pacer_running_time (self);
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

void
rate_pacer_wait_for_push (WeirRatePacer *self)
{
  self->n_wait_for_push++;
  while (self->busy)
    g_cond_wait (&self->idle, &self->lock);
  self->n_wait_for_push--;
}
