// SPDX-License-Identifier: LGPL-2.1-or-later
// The input side of ratepacer: passes the size and times of each buffer to the pacer and puts the
// buffer into the queue.
#include "ratepacer_private.h"

#include "rtpbuffer.h"

#define MAX_DURATION ((gint64) (3600 * GST_SECOND))

// Clips `time` to the start of the segment. Buffers before the start are only decoded, not shown,
// and leave with the first frame of the segment.
static GstClockTime
time_in_segment (const GstSegment *segment, GstClockTime time)
{
  if (segment->rate > 0)
    return MAX (time, segment->start + segment->offset);
  return GST_CLOCK_TIME_IS_VALID (segment->stop) ? MIN (time, segment->stop - segment->offset)
                                                 : time;
}

static gint64
running_time_of (const WeirRatePacer *self, GstBuffer *buffer)
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

// Returns the duration in running time, in ns: scales it by the segment's rate.
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
  WeirRtp rtp;

  if (!weir_rtp_buffer_read (buffer, &rtp))
    return FALSE;
  *rtp_time = rtp.timestamp;
  return TRUE;
}

static WeirPacePacket
describe (const WeirRatePacer *self, GstBuffer *buffer)
{
  WeirPacePacket packet = { .size = gst_buffer_get_size (buffer),
    .time_ns = running_time_of (self, buffer) };

  if (GST_BUFFER_DURATION (buffer) <= G_MAXINT64)
    packet.duration_ns = duration_of (self, GST_BUFFER_DURATION (buffer));
  packet.is_rtp = self->is_rtp && read_rtp_time (buffer, &packet.rtp_time);
  return packet;
}

// Waits until the queue is less than half full. Call with the lock.
static void
wait_for_room (WeirRatePacer *self)
{
  self->wants_room = TRUE;
  while (weir_pacer_half_full (&self->pacer) && !self->flushing && self->ret == GST_FLOW_OK) {
    rate_pacer_look (self);
    g_cond_wait (&self->room, &self->lock);
  }
  self->wants_room = FALSE;
}

// Waits for room in the queue. Takes ownership of `buffer`. Call with the lock.
static GstFlowReturn
enqueue (WeirRatePacer *self, GstBuffer *buffer, const WeirPacePacket *packet)
{
  if (weir_pacer_full (&self->pacer))
    wait_for_room (self);
  if (self->flushing || self->ret != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return self->flushing ? GST_FLOW_FLUSHING : self->ret;
  }
  if (weir_pacer_push (&self->pacer, packet, rate_pacer_running_time (self)) < 0) {
    gsize queued = weir_pacer_queued (&self->pacer);

    gst_buffer_unref (buffer);
    g_mutex_unlock (&self->lock);
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT,
        ("out of memory with %" G_GSIZE_FORMAT " packets in the queue", queued), (NULL));
    g_mutex_lock (&self->lock);
    return GST_FLOW_ERROR;
  }
  gst_queue_array_push_tail (self->items, buffer);
  return GST_FLOW_OK;
}

// Puts the buffer into the queue; splits a non-RTP buffer that is larger than blocksize. Takes
// ownership of `buffer`. Call with the lock.
static GstFlowReturn
rate_pacer_take (WeirRatePacer *self, GstBuffer *buffer)
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

// Wakes the task. Call with the lock; it is released. Returns `ret`.
static GstFlowReturn
rate_pacer_taken (WeirRatePacer *self, GstFlowReturn ret)
{
  rate_pacer_look (self);
  g_mutex_unlock (&self->lock);
  return ret;
}

GstFlowReturn
rate_pacer_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);

  g_mutex_lock (&self->lock);
  return rate_pacer_taken (self, rate_pacer_take (self, buffer));
}

GstFlowReturn
rate_pacer_chain_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  WeirRatePacer *self = WEIR_RATE_PACER (parent);
  guint n = gst_buffer_list_length (list);
  GstFlowReturn ret = GST_FLOW_OK;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n && ret == GST_FLOW_OK; i++)
    ret = rate_pacer_take (self, gst_buffer_ref (gst_buffer_list_get (list, i)));
  ret = rate_pacer_taken (self, ret);
  gst_buffer_list_unref (list);
  return ret;
}
