// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files of ratepacer: ratepacer.c (pads, events, states), ratepacer_in.c (input, up
// to the queue), ratepacer_out.c (output from the queue), ratepacer_properties.c.

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
  guint index; // number of this pacer in the process, from 0

  // The only place that pushes: runs in a shared thread, or in a temporary one if the push may
  // block.
  WeirTask task;
  gboolean have_task;

  // Streaming thread only.
  GstSegment segment;
  gboolean is_rtp;

  // Take it before the object lock. Not held across a push or a message.
  GMutex lock;
  GCond room; // the streaming thread may continue
  GCond idle; // a push has ended

  // Under the lock, all below.
  WeirPacer pacer;      // sizes and times of the buffers in `items`
  GstQueueArray *items; // buffers and events, in order of arrival
  WeirPaceSettings settings;
  guint microrounds;
  gsize blocksize;

  gboolean flushing;
  gboolean eos; // EOS has arrived
  GstFlowReturn ret;

  gboolean playing;
  gboolean unsettled;    // flushed in PLAYING: the running time is wrong until a buffer got through
  gboolean offered;      // not PLAYING, and the sink already has its first buffer
  GstSegment pushed;     // last segment pushed downstream
  gint64 paused_at;      // running time at which the element left PLAYING, ns
  GThread *may_wait;     // temporary thread whose push may block, or NULL
  gboolean asked;        // the temporary thread is requested
  gboolean busy;         // a push is under way
  gboolean wants_room;   // the streaming thread waits for room
  guint n_wait_for_push; // threads that wait for the end of a push
  gint64 armed_due;      // running time at which the task runs next, ns
  GstClock *clock;       // in PLAYING
  gboolean clock_is_ours; // `clock` is the clock that the shared threads use
  gint rang;              // atomic: wait_id has fired
  GstClockID wait_id;     // wait on a `clock` that the shared threads do not use, or NULL
};

// ---- ratepacer_in.c: the streaming thread ----

GstFlowReturn rate_pacer_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer);
GstFlowReturn rate_pacer_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list);

// ---- ratepacer_out.c: call with the lock ----

// Returns the running time in ns; outside PLAYING, the time at which the element left PLAYING.
gint64 rate_pacer_running_time (WeirRatePacer *self);
void rate_pacer_take_clock (WeirRatePacer *self);
void rate_pacer_apply_settings (WeirRatePacer *self);

// Wakes the task if needed. Call it after a change of the queue or of the state. Does nothing while
// the task pushes: the task checks the queue itself when the push ends.
void rate_pacer_look (WeirRatePacer *self);
void rate_pacer_stop_waiting (WeirRatePacer *self);
void rate_pacer_drop_items (WeirRatePacer *self);

// Wakes the streaming thread if it waits, and may continue.
void rate_pacer_tell_room (WeirRatePacer *self);

// Waits until the current push has returned. Downstream must not block it.
void rate_pacer_wait_for_push (WeirRatePacer *self);

// The function of the task. Takes the lock itself.
gint64 rate_pacer_run (WeirTask *task, void *scratch, gint64 now_ns);

// ---- ratepacer_properties.c ----

void rate_pacer_properties_init (WeirRatePacer *self);
void rate_pacer_properties_install (GObjectClass *klass);
