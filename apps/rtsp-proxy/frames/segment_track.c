// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/segment_track.h"

#define DEPTH_MAX 16 // frames that H.264 and H.265 may reorder

// Presentation times may be negative, decode times in a file may not.
#define SHIFT_NS (10 * (gint64) GST_SECOND)

void
segment_track_init (SegmentTrack *self, WeirMp4Codec codec)
{
  *self = (SegmentTrack) { .mp4.codec = codec };
  self->frames = g_array_new (FALSE, FALSE, sizeof (SegmentFrame));
  self->times = g_array_new (FALSE, FALSE, sizeof (gint64));
}

void
segment_track_clear (SegmentTrack *self)
{
  segment_track_drop (self, self->frames->len);
  g_array_unref (self->frames);
  g_array_unref (self->times);
  g_free ((gpointer) self->mp4.config);
}

gboolean
segment_track_set_format (SegmentTrack *self, const WeirMp4Track *format)
{
  WeirMp4Track *mine = &self->mp4;

  if (mine->config && mine->config_len == format->config_len
      && memcmp (mine->config, format->config, format->config_len) == 0
      && mine->width == format->width && mine->height == format->height
      && mine->channels == format->channels && mine->timescale == format->timescale)
    return FALSE;
  g_free ((gpointer) mine->config);
  *mine = *format;
  mine->config = g_memdup2 (format->config, format->config_len);
  return TRUE;
}

// ---- decode times ----

static void
insert_time (SegmentTrack *self, gint64 pts)
{
  guint at = self->times->len;

  while (at > 0 && g_array_index (self->times, gint64, at - 1) > pts)
    at--;
  g_array_insert_val (self->times, at, pts);
}

// Times frames until only `depth` are left without.
static void
time_frames (SegmentTrack *self, guint depth)
{
  // At least one unit of the timescale apart.
  gint64 least = GST_SECOND / MAX (self->mp4.timescale, 1) + 1;

  while (self->frames->len - self->n_timed > depth) {
    SegmentFrame *frame = segment_track_nth (self, self->n_timed);

    // A frame is shown when it is decoded, at the latest; where frames are missing, the next time
    // is that of a later one.
    frame->dts = MIN (g_array_index (self->times, gint64, 0), frame->pts + self->shift_ns);
    g_array_remove_index (self->times, 0);
    if (self->n_timed > 0 || self->last_dts != 0) {
      // The stream reorders more frames than those so far.
      if (frame->dts < self->last_dts + least && self->depth < DEPTH_MAX && depth == self->depth)
        depth = ++self->depth;
      frame->dts = MAX (frame->dts, self->last_dts + least);
    }
    self->last_dts = frame->dts;
    self->n_timed++;
  }
}

void
segment_track_add (SegmentTrack *self, GstBuffer *data, gint64 pts, gboolean key, gint64 wall_us)
{
  SegmentFrame frame = { data, pts, 0, wall_us, key };

  g_array_append_val (self->frames, frame);
  self->bytes += gst_buffer_get_size (data);
  insert_time (self, pts);
  if (self->is_live)
    time_frames (self, self->depth);
}

// Returns how many places the frame with the i-th presentation time comes after the i-th.
static guint
get_delay (const SegmentTrack *self, guint i)
{
  guint at = i;

  while (at < self->frames->len
         && segment_track_nth (self, at)->pts != g_array_index (self->times, gint64, i))
    at++;
  return at < self->frames->len ? at - i : 0;
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;

  return x < y ? -1 : x > y;
}

void
segment_track_measure (SegmentTrack *self)
{
  guint n = self->times->len;
  g_autoptr (GArray) durations = g_array_new (FALSE, FALSE, sizeof (gint64));

  for (guint i = 0; i < n; i++)
    self->depth = MAX (self->depth, MIN (get_delay (self, i), DEPTH_MAX));
  for (guint i = 0; i + 1 < n; i++) {
    gint64 duration =
        g_array_index (self->times, gint64, i + 1) - g_array_index (self->times, gint64, i);

    g_array_append_val (durations, duration);
  }
  g_array_sort (durations, compare);
  if (durations->len > 0)
    self->typical_ns = g_array_index (durations, gint64, durations->len / 2);
  self->shift_ns = self->depth * self->typical_ns;
  self->is_live = TRUE;
  time_frames (self, self->depth);
}

void
segment_track_flush (SegmentTrack *self)
{
  time_frames (self, 0);
  self->last_dts = 0; // the times of what follows may be earlier
}

void
segment_track_drop (SegmentTrack *self, guint n)
{
  for (guint i = 0; i < n; i++) {
    self->bytes -= gst_buffer_get_size (segment_track_nth (self, i)->data);
    gst_buffer_unref (segment_track_nth (self, i)->data);
  }
  g_array_remove_range (self->frames, 0, n);
  self->n_timed -= MIN (n, self->n_timed);
}

gint64
segment_track_get_end (const SegmentTrack *self, guint i)
{
  return i + 1 < self->n_timed ? segment_track_nth (self, i + 1)->dts
                               : segment_track_nth (self, i)->dts + self->typical_ns;
}

// ---- writing ----

gint64
segment_track_get_ticks (const SegmentTrack *self, gint64 ns)
{
  guint64 from_start = (guint64) MAX (ns + SHIFT_NS, 0);

  return (gint64) gst_util_uint64_scale_round (from_start, self->mp4.timescale, GST_SECOND);
}

void
segment_track_fill (const SegmentTrack *self, guint n, WeirMp4Sample *samples, WeirMp4Run *run)
{
  for (guint i = 0; i < n; i++) {
    const SegmentFrame *frame = segment_track_nth (self, i);
    gint64 at = segment_track_get_ticks (self, frame->dts - self->shift_ns);
    gint64 end = segment_track_get_ticks (self, segment_track_get_end (self, i) - self->shift_ns);

    samples[i] = (WeirMp4Sample) { .size = (guint32) gst_buffer_get_size (frame->data),
      .duration = (guint32) (end - at),
      .offset = (gint32) (segment_track_get_ticks (self, frame->pts) - at),
      .key = frame->key };
  }
  *run = (WeirMp4Run) { .samples = samples, .n_samples = n };
  if (n > 0)
    run->start =
        (guint64) segment_track_get_ticks (self, segment_track_nth (self, 0)->dts - self->shift_ns);
}
