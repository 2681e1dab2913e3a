// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of ratepacer share: ratepacer.c (pads, events, states), ratepacer_in.c (what comes
// in, up to the queue), ratepacer_out.c (what leaves it, and when), ratepacer_properties.c.

#include <gst/base/gstqueuearray.h>

#include "core/pace/pacer.h"
#include "ratepacer.h"
#include "sharedworkers.h"

GST_DEBUG_CATEGORY_EXTERN (ratepacer_debug);
#define GST_CAT_DEFAULT ratepacer_debug

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
  gint64 latency;         // see rate_pacer_own_latency(); 0: it may fall
};

// ---- ratepacer_in.c: the streaming thread ----

GstFlowReturn rate_pacer_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer);
GstFlowReturn rate_pacer_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list);

// In ns. The highest since the last flush, caps or segment: sinks that were told it wait so long.
// With the lock.
gint64 rate_pacer_own_latency (const WeirRatePacer *self);

// ---- ratepacer_out.c: with the lock ----

// In ns; where it doesn't play, that at which it stopped.
gint64 rate_pacer_running_time (WeirRatePacer *self);
void rate_pacer_take_clock (WeirRatePacer *self);
void rate_pacer_apply_settings (WeirRatePacer *self);

// Something was put into the queue, or the state changed. The task, if it pushes, looks by itself.
void rate_pacer_look (WeirRatePacer *self);
void rate_pacer_stop_waiting (WeirRatePacer *self);
void rate_pacer_drop_items (WeirRatePacer *self);

// Nothing is pushed any more when this returns, if downstream lets go.
void rate_pacer_wait_for_push (WeirRatePacer *self);

// What the task does. Takes the lock itself.
gint64 rate_pacer_run (WeirTask *task, void *scratch, gint64 now_ns);

// ---- ratepacer_properties.c ----

void rate_pacer_properties_init (WeirRatePacer *self);
void rate_pacer_properties_install (GObjectClass *klass);
