// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/mux_frames.h"

#include "outlets/ts/byte_stream.h"

#define PICTURE (40 * GST_MSECOND) // if the stream does not say its rate

void
mux_frames_init (MuxFrames *self, const Carriage *carriage, const GstCaps *caps)
{
  const FrameKind *kind = frame_kind_find (caps);

  *self = (MuxFrames) { .is_video = kind->is_video,
    .is_h264 = g_str_equal (kind->encoding, "H264"),
    .is_byte_stream = carriage_find (carriage, caps)->is_byte_stream,
    .waits = kind->is_video };
}

void
mux_frames_clear (MuxFrames *self)
{
  gst_clear_caps (&self->caps);
}

void
mux_frames_set_format (MuxFrames *self, const GstCaps *caps)
{
  gst_clear_caps (&self->caps);
  decode_times_relearn (&self->times);
  self->caps = self->is_byte_stream ? byte_stream_caps (caps) : gst_caps_ref ((GstCaps *) caps);
}

// Reports whether a decoder can use the frame. After a loss, a frame of H.264 may refer to what is
// missing.
static gboolean
is_usable (MuxFrames *self, const Frame *frame)
{
  self->waits |= frame->lost && self->is_h264;
  self->waits &= self->is_video && !frame->begins;
  return !self->waits;
}

// RTP timestamps are times of presentation, and those of sound are of decoding, too. A parser makes
// up others where a packet has several frames.
GstBuffer *
mux_frames_make (MuxFrames *self, const Frame *frame)
{
  GstClockTime duration = PICTURE, decoded = GST_CLOCK_TIME_NONE;
  GstBuffer *buffer;

  if (!is_usable (self, frame))
    return NULL;
  buffer = self->is_byte_stream ? byte_stream_copy (frame->data, self->is_h264)
                                : gst_buffer_copy (frame->data);
  if (GST_BUFFER_DURATION_IS_VALID (buffer))
    duration = GST_BUFFER_DURATION (buffer);
  if (self->is_video)
    decoded = (GstClockTime) decode_times_next (
        &self->times, (gint64) GST_BUFFER_PTS (buffer), (gint64) duration);
  GST_BUFFER_DTS (buffer) = decoded;
  return buffer;
}
