// SPDX-License-Identifier: LGPL-2.1-or-later
#include "srtpline.h"

#include <pthread.h>
#include <stdatomic.h>

struct _SrtpLine {
  _Atomic guint32 number; // the next transport-wide number; its low 16 bits are sent
  atomic_bool congested;
  _Atomic guint64 pace;
  WeirEstimate *estimate;

  // Guards all of the estimate but the packets sent. Not a GMutex: ThreadSanitizer does not see
  // GLib's locks in threads that GLib did not create.
  pthread_mutex_t lock;
};

SrtpLine *
srtp_line_new (void)
{
  WeirEstimate *estimate = weir_estimate_new (WEIR_ESTIMATE_RING);
  SrtpLine *self;

  if (!estimate)
    return NULL;
  self = g_new0 (SrtpLine, 1);
  self->estimate = estimate;
  pthread_mutex_init (&self->lock, NULL);
  return self;
}

void
srtp_line_free (SrtpLine *self)
{
  if (!self)
    return;
  weir_estimate_free (self->estimate);
  pthread_mutex_destroy (&self->lock);
  g_free (self);
}

guint16
srtp_line_take_number (SrtpLine *self)
{
  return (guint16) atomic_fetch_add_explicit (&self->number, 1, memory_order_relaxed);
}

void
srtp_line_sent (SrtpLine *self, guint16 number, gsize size, gint64 now)
{
  weir_estimate_sent (self->estimate, number, size, now);
}

// Under the lock.
static WeirEstimateView
look (SrtpLine *self, gint64 now)
{
  WeirEstimateView view = weir_estimate_view (self->estimate, now);

  atomic_store_explicit (
      &self->congested, view.state == WEIR_ESTIMATE_CONGESTED, memory_order_relaxed);
  atomic_store_explicit (&self->pace, view.bits * 5 / 2, memory_order_relaxed);
  return view;
}

void
srtp_line_take (SrtpLine *self, const guint8 *rtcp, gsize size, gint64 now)
{
  WeirBytes compound = weir_bytes (rtcp, size);
  WeirFeedback feedback;
  uint64_t bits;

  pthread_mutex_lock (&self->lock);
  while (weir_feedback_next (&compound, &feedback) == 1)
    weir_estimate_feedback (self->estimate, &feedback, now);
  if (weir_feedback_read_remb (rtcp, size, &bits))
    weir_estimate_remb (self->estimate, bits, now);
  look (self, now);
  pthread_mutex_unlock (&self->lock);
}

WeirEstimateView
srtp_line_view (SrtpLine *self, gint64 now)
{
  WeirEstimateView view;

  pthread_mutex_lock (&self->lock);
  view = look (self, now);
  pthread_mutex_unlock (&self->lock);
  return view;
}

gboolean
srtp_line_is_congested (const SrtpLine *self)
{
  return atomic_load_explicit (&self->congested, memory_order_relaxed);
}

guint64
srtp_line_get_pace (const SrtpLine *self)
{
  return atomic_load_explicit (&self->pace, memory_order_relaxed);
}
